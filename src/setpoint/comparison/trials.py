"""Trials: one method on one split, trained, chosen on validation, judged on the test part.

A failure is a status of its trial, in words, and never hides the other trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from setpoint.certificates.regions import is_plain_share
from setpoint.datasets import DataSplit
from setpoint.distributed import Processes, check_sendable, count_step, open_pool
from setpoint.problems import Infeasible, Problem
from setpoint.rates import Bound, Counts, Setpoint, Target, Where
from setpoint.results import count_decisions
from setpoint.solvers import Method, methods_named
from setpoint.train import Fitted, Validation, fit, fit_best, network, score

OK = "ok"
MISSED = "missed: "
DIVERGING = "diverging"
"""How a criterion's status begins when its multipliers have left all bounds."""
CANNOT = "cannot express"
AT_RATE = "at the learning rate "
Members = str | Mapping[str, Method]
"""A method by its name, or methods of one's own."""


@dataclass(frozen=True)
class MethodTrial:
    """What a method reached on one split.

    Attributes:
        method: Its name.
        seed: Decides split, initial weights and batches.
        value: The goal's metric on the test part, at the threshold that is exact there: how well
            the model ranks. None if there is none.
        carried: The objective on the test part at the threshold chosen on validation: what a user
            gets. None for areas, and where ``value`` is None.
        validation: The metric on the validation part, by which rate and pass were chosen.
        learning_rate: The one of those tried that was chosen.
        steps: Training steps taken at one learning rate.
        ms_per_step: Median time of a step.
        status: ``ok``, or what went wrong: which bound was missed and by how much, that training
            failed (at which learning rate, though another may have worked) or its multipliers were
            diverging when it ended, or why the method cannot express the problem.
        scores: Of every part (train, validation, test) by its name; empty where training failed.
    """

    method: str
    seed: int
    value: float | None
    carried: float | None
    validation: float | None
    learning_rate: float | None
    steps: int
    ms_per_step: float
    status: str
    scores: Mapping[str, NDArray[Any]] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class ComparisonPlan:
    """What all trials share; the data are a function of the seed."""

    problem: Problem
    split: Callable[[int], DataSplit]
    model: str | Callable[[], nn.Module]
    steps: int
    batch_size: int
    learning_rates: Sequence[float]


@dataclass(frozen=True)
class Bench:
    """What all methods share on one split: data, initial weights, batches and budget."""

    plan: ComparisonPlan
    seed: int

    @cached_property
    def parts(self) -> DataSplit:
        """Training, validation and test part."""
        return self.plan.split(self.seed)

    def run(self, name: str, members: Mapping[str, Method]) -> MethodTrial:
        """Train at every learning rate, keep what is best on validation, judge it on the test part.

        Several members are a portfolio, from one start.
        """
        plan, model = self.plan, self._start()
        try:
            for method in members.values():
                method.build(model, plan.problem, plan.steps)
        except (NotImplementedError, TypeError, ValueError) as error:
            return self._nothing(name, inexpressible(error))
        except (ArithmeticError, RuntimeError) as error:
            return self._nothing(name, f"failed when it was made: {reason(error)}")
        validation = Validation(plan.problem, *self._tensors("validation"))
        validation.check()  # data that cannot judge are no method's fault
        best: Fitted | None = None
        chosen, steps, troubles = None, 0, list[str]()
        for rate in plan.learning_rates:
            try:
                start, train = self._start(), self._tensors("train")
                given = self._given(rate)
                trained = fit_best(start, members, *train, validation=validation, **given)
            except (ArithmeticError, ValueError, RuntimeError) as error:
                troubles.append(failed(rate, error))  # scores that are not finite, singular systems
                continue
            fitted = trained.fitted[trained.name]
            if fitted.best is None:
                troubles.append(untrained(fitted, rate))
            elif best is None or validation.better(fitted.best, best.best):
                best, chosen, steps = fitted, rate, trained.steps
        if best is None or chosen is None:
            return self._nothing(name, troubles[0])
        judged = replace(self.judge(name, plan.problem, best), learning_rate=chosen, steps=steps)
        status = [judged.status] if judged.status != OK or not troubles else []
        return replace(judged, status="; ".join([*status, *troubles]))

    def train(self, method: Method, problem: Problem) -> Fitted:
        """Train by one method at the first learning rate, without a look at validation data."""
        module, criterion = method.build(self._start(), problem, self.plan.steps)
        sampler, given = (
            method.sampler(self.plan.batch_size),
            self._given(self.plan.learning_rates[0]),
        )
        return fit(module, criterion, *self._tensors("train"), sampler=sampler, **given)

    def judge(self, name: str, problem: Problem, fitted: Fitted) -> MethodTrial:
        """The trial of a trained model, by the metric of ``problem`` on the test part."""
        parts = self.parts._asdict()
        scores = {part: score(fitted.model, self._tensors(part)[0]).numpy() for part in parts}
        labels = self.parts.test.y
        value, carried, status = None, None, OK
        try:
            value = problem.evaluate(scores["test"], labels)
        except Infeasible as error:
            status = f"infeasible on the test part: {error}"
        if problem.swept is None and value is not None:
            chosen = problem.choose(scores["validation"], self.parts.validation.y).thresholds
            carried = problem.evaluate(scores["test"], labels, thresholds=chosen)
            status = missed(problem, scores["test"] > chosen[0], labels) or status
        reached = (value, carried, fitted.best, self.plan.learning_rates[0], self.plan.steps)
        speed, status = 1000 * fitted.seconds_per_step, ended(fitted, status)
        return MethodTrial(name, self.seed, *reached, speed, status, scores)

    def _given(self, rate: float) -> dict[str, Any]:
        """The budget; every step is counted for a progress bar."""
        return {
            "steps": self.plan.steps,
            "batch_size": self.plan.batch_size,
            "learning_rate": rate,
            "seed": self.seed,
            "on_step": lambda _step, _loss: count_step(),
        }

    def _start(self) -> nn.Module:
        """The model with the initial weights of this seed."""
        model = self.plan.model
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return model() if callable(model) else network(model, self.parts.train.x.shape[1])

    def _tensors(self, part: str) -> tuple[torch.Tensor, torch.Tensor]:
        x, y = getattr(self.parts, part)
        return torch.from_numpy(x), torch.from_numpy(y)

    def _nothing(self, name: str, status: str) -> MethodTrial:
        return MethodTrial(name, self.seed, None, None, None, None, 0, float("nan"), status)


def run_cells(
    plan: ComparisonPlan, methods: Mapping[str, Members], seeds: Sequence[int], processes: Processes
) -> Iterator[MethodTrial]:
    """All trials, split by split; the same ones however many processes there are."""
    if processes == 1:
        for seed in seeds:
            bench = Bench(plan, seed)
            for name, members in methods.items():
                yield bench.run(name, _members(members))
        return
    check_sendable((plan, methods), "data, model and methods of your own")
    with open_pool(processes) as pool:
        shared = pool.share(plan)
        cells = [(seed, name, members) for seed in seeds for name, members in methods.items()]
        for task in [pool.submit(_run_trial, shared, *cell) for cell in cells]:
            yield pool.result(task)


def _run_trial(plan: ComparisonPlan, seed: int, name: str, members: Members) -> MethodTrial:
    return Bench(plan, seed).run(name, _members(members))


def _members(members: Members) -> Mapping[str, Method]:
    return methods_named(members) if isinstance(members, str) else members


def inexpressible(error: Exception) -> str:
    """Why a method cannot be built for a problem."""
    said = " ".join(str(error).split())
    return said if CANNOT in said else f"{CANNOT} it: {said}"


def failed(rate: float, error: Exception) -> str:
    """Training ended with an error."""
    return f"failed {AT_RATE}{rate:g}: {reason(error)}"


def reason(error: Exception) -> str:
    """The first line of an error; some of torch go on with advice about debugging."""
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__


def untrained(fitted: Fitted, rate: float) -> str:
    """Why no pass over the data has a validation metric."""
    last, at = _ended(fitted), f"{AT_RATE}{rate:g}"
    if last.startswith("infeasible"):
        return f"{last}: no pass has a threshold that reaches the goal {at}"
    return f"diverged {at}: {last or 'no pass has a validation metric'}"


def ended(fitted: Fitted, status: str) -> str:
    """The status of a trial, after that of its criterion if the multipliers were diverging."""
    last = _ended(fitted)
    if not last.startswith(DIVERGING):
        return status
    return last if status == OK else f"{last}; {status}"


def kind(status: str) -> str:
    """A failure in a word or two, for a cell of a table."""
    if CANNOT in status:
        return f"{CANNOT} it"
    known = ("infeasible", "diverged")
    return next((word for word in known if status.startswith(word)), "failed")


def is_judged(problem: Problem) -> bool:
    """Whether a threshold carried over from validation can miss a target; areas have none."""
    return any(map(_can_be_missed, problem.subject_to))


def missed(problem: Problem, accepted: NDArray[np.bool_], labels: NDArray[Any]) -> str:
    """Which target the carried threshold misses on new data; empty if none.

    A bound is missed when it is broken; a setpoint when its rate is more than two standard errors
    away, by the number of examples it counts (negatives for fpr, the accepted for precision).
    """
    tables: dict[Where, Counts] = {(): count_decisions(accepted, labels == 1)}
    for target in filter(_can_be_missed, problem.subject_to):
        if not target.gap(tables) <= _tolerated(target, tables):
            reached = float(target.expression.of(tables))
            return f"{MISSED}{target} became {reached:.4g} with the validation threshold"
    return ""


def _can_be_missed(target: Target) -> TypeGuard[Bound | Setpoint]:
    """A setpoint can only if it is a share: otherwise its standard error is not known."""
    if isinstance(target, Setpoint):
        return is_plain_share(target.expression)
    return isinstance(target, Bound)


def _tolerated(target: Bound | Setpoint, tables: Mapping[Where, Counts]) -> float:
    if not isinstance(target, Setpoint) or not is_plain_share(target.expression):
        return 0.0
    among = float(target.expression.denominator.of(tables[()]))
    return 2 * math.sqrt(target.level * (1 - target.level) / among) if among else 0.0


def _ended(fitted: Fitted) -> str:
    return str(fitted.history[-1]["status"]) if fitted.history else ""
