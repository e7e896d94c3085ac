"""Training: the loop, validation, checkpoints, averaged weights, portfolios of methods."""

import setpoint._torch  # noqa: F401 (names the extra if torch is missing)
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
from setpoint.train.loop import Criterion, Fitted, fit
from setpoint.train.portfolio import Best, fit_best
from setpoint.train.retargeting import Cached, Retargeted, cached_features, retarget
from setpoint.train.validation import Validation, score

__all__ = [
    "Averaged",
    "Batch",
    "Best",
    "Cached",
    "Classwise",
    "Criterion",
    "Fitted",
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
    "retarget",
    "save_checkpoint",
    "score",
]
