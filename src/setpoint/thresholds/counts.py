"""Soft counts: how many examples lie above a threshold, with a gradient.

``sum_i weight_i step((score_i - threshold) / width)`` for every threshold and column of weights. The
gradient is written by hand for two reasons: the step's own slope keeps a gradient far from the
threshold, where automatic differentiation of a sigmoid has none left, and thresholds are taken a
few at a time, so that a million scores times ten thresholds fit into little memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from setpoint.rates import Counts, Tables, Where
from setpoint.steps import Step
from setpoint.thresholds.sample import Sample

Curve = Callable[[Tensor], Tensor]
CHUNK = 2**18
"""Pairs of score and threshold taken at once: about the size of a processor's cache."""


@dataclass(frozen=True)
class Reading:
    """How scores are read: a step of some width ``[c, m]``, and the examples that are counted.

    The counts and their dependence on the thresholds come from ``whole``, the gradient of the
    scores from ``batch``; without a memory the two are the same examples.
    """

    step: Step
    width: Tensor
    whole: Sample
    batch: Sample
    slices: tuple[Where, ...]

    def tables(self, scores: Tensor, thresholds: Tensor) -> Tables:
        """Soft counts at ``thresholds`` [c, m], differentiable in both."""
        step = self.step
        accepted = weigh(scores, thresholds, self, step.value, step.slope)
        totals = self.whole.totals[:, None]
        if step.complementary:
            rejected = totals - accepted
        else:
            mirrored = (lambda u: step.value(-u)), (lambda u: -step.slope(-u))
            rejected = weigh(scores, thresholds, self, *mirrored)
        return self._tables(accepted, rejected, totals)

    def slopes(self, scores: Tensor, thresholds: Tensor) -> Tables:
        """``width * d count / d threshold`` for every count, differentiable in both."""
        step, totals = self.step, self.whole.totals[:, None]
        accepted = -weigh(scores, thresholds, self, step.slope, step.curvature)
        rejected = -accepted
        if not step.complementary:
            mirrored = (lambda u: step.slope(-u)), (lambda u: -step.curvature(-u))
            rejected = weigh(scores, thresholds, self, *mirrored)
        return self._tables(accepted, rejected, totals)

    def _tables(self, accepted: Tensor, rejected: Tensor, totals: Tensor) -> Tables:
        yes, no, all_ = accepted.unbind(-1), rejected.unbind(-1), totals.unbind(-1)
        return {
            where: Counts(yes[i], yes[i + 1], no[i], no[i + 1], all_[i], all_[i + 1])
            for i, where in zip(range(0, len(yes), 2), self.slices, strict=True)
        }


def along(function: Callable[[Tables], Tensor], tables: Tables, moves: Tables) -> Tensor:
    """The derivative of a function of counts when they move in the direction of ``moves``."""
    fields = ("tp", "fp", "fn", "tn")
    here, there = (
        tuple(getattr(t[w], f) for w in tables for f in fields) for t in (tables, moves)
    )

    def flat(*counts: Tensor) -> Tensor:
        parts = iter(counts)
        return function({w: replace(t, **{f: next(parts) for f in fields}) for w, t in tables.items()})

    derivative: Tensor = torch.func.jvp(flat, here, there)[1]
    return derivative


def weigh(scores: Tensor, thresholds: Tensor, reading: Reading, curve: Curve, slope: Curve) -> Tensor:
    """``sum_i curve((score_i - threshold) / width) column_i``, ``[c, m, k]``.

    ``slope`` is the derivative of ``curve``.
    """
    out: Tensor = _Weigh.apply(scores, thresholds, reading, curve, slope)
    return out


class _Weigh(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, thresholds: Tensor, reading: Reading, curve: Curve, slope: Curve
    ) -> Tensor:
        ctx.save_for_backward(scores, thresholds)
        ctx.reading, ctx.slope = reading, slope
        whole = reading.whole
        parts = _parts(whole.scores, thresholds, reading.width)
        return torch.cat([curve(u) @ whole.columns for u, _ in parts], 1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        scores, thresholds = ctx.saved_tensors
        reading, slope = ctx.reading, ctx.slope
        whole, batch = reading.whole, reading.batch
        by_score, by_threshold = None, None
        if ctx.needs_input_grad[1]:
            pulls = _pulls(whole.scores, whole.columns, thresholds, reading.width, slope, grad)
            by_threshold = torch.cat([-pull.sum(-1) for pull in pulls], 1)
        if ctx.needs_input_grad[0]:
            by_score = torch.zeros_like(scores)
            for pull in _pulls(scores, batch.columns, thresholds, reading.width, slope, grad):
                by_score += pull.sum(1)
        return by_score, by_threshold, None, None, None


def _parts(scores: Tensor, thresholds: Tensor, width: Tensor) -> Iterator[tuple[Tensor, slice]]:
    """``(score - threshold) / width`` for a few thresholds at a time, ``[c, part, n]``."""
    size = max(1, CHUNK // max(1, scores.numel()))
    for i in range(0, thresholds.shape[1], size):
        part = slice(i, i + size)
        yield (scores[:, None] - thresholds[:, part, None]) / width[:, part, None], part


def _pulls(
    scores: Tensor, columns: Tensor, thresholds: Tensor, width: Tensor, slope: Curve, grad: Tensor
) -> Iterator[Tensor]:
    """What each pair of threshold and score contributes to the gradient, ``[c, part, n]``."""
    for u, part in _parts(scores, thresholds, width):
        yield (grad[:, part] / width[:, part, None]) @ columns.mT * slope(u)
