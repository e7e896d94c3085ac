"""Out of training: a module that decides, and the files other programs read.

The card of a run needs no torch; the other names are imported on first use.
"""

from typing import TYPE_CHECKING

from setpoint._extras import import_lazily
from setpoint.export.card import certificate_card, model_card

if TYPE_CHECKING:
    from setpoint.export.decision import Decision
    from setpoint.export.files import load_decision, save_decision, to_onnx, to_program

__all__ = [
    "Decision",
    "certificate_card",
    "load_decision",
    "model_card",
    "save_decision",
    "to_onnx",
    "to_program",
]

__getattr__ = import_lazily(__name__)
