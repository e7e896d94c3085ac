"""Scores whose law is known: a latent Gaussian, seen through a step function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtr

from setpoint.rates import Bound, Counts, Expression, Where, recall, tnr

Floats = NDArray[np.float64]
SHIFT = 2.5
"""How many deviations positives lie above negatives."""
GROUPS = {"a": SHIFT, "b": 2.0}
BY_GROUP = ("fpr by group", "gap at fpr")
FLOORS = ("recall", "fnr", "npv")
"""Goals under which fewer alerts are the better ones: what is kept of them is the specificity."""
RARE = 0.05
"""The share of positives to come in "precision at 5 %"."""

QUANTIZERS: dict[str, Callable[[Floats], Floats]] = {
    "continuous": lambda s: s,
    "tied": lambda s: np.round(2 * s) / 2,
    "discrete": lambda s: np.clip(np.floor(2.5 * s + 6), 0, 20),
    "bf16": lambda s: torch.from_numpy(s).bfloat16().double().numpy(),
}


@dataclass(frozen=True)
class Cell:
    """One setting of the simulation."""

    name: str
    alpha: float
    kind: str
    n: int
    draws: int
    prevalence: float = 0.2


@dataclass(frozen=True)
class Draw:
    """One calibration sample."""

    latent: Floats
    scores: Any
    labels: NDArray[np.bool_]
    groups: NDArray[Any] | None


def draw(cell: Cell, random: np.random.Generator) -> Draw:
    """A sample, in bfloat16 if the cell says so."""
    labels = random.random(cell.n) < cell.prevalence
    groups, shift = None, SHIFT * labels
    if cell.name in BY_GROUP:
        groups = np.where(random.random(cell.n) < 0.5, "a", "b")
        shift = np.where(groups == "a", GROUPS["a"], GROUPS["b"]) * labels
    s = random.normal(size=cell.n) + shift
    scores = QUANTIZERS[cell.kind](s)
    given = torch.from_numpy(scores).bfloat16() if cell.kind == "bf16" else scores
    return Draw(s, given, labels, groups)


def latent(thresholds: Floats, kind: str) -> Floats:
    """The latent value above which scores exceed each threshold."""
    low, high = np.full(thresholds.shape, -60.0), np.full(thresholds.shape, 60.0)
    for _ in range(80):
        middle = (low + high) / 2
        over = QUANTIZERS[kind](middle) > thresholds
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    return np.where(np.isinf(thresholds), thresholds, high)


def counts(cut: Any, cell: Cell, group: str | None = None, prior: float | None = None) -> Counts:
    """The cells of the population where latent scores above ``cut`` are accepted."""
    share = cell.prevalence if prior is None else prior
    shifts = list(GROUPS.values()) if cell.name in BY_GROUP else [SHIFT]
    shifts = [GROUPS[group]] if group else shifts
    tp = share * np.mean([ndtr(shift - np.asarray(cut)) for shift in shifts], axis=0)
    fp = (1 - share) * ndtr(-np.asarray(cut))
    return Counts(tp, fp, share - tp, 1 - share - fp, share, 1 - share)


def tables(cut: Any, cell: Cell, prior: float | None = None) -> dict[Where, Counts]:
    """The same for everyone and for each group."""
    found: dict[Where, Counts] = {(): counts(cut, cell, prior=prior)}
    return found | {(("group", g),): counts(cut, cell, g) for g in GROUPS}


def optimum(expression: Expression, maximize: bool, cell: Cell) -> float:
    """The best value that any threshold has."""
    values = expression.of({(): counts(np.linspace(-3, 6, 9001), cell)})
    return float(values.max() if maximize else values.min())


def broken(thresholds: Floats, bounds: tuple[Bound, ...], cell: Cell) -> NDArray[np.bool_]:
    """Whether each threshold breaks the promise; NaN: no threshold, no promise."""
    prior = RARE if cell.name == "precision at 5 %" else None
    with np.errstate(all="ignore"):
        at = tables(latent(thresholds, cell.kind), cell, prior)
        gaps = [np.asarray(bound.gap(at)) for bound in bounds]
    return (np.max(gaps, axis=0) > 1e-12) & ~np.isnan(thresholds)


def kept(thresholds: Floats, cell: Cell, group: str | None = None) -> Floats:
    """Recall, or under floors the specificity; 0 without a threshold."""
    with np.errstate(all="ignore"):
        at = {(): counts(latent(thresholds, cell.kind), cell, group)}
        rate = tnr if cell.name in FLOORS else recall
        return np.where(np.isnan(thresholds), 0.0, rate.of(at))


def missed(thresholds: Floats, intervals: Floats, cell: Cell) -> float:
    """How often the interval of the rate beside the promise does not hold the true rate."""
    with np.errstate(all="ignore"):
        at = {(): counts(latent(thresholds, cell.kind), cell)}
        rate = 1 - tnr.of(at) if cell.name in ("recall", "fnr") else recall.of(at)
    outside = (rate < intervals[:, 0] - 1e-12) | (rate > intervals[:, 1] + 1e-12)
    return float(np.mean(outside))
