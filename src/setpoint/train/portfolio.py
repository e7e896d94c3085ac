"""Train several methods for less than the cost of two, and keep the best on validation data.

Losses differ little while features are being learnt, and every method here can start with the focal
loss. So the first part of the training is done once, by the focal loss, and every method continues
from there. On few rows the best model may be one of the shared part.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from setpoint._checks import share as share_between
from setpoint._checks import whole
from setpoint.solvers import Method, Split, focal
from setpoint.solvers.main_loss import class_focal
from setpoint.solvers.registry import Criterion
from setpoint.solvers.samplers import Sampler, Shuffled, Stratified
from setpoint.train.loop import Fitted, fit
from setpoint.train.validation import Validation

SHARED = 0.6
"""The share of the steps that is taken once: three members then cost 0.6 + 3 x 0.4 = 1.8 runs."""
START = "focal"
"""The method of the shared start."""


@dataclass(frozen=True)
class Best:
    """The best method on validation data, and the results of all.

    Attributes:
        name: The method that is best on validation data.
        fitted: The result of every method, by name; histories begin after the shared start. The
            result of ``focal``, which need not be a member, is the shared start itself if none of
            its later passes is better.
        steps: Training steps taken in all.
    """

    name: str
    fitted: Mapping[str, Fitted]
    steps: int

    @property
    def model(self) -> nn.Module:
        """The model of the best method, in evaluation mode."""
        return self.fitted[self.name].model


def fit_best(
    model: nn.Module,
    members: Mapping[str, Method],
    x: Tensor,
    y: Tensor,
    *,
    validation: Validation,
    steps: int,
    batch_size: int,
    shared: float = SHARED,
    checkpoint: str | Path | None = None,
    **options: Any,
) -> Best:
    """Train every member from one start and keep the best on validation data.

    Args:
        model: Gives one score per example; it is trained in place by the shared start.
        members: The methods, by name, such as some of :data:`setpoint.solvers.METHODS`. A tie on
            validation goes to the first.
        x: The features of all examples.
        y: Their labels.
        validation: Held-out data and the goal they are judged by.
        steps: The steps of one member alone: ``shared`` of them are taken once, the rest by every
            member.
        batch_size: Examples in a batch.
        shared: The share of the steps that is taken once, by the focal loss.
        checkpoint: A folder; a killed run goes on from it.
        **options: As for :func:`setpoint.fit`: ``learning_rate``, ``seed``, ``weights``, ...

    Returns:
        The name of the best method and every member's result.
    """
    if not members:
        raise ValueError("A portfolio needs at least one member.")
    steps = whole(steps, "steps", least=1)
    share_between(shared, "shared")
    start = round(shared * steps) if len(members) > 1 else 0
    folder = None if checkpoint is None else Path(checkpoint)
    common: dict[str, Any] = {**options, "batch_size": batch_size}
    begun = None
    if start:
        place = None if folder is None else folder / "start"
        given = {**common, "steps": start, "validation": validation, "checkpoint": place}
        begun = _begun(model, x, y, validation.problem.kind, given)
    left = max(1, steps - start)
    fitted = {}
    for name, member in members.items():
        place = folder / name if folder is not None and start else folder
        given = {**common, "steps": left, "validation": validation, "checkpoint": place}
        module, criterion = member.build(deepcopy(model).train(), validation.problem, left)
        found = fit(module, criterion, x, y, sampler=member.sampler(batch_size), **given)
        trained = found.model.model if isinstance(found.model, Split) else found.model
        fitted[name] = replace(found, model=trained)
    if begun is not None and (
        START not in fitted or validation.better(begun.best, fitted[START].best)
    ):
        fitted[START] = begun
    return Best(_winner(fitted, validation), fitted, start + len(members) * left)


def _begun(model: nn.Module, x: Tensor, y: Tensor, kind: str, given: dict[str, Any]) -> Fitted:
    """Train ``model`` for the shared steps; returns the best pass, whose model is an average."""
    loss: Criterion = focal
    sampler: Sampler = Stratified(given["batch_size"], share=0.0)
    if kind == "classes":
        loss, sampler = class_focal, Shuffled(given["batch_size"])
    return fit(model, loss, x, y, averaged=True, sampler=sampler, **given)


def _winner(fitted: Mapping[str, Fitted], validation: Validation) -> str:
    """The best on validation data; if several are, the first of them."""
    best = next(iter(fitted))
    for name, one in fitted.items():
        if validation.better(one.best, fitted[best].best):
            best = name
    return best
