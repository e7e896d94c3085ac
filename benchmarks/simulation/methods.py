"""Ours, the naive threshold, MAPIE: each gives one threshold a draw, NaN if it promises nothing."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import torch
from scipy.special import expit

from benchmarks.simulation.truth import (
    BY_GROUP,
    FLOORS,
    GROUPS,
    QUANTIZERS,
    RARE,
    SHIFT,
    Cell,
    Draw,
    draw,
)
from setpoint.certificates import certify
from setpoint.rates import Bound, Counts, Where

DELTA = 0.05
CHECKPOINTS = 20
MAPIE_GOALS = {
    "fpr": ("fpr", "auto"),
    "recall": ("recall", "auto"),
    "precision": ("precision", "auto"),
    "coverage": ("predicted_positive_fraction", "recall"),
}
"""What MAPIE calls a goal, and what it prefers among the thresholds that it proves."""
UNITS = {"discrete": (2.5, 5.5)}
"""Scores that are not in latent units: what one unit is, and where zero lies."""


def ours(cell: Cell, data: Draw, bounds: tuple[Bound, ...]) -> tuple[Any, list[float]]:
    """The threshold (or one a group), and the interval of the rate of the other class."""
    options: dict[str, Any] = {"groups": data.groups} if cell.name in BY_GROUP else {}
    if cell.name == "fpr on average":
        options["guarantee"] = "mean"
    if cell.name == "precision at 5 %":
        options["prevalence"] = RARE
    found = certify(data.scores, data.labels, bounds, confidence=1 - DELTA, **options)
    none = [math.nan, math.nan]
    if cell.name == "fpr by group":
        return ([found.thresholds[group] for group in GROUPS] if found else none), none
    if not found:
        return math.nan, none
    return found.threshold, [found.objective[0].low, found.objective[0].high]


def naive(cell: Cell, data: Draw, bounds: tuple[Bound, ...]) -> Any:
    """The threshold that keeps the bounds on these very data and finds most (alarms least)."""
    if cell.name == "fpr by group":
        return [_naive(cell, data, bounds, data.groups == group) for group in GROUPS]
    return _naive(cell, data, bounds, np.ones(cell.n, bool))


def _naive(cell: Cell, data: Draw, bounds: tuple[Bound, ...], rows: Any) -> float:
    s = data.scores.double().numpy() if isinstance(data.scores, torch.Tensor) else data.scores
    s, y = s[rows], data.labels[rows]
    order = np.argsort(-s, kind="stable")
    s, y = s[order], y[order]
    ends = np.append(s[:-1] != s[1:], True)
    prior = RARE if cell.name == "precision at 5 %" else None
    found: dict[Where, Counts] = {(): _running(y, ends, prior=prior)}
    if cell.name == "gap at fpr" and data.groups is not None:
        for group in GROUPS:
            found[(("group", group),)] = _running(y, ends, data.groups[order] == group)
    with np.errstate(all="ignore"):
        holds = np.all([b.gap(found) <= 1e-12 for b in bounds], axis=0)
    if not holds.any():
        return math.nan
    after = np.append(s[1:], -np.inf)[ends]
    return float(after[np.flatnonzero(holds)[0 if cell.name in FLOORS else -1]])


def _running(labels: Any, ends: Any, inside: Any = True, prior: float | None = None) -> Counts:
    """Counts at every threshold that splits no equal scores."""
    tp, fp = np.cumsum(labels & inside)[ends] * 1.0, np.cumsum(~labels & inside)[ends] * 1.0
    if prior is not None and tp[-1] and fp[-1]:
        tp, fp = tp * prior / tp[-1], fp * (1 - prior) / fp[-1]
    p, n = float(tp[-1]), float(fp[-1])
    return Counts(tp, fp, p - tp, n - fp, p, n)


def mapie(cell: Cell, data: Draw, grid: int) -> float:
    """MAPIE's own way: a grid of probabilities; its ``>=`` is ``>`` just below."""
    from mapie.risk_control import BinaryClassificationController

    odds = math.log(cell.prevalence / (1 - cell.prevalence))
    unit, origin = UNITS.get(cell.kind, (1.0, 0.0))
    seen = (QUANTIZERS[cell.kind](data.latent) - origin) / unit
    p = expit(SHIFT * seen - SHIFT**2 / 2 + odds)
    name, best = MAPIE_GOALS[cell.name]
    options: dict[str, Any] = {"best_predict_param_choice": best}
    if grid > 100:
        options["list_predict_params"] = np.linspace(0, 1, grid + 1)[1:-1]
        options["fwer_method"] = "fixed_sequence"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        controller = BinaryClassificationController(
            lambda x: np.stack([1 - x[:, 0], x[:, 0]], 1),
            name,
            cell.alpha if cell.name in ("fpr", "coverage") else 1 - cell.alpha,
            confidence_level=1 - DELTA,
            **options,
        ).calibrate(p[:, None], data.labels.astype(int))
    chosen = controller.best_predict_param
    if chosen is None:
        return math.nan
    with np.errstate(divide="ignore"):
        cut = (np.log(chosen) - np.log1p(-chosen) - odds + SHIFT**2 / 2) / SHIFT
    return float(np.nextafter(unit * cut + origin, -np.inf))


def models(cell: Cell, random: np.random.Generator, bounds: tuple[Bound, ...]) -> tuple[Any, ...]:
    """Of 20 equally good checkpoints the one with the best recall at its own threshold.

    Scores are the shared latent ones plus noise of each checkpoint's own, so the truth is that of a
    Gaussian with a smaller shift.
    """
    data = draw(cell, random)
    best = dict.fromkeys(("ours", "naive", "uncorrected"), (-1.0, math.nan))
    for _ in range(CHECKPOINTS):
        s = QUANTIZERS[cell.kind]((data.latent + random.normal(size=cell.n)) / math.sqrt(2))
        given = torch.from_numpy(s).bfloat16() if cell.kind == "bf16" else s
        for method, count in (("ours", CHECKPOINTS), ("uncorrected", 1)):
            found = certify(given, data.labels, bounds, confidence=1 - DELTA, candidates=count)
            if found:
                recall = float(np.mean(s[data.labels] > found.threshold))
                best[method] = max(best[method], (recall, found.threshold))
        t = naive(cell, Draw(s, s, data.labels, None), bounds)
        best["naive"] = max(best["naive"], (float(np.mean(s[data.labels] > t)), t))
    return tuple(threshold for _, threshold in best.values())
