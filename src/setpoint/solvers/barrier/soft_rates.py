"""Rates at a fixed threshold: true values, and the gradients of soft ones."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from setpoint.axes.arrays import quiet
from setpoint.problems import PER_GROUP, Problem, refuse_classes, refuse_queries
from setpoint.rates import Expression, Where
from setpoint.solvers.held import tables_of
from setpoint.steps import Hard, Step
from setpoint.thresholds import Reading, Sample, spread


def read_at(batch: Sample, threshold: float, step: Step, slices: tuple[Where, ...]) -> Reading:
    """The batch as seen from a threshold that is the same for all outputs."""
    cuts = batch.cuts(slices)
    with quiet(cuts.xp):
        width = step.width_of(torch.as_tensor(spread(cuts)))
    width = (width + (width == 0))[:, None]
    return Reading(step, torch.full_like(width, threshold), width, batch, batch)


def soft_rate(
    rate: Expression, reading: Reading, slices: tuple[Where, ...]
) -> tuple[Tensor, Tensor]:
    """A soft rate, the mean over outputs, and its gradient on the scores ``[c, n]``.

    0/0 counts as zero with a zero gradient: such a batch says nothing about the rate.
    """
    counts = reading.counts()[0].requires_grad_()
    with torch.enable_grad():
        value = torch.as_tensor(rate.of(tables_of(counts, reading.whole.totals, slices))).mean()
    by_count = torch.zeros_like(counts)
    if value.requires_grad:
        (by_count,) = torch.autograd.grad(value, counts)
    gradient = reading.pull(by_count)
    known = (value + gradient.sum()).isfinite()
    return torch.where(known, value.detach(), 0.0), torch.where(known, gradient, 0.0)


def true_rate(
    rate: Expression, reading: Reading, slices: tuple[Where, ...], missing: float
) -> Tensor:
    """The rate of true decisions, the mean over outputs; ``missing`` where it is 0/0."""
    hard = replace(reading, step=Hard(), _kernels=[])
    tables = tables_of(hard.counts()[0], hard.whole.totals, slices)
    value = torch.as_tensor(rate.of(tables)).mean()
    return torch.where(value.isfinite(), value, missing)


def check(problem: object, step: object) -> None:
    """An error unless rates of the problem can be read at one fixed threshold."""
    if not isinstance(problem, Problem):
        raise TypeError(
            "RateBarrier takes a Problem, such as Problem(minimize=fnr, subject_to=fpr <= 0.01); "
            f"got {problem!r}."
        )
    refuse_queries(problem.query, "RateBarrier")
    refuse_classes(problem, "RateBarrier")
    if problem.swept is not None or problem.thresholds == PER_GROUP:
        raise NotImplementedError(
            f"RateBarrier cuts all scores at one fixed threshold; `{problem}` has several. "
            "Train it with Implicit, or write one bound for each."
        )
    if not isinstance(step, Step) or isinstance(step, Hard):
        raise TypeError(f"step must be a soft step such as Sigmoid(); got {step!r}.")
