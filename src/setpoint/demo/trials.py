"""Train every model with both methods, and judge it on data that neither has seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from setpoint.datasets import Split, letter, split
from setpoint.demo.plan import CORNER, GOALS, MODELS, Goal, Model, Plan
from setpoint.results import Curve, roc_curve
from setpoint.solvers import Implicit, cross_entropy
from setpoint.train import Criterion, fit, score

Floats = NDArray[np.floating]
CROSS_ENTROPY, IMPLICIT = "cross-entropy", "Implicit"


@dataclass(frozen=True)
class Trial:
    """One trained model, judged by one goal; ``percent`` is the metric on the test part."""

    goal: str
    model: str
    method: str
    seed: int
    percent: float
    ms_per_step: float
    curve: Curve | None = field(repr=False, default=None)  # only for the goal that is drawn
    scores: dict[str, Floats] = field(repr=False, default_factory=dict)  # the same, by part


def count_steps(plan: Plan) -> int:
    """All steps of the demo: cross-entropy once for all goals, Implicit once for each."""
    return plan.seeds * len(MODELS) * (1 + len(GOALS)) * plan.steps


def run_trials(plan: Plan, on_step: Callable[[], None]) -> list[Trial]:
    """All trials of the demo, every step announced by ``on_step``."""
    return [trial for task in tasks(plan) for trial in run_task(task, on_step)]


Task = tuple[Plan, int, int]
"""A plan, a seed, and which of the models."""


def tasks(plan: Plan) -> list[Task]:
    """The demo in pieces that do not depend on each other."""
    return [(plan, seed, i) for seed in range(plan.seeds) for i in range(len(MODELS))]


def run_task(task: Task, on_step: Callable[[], None]) -> list[Trial]:
    """One model on one split, by both methods."""
    plan, seed, i = task
    bench = _Bench(plan, MODELS[i], split(letter(), seed), seed, on_step)
    # cross-entropy does not know the goal, so one training serves all three
    trials = bench.judge(CROSS_ENTROPY, cross_entropy, GOALS)
    for goal in GOALS:
        trials += bench.judge(IMPLICIT, Implicit(goal.problem, steps=plan.steps), (goal,))
    return trials


@dataclass(frozen=True)
class _Bench:
    """What both methods share: the seed decides split, initial weights and batches."""

    plan: Plan
    model: Model
    parts: Split
    seed: int
    on_step: Callable[[], None]

    def judge(self, method: str, criterion: Criterion, goals: tuple[Goal, ...]) -> list[Trial]:
        """Train once, judge by each goal."""
        found, milliseconds = self.train(criterion)
        scores, labels = found["test"], self.parts.test.y
        return [
            Trial(
                goal=goal.name,
                model=self.model.name,
                method=method,
                seed=self.seed,
                percent=100 * goal.problem.evaluate(scores, labels),
                ms_per_step=milliseconds,
                curve=roc_curve(scores, labels) if goal is CORNER else None,
                scores=found if goal is CORNER else {},
            )
            for goal in goals
        ]

    def train(self, criterion: Criterion) -> tuple[dict[str, Floats], float]:
        """The scores of every part, and the milliseconds a step took."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            network = self.model.build()
        fitted = fit(
            network,
            criterion,
            torch.from_numpy(self.parts.train.x),
            torch.from_numpy(self.parts.train.y),
            steps=self.plan.steps,
            batch_size=self.plan.batch_size,
            learning_rate=self.model.learning_rate,
            seed=self.seed,
            on_step=lambda _step, _loss: self.on_step(),
        )
        scores = {
            name: score(fitted.model, torch.from_numpy(part.x)).numpy()
            for name, part in self.parts._asdict().items()
        }
        return scores, 1000 * fitted.seconds_per_step
