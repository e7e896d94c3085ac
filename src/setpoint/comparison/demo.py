"""What the demo compares: three goals, two models, one budget for everybody."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from setpoint._version import __version__
from setpoint.certificates import Certificate, certify
from setpoint.datasets import DataSplit, letter, split
from setpoint.problems import Problem, fnr_at_fpr, pr_auc, precision_at_recall
from setpoint.results import Curve, RunResult, roc_curve
from setpoint.solvers import Implicit, cross_entropy
from setpoint.train import Criterion, fit, score

FEATURES = 16
HELD_FPR = 0.01


@dataclass(frozen=True)
class DemoGoal:
    """What a model is judged by, and the words for it."""

    name: str
    problem: Problem

    @property
    def higher_is_better(self) -> bool:
        """Whether a larger value is the better one."""
        return self.problem.maximize


@dataclass(frozen=True)
class DemoModel:
    """A model to train, and the rate of Adam that suits it with either loss."""

    name: str
    title: str
    build: Callable[[], nn.Module]
    learning_rate: float


@dataclass(frozen=True)
class DemoPlan:
    """One budget for both methods: steps, batches, learning rates, initial weights, averaging."""

    seeds: int = 3
    steps: int = 1000  # as in the lab that found the defaults; under a minute on two cores
    batch_size: int = 512

    def quick(self) -> DemoPlan:
        """Enough steps to see that everything runs, too few to learn from."""
        return replace(self, steps=30)


def _linear() -> nn.Module:
    return nn.Linear(FEATURES, 1)


def _network() -> nn.Module:
    return nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 1))


GOALS = (
    DemoGoal("FNR at FPR 1 %", fnr_at_fpr(HELD_FPR)),
    DemoGoal("precision at recall 95 %", precision_at_recall(0.95)),
    DemoGoal("PR-AUC, recall 95-100 %", pr_auc(recall=(0.95, 1.0))),
)
CORNER = GOALS[0]
"""The goal whose curves are drawn."""
MODELS = (
    DemoModel("linear", "Linear model", _linear, 0.03),
    DemoModel("MLP 64", "MLP, 64 hidden units", _network, 0.01),
)


# ------------------------------------------------------------------------------------------------
# Train every model with both methods, and judge it on data that neither has seen.


Floats = NDArray[np.floating]
CROSS_ENTROPY, IMPLICIT = "cross-entropy", "Implicit"


@dataclass(frozen=True)
class DemoTrial:
    """One trained model, judged by one goal; ``percent`` is the metric on the test part."""

    goal: str
    model: str
    method: str
    seed: int
    percent: float
    ms_per_step: float
    curve: Curve | None = field(repr=False, default=None)  # only for the goal that is drawn
    scores: dict[str, Floats] = field(repr=False, default_factory=dict)  # the same, by part


def count_steps(plan: DemoPlan) -> int:
    """All steps of the demo: cross-entropy once for all goals, Implicit once for each."""
    return plan.seeds * len(MODELS) * (1 + len(GOALS)) * plan.steps


def run_trials(plan: DemoPlan, on_step: Callable[[], None]) -> list[DemoTrial]:
    """All trials of the demo, every step announced by ``on_step``."""
    return [trial for task in tasks(plan) for trial in run_task(task, on_step)]


Task = tuple[DemoPlan, int, int]
"""A plan, a seed, and which of the models."""


def tasks(plan: DemoPlan) -> list[Task]:
    """The demo in pieces that do not depend on each other."""
    return [(plan, seed, i) for seed in range(plan.seeds) for i in range(len(MODELS))]


def run_task(task: Task, on_step: Callable[[], None]) -> list[DemoTrial]:
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

    plan: DemoPlan
    model: DemoModel
    parts: DataSplit
    seed: int
    on_step: Callable[[], None]

    def judge(
        self, method: str, criterion: Criterion, goals: tuple[DemoGoal, ...]
    ) -> list[DemoTrial]:
        """Train once, judge by each goal."""
        found, milliseconds = self.train(criterion)
        scores, labels = found["test"], self.parts.test.y
        return [
            DemoTrial(
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


# ------------------------------------------------------------------------------------------------
# Trials on several cores: a process each, because models this small do not fill one together.


POLL = 0.2  # seconds between two looks at the steps done


def run_on_cores(plan: DemoPlan, on_steps: Callable[[int], None], cores: int) -> list[DemoTrial]:
    """All trials, by ``cores`` processes; steps are announced as they are counted."""
    if cores == 1:
        return run_trials(plan, lambda: on_steps(1))
    context = get_context("spawn")  # a fork of a process that has run torch may hang
    steps = context.Value("q", 0)
    with ProcessPoolExecutor(cores, context, initializer=_begin, initargs=(steps,)) as pool:
        futures = [pool.submit(_work, task) for task in tasks(plan)]
        announced, left = 0, set(futures)
        while left:
            _, left = wait(left, timeout=POLL, return_when=FIRST_COMPLETED)
            on_steps(steps.value - announced)
            announced = steps.value
        return [trial for future in futures for trial in future.result()]


_STEPS: list[Any] = []  # the shared counter, in a worker


def _begin(steps: Any) -> None:
    torch.set_num_threads(1)
    _STEPS.append(steps)


def _work(task: Task) -> list[DemoTrial]:
    return run_task(task, _count)


def _count() -> None:
    with _STEPS[0].get_lock():
        _STEPS[0].value += 1


# ------------------------------------------------------------------------------------------------
# The demo's last step: a threshold with a certificate, and the report page of one model.
#
# Nothing was chosen by the validation part, so it is free to be certified on.


PARTS = {"train": "train", "validation": "calibration", "test": "test"}
"""The parts of the data, and what they are to the certificate."""


def certify_one(trials: Sequence[DemoTrial]) -> tuple[Certificate, RunResult]:
    """The linear model of the first seed: its certificate, and the run as the report takes it."""
    shown = {
        t.method: t.scores
        for t in trials
        if (t.goal, t.model, t.seed) == (CORNER.name, MODELS[0].name, 0)
    }
    ours, theirs = shown[IMPLICIT], shown[CROSS_ENTROPY]
    parts = split(letter(), 0)
    labels = {name: getattr(parts, name).y for name in PARTS}
    certificate = certify(ours["validation"], labels["validation"], CORNER.problem)
    run = RunResult(
        goal=str(CORNER.problem),
        splits={PARTS[name]: (ours[name], labels[name]) for name in PARTS},
        threshold=certificate.threshold if certificate.certified else None,
        certificate=json.loads(certificate.to_json()),
        label="letter",
        positive="U",
        method=IMPLICIT,
        model=MODELS[0].title.lower(),
        seed=0,
        versions={
            "setpoint": __version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        baseline={PARTS[name]: (theirs[name], labels[name]) for name in PARTS},
        notes=[
            "UCI Letter (D. Slate, 1991, CC BY 4.0): half to train, a quarter to certify, rest."
        ],
    )
    return certificate, run
