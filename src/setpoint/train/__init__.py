"""Training: the loop, validation, checkpoints, averaged weights, portfolios of methods."""

import setpoint._torch  # noqa: F401 (names the extra if torch is missing)
from setpoint.solvers.registry import Criterion
from setpoint.solvers.samplers import (
    Batch,
    Classwise,
    Sampler,
    Shuffled,
    Stratified,
    WholeQueries,
    batches,
)
from setpoint.train.averaging import Averaged
from setpoint.train.checkpoints import (
    OtherRun,
    load_checkpoint,
    save_checkpoint,
)
from setpoint.train.loop import Fitted, ProgressLine, fit
from setpoint.train.networks import HIDDEN, LEARNING_RATES, STEPS, network, steps_for
from setpoint.train.portfolio import Best, fit_best
from setpoint.train.retargeting import Cached, Retargeted, cached_features, retarget
from setpoint.train.validation import Validation, score

__all__ = [
    "HIDDEN",
    "LEARNING_RATES",
    "STEPS",
    "Averaged",
    "Batch",
    "Best",
    "Cached",
    "Classwise",
    "Criterion",
    "Fitted",
    "OtherRun",
    "ProgressLine",
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
    "network",
    "retarget",
    "save_checkpoint",
    "score",
    "steps_for",
]
