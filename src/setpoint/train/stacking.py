"""Stacking: the scores of several models as one, a sum whose weights validation rows decide.

The weights are those of a logistic regression of the labels on the standardised scores, none of
them negative, with the penalty of scikit-learn's default. It uses all validation rows, where the
goal's own metric rests on a few; ``python -m benchmarks study.default_model`` compares both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax
from torch import Tensor, nn

from setpoint.axes.arrays import Floats
from setpoint.distributed import workers
from setpoint.train.boosted_trees import MODELS
from setpoint.train.portfolio import Best
from setpoint.train.validation import Validation

STACKED = "stacked"
"""What a sum of several models is called."""
_PENALTY = 1.0
_FOR_TREES = ("implicit", "auto")


class Stacked(nn.Module):
    """A weighted sum of scores: rows ``[n, d]`` to log-odds ``[n]``, or ``[n, K]`` of K classes.

    Args:
        members: The models, by name.
        weights: One per member.
        shift: What is added, ``[1]`` or ``[K]``.
    """

    weights: Tensor
    shift: Tensor

    def __init__(self, members: Mapping[str, nn.Module], weights: Any, shift: Any) -> None:
        super().__init__()
        self.members = nn.ModuleDict(members)
        self.register_buffer("weights", torch.as_tensor(weights, dtype=torch.float64))
        self.register_buffer("shift", torch.as_tensor(shift, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        """The sum over members, in float64."""
        total = self.shift.expand(x.shape[0], -1)
        for weight, member in zip(self.weights, self.members.values(), strict=True):
            total = total + weight * member(x).double().reshape(x.shape[0], -1)
        return total.squeeze(1) if len(self.shift) == 1 else total


def why_no_trees(method: str = "implicit") -> str:
    """Why ``"auto"`` grows no trees here; empty if it does."""
    if method not in _FOR_TREES:
        return f"they are grown by log-loss, not by {method}"
    if workers() > 1:
        return f"they are grown by one process, and here are {workers()}"
    return "" if find_spec("lightgbm") else 'pip install "setpoint[boosting]" brings LightGBM'


def kinds_of_auto(method: str = "implicit") -> tuple[str, ...]:
    """The kinds of model that ``"auto"`` stands for."""
    return tuple(name for name in MODELS if name != "boosted" or not why_no_trees(method))


def stack(found: Mapping[str, Best], validation: Validation) -> tuple[str, Best]:
    """One model from several, with its name: their weighted sum, or the one that has a weight.

    The history of a sum is that of the member with the most passes.
    """
    names = list(found)
    if len(names) == 1:
        return names[0], found[names[0]]
    seen = {name: validation.scores(best.model) for name, best in found.items()}
    _, labels, weights, _ = seen[names[0]]
    kept, shift = weigh({name: columns[0] for name, columns in seen.items()}, labels, weights)
    if len(kept) == 1:
        (name,) = kept
        return name, found[name]
    model = Stacked({name: found[name].model for name in kept}, list(kept.values()), shift)
    model = model.to(validation.x.device).eval()
    return STACKED, best_of_sum(model, found, kept, validation.metric(model)[0])


def best_of_sum(
    model: Stacked, found: Mapping[str, Best], kept: Iterable[str], value: float | None
) -> Best:
    """A sum of some of the models found, with its value on validation rows."""
    longest = max((found[n].fitted[found[n].name] for n in kept), key=lambda f: len(f.history))
    fitted = replace(longest, model=model, best=value)
    return Best(STACKED, {STACKED: fitted}, sum(best.steps for best in found.values()))


def weigh(
    scores: Mapping[str, Tensor], labels: Tensor, weights: Tensor | None
) -> tuple[dict[str, float], Floats]:
    """The members that have a weight, with it, and what the sum adds, ``[1]`` or ``[K]``.

    A member with a score that is not finite has none; if nobody has one, the first gets 1.
    """
    finite = [name for name, s in scores.items() if bool(torch.isfinite(s).all())]
    names = finite or list(scores)[:1]
    columns = np.stack([_as_classes(scores[name]) for name in names], axis=1)
    rows = None if weights is None else weights.cpu().numpy().astype(np.float64)
    factors, shift = stacking_weights(columns, labels.cpu().numpy().astype(np.int64), rows)
    if scores[names[0]].ndim == 1:
        shift = shift[1:] - shift[:1]
    kept = {name: float(factor) for name, factor in zip(names, factors, strict=True) if factor > 0}
    return kept or {names[0]: 1.0}, shift


def stacking_weights(
    scores: Floats, labels: NDArray[np.int64], weights: Floats | None = None
) -> tuple[Floats, Floats]:
    """What to multiply each member's scores by, at least 0, and what to add for each class.

    Args:
        scores: ``[n, members, classes]``; of two classes that have one score the first is 0.
        labels: The class of each row.
        weights: Optional, one per row; their mean counts as 1.
    """
    largest = np.maximum(np.abs(scores).max(axis=(0, 2)), np.finfo(np.float64).tiny)
    x = scores / largest[:, None]  # there is no square of 1e300
    spread = x.std(0).max(1)
    spread = np.where(spread > 1e-12, spread, 1.0)  # a constant has rounding errors
    centre = x.mean(0)
    x = (x - centre) / spread[:, None]
    rows = np.ones(len(labels)) if weights is None else weights / weights.mean()
    truth = np.eye(scores.shape[2])[labels]
    count = len(spread)

    def loss(point: Floats) -> tuple[float, Floats]:
        factors, shift = point[:count], point[count:]
        logs = log_softmax(np.einsum("nmk,m->nk", x, factors) + shift, axis=1)
        value = -(rows * (truth * logs).sum(1)).sum() + _PENALTY / 2 * factors @ factors
        errors = rows[:, None] * (np.exp(logs) - truth)
        slopes = np.einsum("nmk,nk->m", x, errors) + _PENALTY * factors
        return float(value), np.concatenate([slopes, errors.sum(0)])

    start = np.concatenate([np.ones(count), np.zeros(scores.shape[2])])
    bounds = [(0.0, None)] * count + [(None, None)] * scores.shape[2]
    point = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    factors = point[:count] / spread
    return factors / largest, point[count:] - factors @ centre


def _as_classes(scores: Tensor) -> Floats:
    """Scores of all classes; one score is the log-odds of the second of two."""
    values = scores.detach().cpu().numpy().astype(np.float64)
    return np.stack([np.zeros_like(values), values], axis=1) if values.ndim == 1 else values
