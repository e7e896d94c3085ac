"""Bounds whose truth is near the edge, so that breaking them is easy; and where they are tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from scipy.special import ndtr, ndtri

import setpoint as sp
from benchmarks.simulation.truth import QUANTIZERS, SHIFT, Cell, optimum
from setpoint.rates import Bound

SIMPLEST = ("fpr", "recall", "coverage", "precision", "f_score(1)")
MIRRORED = ("tnr", "fnr")
NAMES = (
    *SIMPLEST,
    *MIRRORED,
    *("npv", "f_score(2)", "error", "balanced_error", "fpr and recall", "fpr and precision"),
    *("fpr by group", "gap at fpr", "fpr on average", "precision at 5 %", "fpr, 20 models"),
)
SIZES = (500, 2000, 10_000)
PREVALENCES = {"recall": 0.8, "fnr": 0.8, "precision": 0.5, "npv": 0.5, "fpr and precision": 0.5}


def goals(cell: Cell) -> tuple[Bound, ...]:
    """The bounds of a cell."""
    a, best = cell.alpha, lambda e, m=True: optimum(e, m, cell)
    made: dict[str, Callable[[], tuple[Bound, ...]]] = {
        "fpr": lambda: (sp.fpr <= a,),
        "tnr": lambda: (sp.tnr >= 1 - a,),
        "recall": lambda: (sp.recall >= 1 - a,),
        "fnr": lambda: (sp.fnr <= a,),
        "coverage": lambda: (sp.coverage <= a,),
        "precision": lambda: (sp.precision >= 1 - a,),
        "npv": lambda: (sp.npv >= 1 - a,),
        "f_score(1)": lambda: (sp.f_score(1) >= best(sp.f_score(1)) - a,),
        "f_score(2)": lambda: (sp.f_score(2) >= best(sp.f_score(2)) - a,),
        "error": lambda: (sp.error <= best(sp.error, False) + a,),
        "balanced_error": lambda: (sp.balanced_error <= best(sp.balanced_error, False) + a,),
        "fpr and recall": lambda: (sp.fpr <= 4 * a, sp.recall >= _recall_at(4 * a) - 0.05),
        "fpr and precision": lambda: (sp.fpr <= a, sp.precision >= 0.9),
        "fpr by group": lambda: (sp.fpr <= a,),
        "gap at fpr": lambda: (
            sp.fpr <= 0.1,
            abs(sp.tpr.on(group="a") - sp.tpr.on(group="b")) <= 0.1 + a,
        ),
        "fpr, 20 models": lambda: (sp.fpr <= a,),
        "fpr on average": lambda: (sp.fpr <= a,),
        "precision at 5 %": lambda: (sp.precision >= 1 - 4 * a,),
    }
    return made[cell.name]()


def _recall_at(level: float) -> float:
    """The best recall at a false positive rate."""
    return float(ndtr(SHIFT - ndtri(1 - level)))


def cells(quick: bool) -> Iterator[Cell]:
    """Everything that is simulated; what matters most first, since a run may be cut short."""
    if quick:
        for name in NAMES:
            for kind in ("continuous", "tied") if name in SIMPLEST else ("continuous",):
                yield _cell(name, 0.05, kind, 2000, 300)
        return
    others = [name for name in NAMES if name not in SIMPLEST + MIRRORED]
    order = ((SIMPLEST, SIZES), (others, (2000,)), (MIRRORED, SIZES), (others, (500, 10_000)))
    for names, sizes in order:
        for kind, n, alpha, name in product(QUANTIZERS, sizes, (0.05, 0.01), names):
            yield _cell(name, alpha, kind, n, 2000)


def _cell(name: str, alpha: float, kind: str, n: int, draws: int) -> Cell:
    return Cell(name, alpha, kind, n, draws, PREVALENCES.get(name, 0.2))
