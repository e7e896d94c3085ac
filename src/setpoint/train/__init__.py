"""Training: the loop, samplers, history, checkpoints, and averaged weights for any loop."""

from setpoint.train.averaged import Averaged
from setpoint.train.checkpoints import load_checkpoint, save_checkpoint, write_atomically
from setpoint.train.loop import Criterion, Fitted, fit
from setpoint.train.samplers import Batch, Sampler, Shuffled, Stratified, batches
from setpoint.train.validation import Validation, score

__all__ = [
    "Averaged",
    "Batch",
    "Criterion",
    "Fitted",
    "Sampler",
    "Shuffled",
    "Stratified",
    "Validation",
    "batches",
    "fit",
    "load_checkpoint",
    "save_checkpoint",
    "score",
    "write_atomically",
]
