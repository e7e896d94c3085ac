"""Out of training: a module that decides, and the files other programs read."""

from setpoint.export.card import model_card
from setpoint.export.decision import Decision
from setpoint.export.files import load_decision, save_decision
from setpoint.export.programs import to_onnx, to_program

__all__ = [
    "Decision",
    "load_decision",
    "model_card",
    "save_decision",
    "to_onnx",
    "to_program",
]
