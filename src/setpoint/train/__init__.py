"""Training: the loop, samplers, history, checkpoints, and averaged weights for any loop."""

from setpoint.train.averaged import Averaged
from setpoint.train.checkpoints import (
    OtherRun,
    load_checkpoint,
    save_checkpoint,
    write_atomically,
)
from setpoint.train.class_samplers import Classwise
from setpoint.train.features import Cached, cached_features
from setpoint.train.loop import Criterion, Fitted, fit
from setpoint.train.methods import METHODS, Method, methods_named
from setpoint.train.portfolio import Best, fit_best
from setpoint.train.queries import WholeQueries
from setpoint.train.retarget import Retargeted, retarget
from setpoint.train.samplers import Batch, Sampler, Shuffled, Stratified, batches
from setpoint.train.validation import Validation, score

__all__ = [
    "METHODS",
    "Averaged",
    "Batch",
    "Best",
    "Cached",
    "Classwise",
    "Criterion",
    "Fitted",
    "Method",
    "OtherRun",
    "Retargeted",
    "Sampler",
    "Shuffled",
    "Stratified",
    "Validation",
    "WholeQueries",
    "batches",
    "cached_features",
    "fit",
    "fit_best",
    "load_checkpoint",
    "methods_named",
    "retarget",
    "save_checkpoint",
    "score",
    "write_atomically",
]
