"""``setpoint demo``, a plan of the comparison: three goals, two models, two methods.

Both methods have one budget: split, initial weights, batches, rate of Adam, steps, averaging.
Nothing is chosen on the validation part, so a threshold may be certified there.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone

import numpy as np
import torch

from setpoint._version import __version__
from setpoint.certificates import Certificate, certify
from setpoint.comparison.tables import Comparison
from setpoint.comparison.trials import Bench, ComparisonPlan, MethodTrial
from setpoint.datasets import DataSplit, letter, split
from setpoint.distributed import Processes, open_pool
from setpoint.problems import Problem, fnr_at_fpr, pr_auc, precision_at_recall
from setpoint.results import RunResult
from setpoint.solvers import Implicit, Method, cross_entropy
from setpoint.train import LEARNING_RATES, Shuffled

HELD_FPR = 0.01
GOALS: dict[str, Problem] = {
    "FNR at FPR 1 %": fnr_at_fpr(HELD_FPR),
    "precision at recall 95 %": precision_at_recall(0.95),
    "PR-AUC, recall 95-100 %": pr_auc(recall=(0.95, 1.0)),
}
DRAWN = "FNR at FPR 1 %"
"""The goal whose curves are drawn and whose threshold is certified."""
CROSS_ENTROPY, IMPLICIT = "cross-entropy", "Implicit"
DEMO_METHODS = {
    CROSS_ENTROPY: Method(lambda _problem, _steps: cross_entropy, Shuffled),
    IMPLICIT: Method(lambda problem, steps: Implicit(problem, steps=steps), Shuffled),
}


@dataclass(frozen=True)
class DemoModel:
    """A model to train: ``kind`` is its name in training, with the learning rate that suits it."""

    kind: str
    title: str

    @property
    def learning_rate(self) -> float:
        """Of Adam, for either loss."""
        return LEARNING_RATES[self.kind]


MODELS = {
    "linear": DemoModel("linear", "Linear model"),
    "MLP 64": DemoModel("mlp", "MLP, 64 hidden units"),
}
Comparisons = Mapping[tuple[str, str], Comparison]
"""One comparison of the two methods per goal and model, in the order of the table."""


@dataclass(frozen=True)
class DemoPlan:
    """How much is trained."""

    seeds: int = 3
    steps: int = 1000  # under a minute on two cores
    batch_size: int = 512

    def quick(self) -> DemoPlan:
        """Enough steps to see that everything runs, too few to learn from."""
        return replace(self, steps=30)

    @property
    def total_steps(self) -> int:
        """All steps of the demo: cross-entropy once for all goals, Implicit once for each."""
        return self.seeds * len(MODELS) * (1 + len(GOALS)) * self.steps

    def bench(self, model: str, seed: int) -> Bench:
        """What both methods share on one split."""
        given = (MODELS[model].kind, self.steps, self.batch_size, [MODELS[model].learning_rate])
        return ComparisonPlan(GOALS[DRAWN], letter_split, *given).bench(seed)


def letter_split(seed: int) -> DataSplit:
    """The letters in three parts, 50/25/25."""
    return split(letter(), seed)


def run_plan(
    plan: DemoPlan, processes: Processes = 1, on_steps: Callable[[int], None] = lambda _: None
) -> dict[tuple[str, str], Comparison]:
    """Train and judge everything; ``on_steps`` is called with the number of steps just done."""
    seeds = range(plan.seeds)
    cells = [(model, seed) for seed in seeds for model in MODELS]
    with open_pool(processes, on_steps=on_steps) as pool:
        tasks = [pool.submit(run_cell, plan, *cell) for cell in cells]
        found = {cell: pool.result(task) for cell, task in zip(cells, tasks, strict=True)}
    labels = {seed: letter_split(seed).test.y for seed in seeds}
    return {
        (goal, model): Comparison(
            problem, tuple(trial for seed in seeds for trial in found[model, seed][goal]), labels
        )
        for goal, problem in GOALS.items()
        for model in MODELS
    }


def run_cell(plan: DemoPlan, model: str, seed: int) -> dict[str, list[MethodTrial]]:
    """One model on one split by both methods; the trials by goal, cross-entropy first."""
    bench = plan.bench(model, seed)
    # cross-entropy does not know the goal, so one training serves all three
    usual = bench.train(DEMO_METHODS[CROSS_ENTROPY], GOALS[DRAWN])
    trials = {}
    for goal, problem in GOALS.items():
        ours = bench.train(DEMO_METHODS[IMPLICIT], problem)
        fitted = {CROSS_ENTROPY: usual, IMPLICIT: ours}
        trials[goal] = [bench.judge(name, problem, one) for name, one in fitted.items()]
    return trials


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    return {
        "setpoint": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def certify_one(found: Comparisons) -> tuple[Certificate, RunResult]:
    """The linear model of the first seed: its certificate, and the run as the report takes it."""
    model = next(iter(MODELS))
    first = {t.method: t.scores for t in found[DRAWN, model].trials if t.seed == 0}
    ours, theirs = first[IMPLICIT], first[CROSS_ENTROPY]
    parts = letter_split(0)
    names = {"train": "train", "validation": "calibration", "test": "test"}
    labels = {part: getattr(parts, part).y for part in names}
    certificate = certify(ours["validation"], labels["validation"], GOALS[DRAWN])
    run = RunResult(
        goal=str(GOALS[DRAWN]),
        splits={name: (ours[part], labels[part]) for part, name in names.items()},
        threshold=certificate.threshold if certificate.certified else None,
        certificate=json.loads(certificate.to_json()),
        label="letter",
        positive="U",
        method=IMPLICIT,
        model=MODELS[model].title.lower(),
        seed=0,
        versions=versions(),
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        baseline={name: theirs[part] for part, name in names.items()},
        notes=[
            "UCI Letter (D. Slate, 1991, CC BY 4.0): half to train, a quarter to certify, rest."
        ],
    )
    return certificate, run
