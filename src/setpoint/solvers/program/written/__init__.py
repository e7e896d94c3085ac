"""The losses as the linear programs they are: what sorting solves, for a solver to solve.

Each function takes the arguments of its loss and writes the program down with one variable for
each pair or example, as in the textbook. Add rows of your own and hand it to the LP layer.
"""

from setpoint.solvers.program.written.areas import (
    auc_program,
    multiclass_auc_program,
    partial_auc_program,
)
from setpoint.solvers.program.written.precision import precision_at_recall_program
from setpoint.solvers.program.written.ratios import f_score_program, jaccard_program
from setpoint.solvers.program.written.structural import (
    expected_f_program,
    structural_program,
)

__all__ = [
    "auc_program",
    "expected_f_program",
    "f_score_program",
    "jaccard_program",
    "multiclass_auc_program",
    "partial_auc_program",
    "precision_at_recall_program",
    "structural_program",
]
