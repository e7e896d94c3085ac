"""What the golden files hold: problems of every kind, and the numbers that came out of them.

Public names only, all imported here, so that a rename is one edit. Data come from numpy's
generators, which give the same numbers everywhere. Each family is a dict of name -> function that
returns plain JSON values; ``record.py`` writes them down, ``test_golden.py`` compares.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import tempfile
import warnings
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file
from torch import nn

import setpoint as sp
from setpoint import cli, fairness
from setpoint.certificates import certify_shifts
from setpoint.losses import (
    auc_loss,
    expected_f_loss,
    f_score_loss,
    independent_joint,
    jaccard_loss,
    multiclass_auc_loss,
    partial_auc_loss,
    precision_at_recall_loss,
    structural_loss,
)
from setpoint.programs import as_program
from setpoint.rates import auc_mu, jaccard, lift, one_vs_all_auc, top_k
from setpoint.solvers import GlobalBatch, Penalty, Split, at_least, at_most, equal_to, focal
from setpoint.steps import Hinge, Softplus
from setpoint.train import Averaged, retarget

ROWS = 48
GROUPS = ("a", "b", "c")
NAMES = ("cat", "dog", "bird")
TWO, THREE = {"group": GROUPS[:2]}, {"group": GROUPS}


def per_group(**goal: Any) -> sp.Problem:
    return sp.Problem(**goal, thresholds="per group")


# ---- data ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """What a batch has beside scores and labels."""

    rows: int = ROWS
    outputs: int = 0  # 0: scores are [n]
    classes: int = 0
    groups: int = 0
    queries: int = 0
    weights: bool = False
    resampling: bool = False
    ties: bool = False
    constant: bool = False
    positive: bool = False  # scores above zero
    missing: int | None = None  # a class (or label) that the batch does not have
    numbered: bool = False  # groups and queries are numbers, which compilers can take
    dtype: Any = np.float64
    prevalence: float = 0.3

    def draw(self, seed: int) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Scores, labels, and columns by keyword."""
        rng = np.random.default_rng([20, seed])
        if self.classes:
            labels = np.concatenate(
                [np.arange(self.classes), rng.integers(0, self.classes, self.rows - self.classes)]
            )
            scores = rng.normal(size=(self.rows, self.classes))
            scores[np.arange(self.rows), labels] += 1.2
        else:
            shape = (self.rows, self.outputs) if self.outputs else (self.rows,)
            labels = (rng.random(shape) < self.prevalence).astype(int)
            labels[:2] = np.array([0, 1]).reshape(-1, *[1] * (len(shape) - 1))
            scores = rng.normal(size=shape) + 1.3 * labels
        if self.missing is not None:
            other = (self.missing + 1) % max(self.classes, 2)
            labels = np.where(labels == self.missing, other, labels)
        scores = np.round(4 * scores) / 4 if self.ties else scores
        scores = np.zeros_like(scores) if self.constant else scores
        scores = np.exp(scores) if self.positive else scores
        more: dict[str, np.ndarray] = {}
        if self.weights:
            more["weights"] = rng.integers(0, 5, self.rows) / 2
        if self.resampling:
            more["resampling"] = np.where(labels > 0, 0.5, 1.25)
        if self.groups:
            members = rng.integers(0, self.groups, self.rows)
            more["groups"] = members if self.numbered else np.array(GROUPS)[members]
            inside = members == 0
            scores = scores + 0.4 * (inside[:, None] if scores.ndim == 2 else inside)
        if self.queries:
            asked = rng.integers(0, self.queries, self.rows)
            more["queries"] = asked if self.numbered else np.array([f"q{i}" for i in asked])
        return scores.astype(self.dtype), labels, more


PLAIN = Data()


def tensors(more: dict[str, np.ndarray]) -> dict[str, Any]:
    """Weights as tensors; texts as they are."""
    return {k: v if v.dtype.kind == "U" else torch.from_numpy(v) for k, v in more.items()}


def plain(value: Any) -> Any:
    """Numbers, texts, lists and dicts of them, as JSON has them."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        return plain(value.double().numpy() if value.is_floating_point() else value.numpy())
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(x) for x in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    return value


# ---- criteria --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Steps:
    """A criterion called on several batches of scores; at last once more, without learning."""

    make: Any
    data: Data = Data()
    steps: int = 3
    compiled: bool = False

    def __call__(self) -> Any:
        criterion = self.make()
        run = criterion
        if self.compiled:
            torch._dynamo.reset()
            run = torch.compile(criterion, fullgraph=True, backend="aot_eager")
        found = []
        for step in range(self.steps):
            scores, labels, more = self.data.draw(step)
            leaf = torch.from_numpy(scores).requires_grad_()
            try:
                loss = run(leaf, torch.from_numpy(labels), **tensors(more))
            except (ValueError, RuntimeError) as refused:
                found.append({"refused": type(refused).__name__})
                continue
            loss.backward()
            found.append({"loss": plain(loss), "gradient": plain(leaf.grad), **read(criterion)})
        scores, labels, more = self.data.draw(99)
        with contextlib.suppress(ValueError), torch.no_grad():
            criterion.eval()
            loss = criterion(torch.from_numpy(scores), torch.from_numpy(labels), **tensors(more))
            found.append({"looked": plain(loss), **read(criterion)})
        return found


def read(criterion: Any) -> dict[str, Any]:
    """What a criterion says about itself."""
    names = ("thresholds", "status")
    found = {name: plain(getattr(criterion, name)) for name in names if hasattr(criterion, name)}
    if "status" in found:
        found["status"] = last_batch(found["status"])
    for part in getattr(criterion, "modules", list)():  # its own, or those of its penalty
        if isinstance(getattr(part, "multipliers", None), torch.Tensor) and len(part.multipliers):
            found["multipliers"] = plain(part.multipliers)
    if hasattr(criterion, "stats"):
        stats = {**criterion.stats()}
        stats.pop("recent", None)  # follows from what is recorded of each batch
        found["stats"] = plain({**stats, "status": last_batch(stats["status"])})
    return found


def last_batch(status: str) -> str:
    """A status without the rates of the batches before."""
    return status.split("; over the last ")[0]


@dataclass(frozen=True)
class Trained:
    """A criterion that needs a model: a small network, moved by gradient descent."""

    make: Any  # of the model
    data: Data = Data()
    steps: int = 4
    split: bool = False
    rate: float = 0.2
    backward: Any = field(default=None)

    def __call__(self) -> Any:
        model = network(max(self.data.outputs, 1))
        model = Split(model) if self.split else model
        criterion = self.make(model)
        own = list(getattr(criterion, "parameters", list)())
        params = list({id(p): p for p in [*model.parameters(), *own]}.values())
        found = []
        for step in range(self.steps):
            x, labels, more = features(self.data, step)
            for p in params:
                p.grad = None
            if self.backward is None:
                loss = criterion(model(x), labels, **tensors(more))
                loss.backward()
                now = {"loss": plain(loss), **read(criterion)}
            else:
                now = plain(self.backward(criterion, model, x, labels))
            now["gradients"] = [plain(p.grad) for p in params if p.grad is not None]
            found.append(now)
            with torch.no_grad():
                for p in params:
                    if p.grad is not None:
                        p -= self.rate * p.grad
        return found


def network(outputs: int = 1) -> nn.Module:
    """The same small network every time, in float64."""
    rng = np.random.default_rng(3)
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, outputs)).double()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(rng.normal(size=tuple(p.shape))))
    return model


def features(data: Data, seed: int) -> tuple[torch.Tensor, torch.Tensor, dict[str, np.ndarray]]:
    _, labels, more = data.draw(seed)
    rng = np.random.default_rng([21, seed])
    signal = labels if labels.ndim == 1 else labels[:, 0]
    x = rng.normal(size=(len(labels), 4)) + 0.8 * signal[:, None]
    return torch.from_numpy(x), torch.from_numpy(labels), more


def implicit(problem: sp.Problem, data: Data = PLAIN, steps: int = 3, **options: Any) -> Steps:
    options = {"steps": 4, **options} if "share" not in options else options
    return Steps(partial(sp.Implicit, problem, **options), data, steps)


def compiled(problem: sp.Problem, data: Data = PLAIN, **options: Any) -> Steps:
    return Steps(partial(sp.Implicit, problem, steps=4, **options), data, 3, compiled=True)


EVERYONE = {
    "fnr at fpr": sp.fnr_at_fpr(0.1),
    "tpr at fpr": sp.tpr_at_fpr(0.2),
    "fpr held": sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.at(0.1)),
    "tnr held": sp.Problem(minimize=sp.fnr, subject_to=sp.tnr.at(0.8)),
    "precision at recall": sp.precision_at_recall(0.8),
    "recall at precision": sp.recall_at_precision(0.6),
    "precision at k": sp.precision_at_k(8),
    "precision at k of": sp.precision_at_k(5, of=20),
    "coverage": sp.Problem(maximize=sp.recall, subject_to=sp.coverage <= 0.2),
    "npv": sp.Problem(minimize=sp.coverage, subject_to=sp.npv >= 0.9),
    "two bounds": sp.Problem(minimize=sp.error, subject_to=[sp.fpr <= 0.3, sp.recall >= 0.5]),
    "roc area": sp.roc_auc(fpr=(0, 0.2), points=3),
    "roc area over tpr": sp.roc_auc(tpr=(0.8, 1), points=2),
    "pr area": sp.pr_auc(recall=(0.5, 1.0), points=3),
    "pr area over precision": sp.pr_auc(precision=(0.5, 0.8), points=2),
    "f score": sp.Problem(maximize=sp.f_score(1)),
    "jaccard": sp.Problem(maximize=jaccard),
    "lift": sp.Problem(maximize=lift, subject_to=sp.recall >= 0.5),
    "balanced error": sp.Problem(minimize=sp.balanced_error),
    "difference": sp.Problem(maximize=sp.precision - sp.fpr / 2),
    "worst of two": sp.Problem(minimize=sp.maximum(sp.fnr, sp.fpr)),
    "combination held": sp.Problem(minimize=sp.fnr, subject_to=(sp.fpr + sp.fnr / 2) <= 0.5),
}
SLICED = sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.on(group="a") <= 0.2)
SHARED = sp.Problem(minimize=sp.error, subject_to=fairness.gap(sp.coverage, **TWO) <= 0.1)
GROUPED = {
    "demographic parity": per_group(
        minimize=sp.error, subject_to=fairness.demographic_parity(0.05, **THREE)
    ),
    "equal opportunity": per_group(
        minimize=sp.error, subject_to=fairness.equal_opportunity(0.05, **THREE)
    ),
    "equalized odds": per_group(minimize=sp.error, subject_to=fairness.equalized_odds(0.2, **TWO)),
    "four fifths": per_group(maximize=sp.f_score(1), subject_to=fairness.four_fifths(0.9, **THREE)),
    "predictive parity": per_group(
        minimize=sp.error, subject_to=fairness.predictive_parity(0.1, **TWO)
    ),
    "fpr of each": per_group(
        minimize=sp.fnr, subject_to=[r <= 0.2 for r in fairness.each(sp.fpr, **THREE)]
    ),
    "largest": per_group(minimize=fairness.largest(sp.fnr, **TWO), subject_to=sp.coverage <= 0.4),
    "held gap": per_group(
        minimize=sp.error, subject_to=(sp.coverage.on(group="a") - sp.coverage.on(group="b")).at(0)
    ),
    "group loss": per_group(minimize=sp.error, subject_to=fairness.bounded_group_loss(0.45, **TWO)),
    "recall and parity": per_group(
        minimize=sp.error, subject_to=[sp.recall >= 0.7, fairness.demographic_parity(0.1, **TWO)]
    ),
}
NUMBERED = per_group(minimize=sp.error, subject_to=fairness.demographic_parity(0.1, group=[0, 1]))
CLASSES = {
    "macro recall": sp.Problem(maximize=sp.macro(sp.recall)),
    "coverage held": sp.Problem(minimize=sp.error, subject_to=sp.coverage.of(1).at(0.25)),
    "lowest": sp.Problem(maximize=sp.lowest(sp.recall)),
    "accuracy, floor": sp.Problem(maximize=sp.accuracy, subject_to=sp.recall.of(0) >= 0.7),
    "two bounds": sp.Problem(
        minimize=sp.error, subject_to=[sp.recall.of(0) >= 0.6, sp.coverage.of(2) <= 0.35]
    ),
    "cost": sp.Problem(minimize=sp.cost([[0, 1, 2], [3, 0, 1], [1, 5, 0]])),
    "macro f": sp.Problem(maximize=sp.macro(sp.f_score(1))),
    "top 2": sp.Problem(maximize=top_k(2)),
    "highest": sp.Problem(minimize=sp.error, subject_to=sp.highest(sp.fpr) <= 0.3),
}
SLICED_CLASSES = sp.Problem(
    maximize=sp.macro(sp.recall), subject_to=sp.coverage.of(1).on(group="a") <= 0.4
)
QUERIES = {
    "precision at k": sp.precision_at_k(3).per("query"),
    "fnr at fpr": sp.fnr_at_fpr(0.25).per("query"),
    "recall held": sp.Problem(maximize=sp.precision, subject_to=sp.recall.at(0.5)).per("query"),
    "pr area": sp.pr_auc(recall=(0.5, 1), points=2).per("query"),
    "roc area": sp.roc_auc(fpr=(0, 0.5), points=2).per("query"),
    "f score": sp.Problem(maximize=sp.f_score(1)).per("query"),
}
BOUND, HELD = EVERYONE["fnr at fpr"], EVERYONE["fpr held"]
AREA, RANKED, MACRO = EVERYONE["pr area"], QUERIES["precision at k"], CLASSES["macro recall"]
FAIR, COVERED = GROUPED["demographic parity"], CLASSES["coverage held"]
SOME_GROUPS, OF_CLASSES, OF_QUERIES = Data(groups=3), Data(classes=3), Data(queries=5)
WEIGHED, TIED, SINGLE = Data(weights=True), Data(ties=True), Data(dtype=np.float32)
FINE = Data(rows=96)


def published(model: nn.Module) -> Any:
    """The paper's settings; the threshold follows the weights between corrections."""
    return sp.Implicit.as_published(
        HELD, correct_every=3, correction_batches=2, follow=model.parameters()
    )


def groups_of(problem: sp.Problem) -> Data:
    return Data(groups=len({where for where in problem.slices if where}))


IMPLICIT = {
    **{f"everyone, {name}": implicit(goal) for name, goal in EVERYONE.items()},
    **{f"groups, {name}": implicit(goal, groups_of(goal), 2) for name, goal in GROUPED.items()},
    **{f"classes, {name}": implicit(goal, OF_CLASSES, 2) for name, goal in CLASSES.items()},
    **{f"queries, {name}": implicit(goal, OF_QUERIES, 2) for name, goal in QUERIES.items()},
    # the bare implicit loss
    "everyone, bare": implicit(BOUND, share=0.0, steps=2),
    "everyone, bare area": implicit(AREA, share=0.0, steps=2),
    "groups, bare": implicit(FAIR, SOME_GROUPS, share=0.0),
    "classes, bare": implicit(COVERED, OF_CLASSES, share=0.0),
    "queries, bare": implicit(RANKED, OF_QUERIES, share=0.0),
    # weights, ties, resampling
    "everyone, weights": implicit(EVERYONE["precision at recall"], WEIGHED),
    "everyone, weights, area": implicit(AREA, WEIGHED),
    "everyone, ties": implicit(BOUND, TIED),
    "everyone, ties and weights": implicit(HELD, Data(ties=True, weights=True)),
    "everyone, resampling": implicit(BOUND, Data(resampling=True, weights=True)),
    "groups, weights and ties": implicit(FAIR, Data(groups=3, weights=True, ties=True)),
    "groups, resampling": implicit(FAIR, Data(groups=3, resampling=True)),
    "classes, weights and ties": implicit(COVERED, Data(classes=3, weights=True, ties=True)),
    "classes, resampling": implicit(MACRO, Data(classes=3, resampling=True)),
    "queries, weights and ties": implicit(RANKED, Data(queries=5, weights=True, ties=True)),
    # memory and schedules
    "everyone, memory": implicit(BOUND, WEIGHED, 4, memory=100),
    "everyone, memory, area": implicit(AREA, memory=60),
    "groups, memory": implicit(FAIR, SOME_GROUPS, 4, memory=100),
    "everyone, corrected rarely": implicit(BOUND, Data(), 5, correct_every=2, correction_batches=2),
    "everyone, corrected rarely, area": implicit(AREA, Data(), 4, correct_every=3),
    "everyone, as published": Steps(
        partial(
            sp.Implicit.as_published, HELD, correct_every=2, correction_batches=2, flatness=0.1
        ),
        steps=4,
    ),
    "everyone, as published, softplus": Steps(
        partial(sp.Implicit.as_published, HELD, surrogate="softplus", temperature=2.0)
    ),
    "everyone, followed": Trained(published),
    "everyone, followed from the start": Trained(
        lambda model: sp.Implicit(BOUND, steps=4, correct_every=2, follow=model.parameters())
    ),
    # options
    "everyone, flatness": implicit(BOUND, flatness=0.5),
    "everyone, flatness, area": implicit(EVERYONE["roc area"], flatness=0.5, share=0.0),
    "everyone, softplus": implicit(HELD, step=Softplus()),
    "everyone, hinge": implicit(HELD, step=Hinge()),
    "everyone, wide": implicit(BOUND, step=sp.Sigmoid(width=0.5), widening=2.0),
    "everyone, temperature": implicit(BOUND, step=sp.Sigmoid(temperature=0.3)),
    "everyone, focal": implicit(BOUND, main="focal", end=0.2),
    "everyone, own main loss": implicit(BOUND, main=nn.BCEWithLogitsLoss()),
    "everyone, slope floor": implicit(BOUND, slope_floor=0.05),
    "groups, wide": implicit(FAIR, SOME_GROUPS, step=sp.Sigmoid(width=0.5), main="focal"),
    "classes, named": Steps(
        partial(
            sp.Implicit,
            sp.Problem(maximize=sp.macro(sp.recall), subject_to=sp.coverage.of("dog") <= 0.3),
            classes=NAMES,
            steps=4,
        ),
        OF_CLASSES,
    ),
    "classes, weights of positive scores": implicit(
        COVERED, Data(classes=3, positive=True), rule="weight"
    ),
    "classes, plain main loss": implicit(MACRO, OF_CLASSES, main="cross_entropy"),
    "classes, slices": implicit(SLICED_CLASSES, Data(classes=3, groups=2)),
    "classes, two": implicit(MACRO, Data(classes=2)),
    "queries, wide": implicit(RANKED, OF_QUERIES, step=sp.Sigmoid(width=0.5), end=0.1),
    # outputs, slices
    "everyone, several outputs": implicit(BOUND, Data(outputs=3)),
    "everyone, several outputs and thresholds": implicit(AREA, Data(outputs=2, weights=True)),
    "everyone, one column": implicit(BOUND, Data(outputs=1), steps=2),
    "everyone, slices": implicit(SLICED, Data(groups=2)),
    "everyone, slices, area": implicit(
        sp.Problem(maximize=sp.recall, subject_to=sp.fpr.on(group="a").over(0, 0.4), thresholds=2),
        Data(groups=2),
    ),
    "everyone, gap": implicit(SHARED, Data(groups=2)),
    # trouble
    "everyone, constant": implicit(BOUND, Data(constant=True), 2),
    "everyone, no positives": implicit(BOUND, Data(missing=1), 2),
    "everyone, no negatives": implicit(BOUND, Data(missing=0), 2),
    "everyone, too coarse": implicit(sp.fnr_at_fpr(0.001), steps=2),
    "everyone, infeasible": implicit(sp.recall_at_precision(0.999), TIED, 2),
    "everyone, strict": implicit(BOUND, FINE, 2, strict=True),
    "everyone, strict, refused": implicit(sp.fnr_at_fpr(0.001), Data(), 2, strict=True),
    "groups, constant": implicit(FAIR, Data(groups=3, constant=True), 2),
    "groups, one missing": implicit(FAIR, Data(groups=2), 2),
    "groups, strict": implicit(FAIR, Data(groups=2), 2, strict=True),
    "classes, constant": implicit(COVERED, Data(classes=3, constant=True), 2),
    "classes, one missing": implicit(MACRO, Data(classes=3, missing=2), 2),
    "classes, strict": implicit(MACRO, Data(classes=3, missing=2), 2, strict=True),
    "queries, constant": implicit(RANKED, Data(queries=5, constant=True), 2),
    "queries, no positives": implicit(RANKED, Data(queries=5, missing=1), 2),
    "queries, strict": implicit(QUERIES["fnr at fpr"], Data(queries=9), 2, strict=True),
    # precision
    "everyone, float32": implicit(BOUND, SINGLE),
    "everyone, float16": implicit(BOUND, Data(dtype=np.float16)),
    "everyone, float32, area": implicit(AREA, SINGLE),
    "groups, float32": implicit(FAIR, Data(groups=3, dtype=np.float32)),
    "classes, float32": implicit(COVERED, Data(classes=3, dtype=np.float32)),
    "queries, float32": implicit(RANKED, Data(queries=5, dtype=np.float32)),
}

COMPILED = {  # each takes seconds
    "everyone, compiled": compiled(BOUND, WEIGHED, memory=100),
    "groups, compiled": compiled(NUMBERED, Data(groups=2, numbered=True)),
    "classes, compiled": compiled(COVERED, OF_CLASSES),
    "queries, compiled": compiled(RANKED, Data(queries=5, numbered=True)),
}


# ---- the other solvers -----------------------------------------------------------------------


def loss(function: Any, data: Data = WEIGHED, **options: Any) -> Steps:
    """A function of scores and labels."""
    return Steps(lambda: GlobalBatch(partial(function, **options)), data, 2)


def expected() -> Any:
    probabilities = torch.from_numpy(np.random.default_rng(4).random(12)).requires_grad_()
    value = expected_f_loss(*independent_joint(probabilities), beta=2.0)
    value.backward()
    return {"loss": plain(value), "gradient": plain(probabilities.grad)}


def programs() -> Any:
    """Losses written as linear programs: their sizes and sums."""
    scores, labels, _ = Data(rows=12).draw(0)
    found = {}
    given = torch.from_numpy(scores), torch.from_numpy(labels)
    for name, written in {
        "auc": as_program(auc_loss, *given),
        "partial auc": as_program(partial_auc_loss, *given, fpr=(0, 0.5)),
        "f score": as_program(f_score_loss, *given, threshold=0.0),
        "jaccard": as_program(jaccard_loss, *given, threshold=0.0),
        "precision at recall": as_program(precision_at_recall_loss, *given, recall=0.8),
        "structural": as_program(structural_loss, *given, metric=sp.error),
    }.items():
        found[name] = [
            [list(part.shape), part.to_dense().sum().item(), part.to_dense().norm().item()]
            for part in (written.c, written.A, written.b)
        ]
    return found


def bounded(barrier: Any, model: nn.Module, x: Any, y: Any) -> Any:
    scores = model(x).squeeze(-1)
    fits = nn.functional.binary_cross_entropy_with_logits(scores, y.double())
    barrier.backward(
        (scores**2).mean(),
        subject_to=[at_most(fits, 0.5), at_least(scores.mean(), -1.0), equal_to(scores[0], 0.1)],
    )
    return dict(barrier.report())


def ordered(barrier: Any, model: nn.Module, x: Any, y: Any) -> Any:
    scores = model(x).squeeze(-1)
    fits = nn.functional.binary_cross_entropy_with_logits(scores, y.double())
    barrier.backward((scores**2).mean(), after=[fits, scores.var()], lower=[0.0, 0.0])
    return dict(barrier.report())


SOLVERS = {
    "cross entropy": Steps(lambda: sp.CrossEntropy(BOUND)),
    "cross entropy, balanced": Steps(lambda: sp.CrossEntropy(positives="balanced"), WEIGHED),
    "cross entropy, focal, outputs": Steps(lambda: sp.CrossEntropy(gamma=2.0), Data(outputs=2)),
    "cross entropy, slices": Steps(lambda: sp.CrossEntropy(SLICED), Data(groups=2)),
    "any loss": Steps(lambda: GlobalBatch(focal), WEIGHED),
    "lagrangian": Steps(lambda: sp.Lagrangian(BOUND), WEIGHED, 4),
    "lagrangian, fixed threshold": Steps(lambda: sp.Lagrangian(BOUND, threshold=0.1), steps=4),
    "lagrangian, proxy": Steps(lambda: sp.Lagrangian(BOUND, proxy=True), WEIGHED, 4),
    "lagrangian, swap": Steps(lambda: sp.Lagrangian(BOUND, proxy=True, regret="swap"), steps=4),
    "lagrangian, ratio": Steps(lambda: sp.Lagrangian(sp.recall_at_precision(0.6)), steps=4),
    "lagrangian, area": Steps(lambda: sp.Lagrangian(AREA), steps=3),
    "lagrangian, slices": Steps(lambda: sp.Lagrangian(SLICED), Data(groups=2), 3),
    "lagrangian, gap": Steps(lambda: sp.Lagrangian(SHARED), Data(groups=2), 3),
    "last layer": Trained(lambda split: sp.LastLayer(BOUND, split, steps=4), split=True),
    "last layer, penalty": Trained(
        lambda split: sp.LastLayer(BOUND, split, body=Penalty()), WEIGHED, split=True
    ),
    "last layer, penalty everywhere": Trained(
        lambda split: sp.LastLayer(BOUND, split, body=Penalty(everywhere=True)), split=True
    ),
    "pairwise, squared hinge": Steps(lambda: sp.Pairwise(EVERYONE["roc area"])),
    "pairwise, sigmoid": Steps(lambda: sp.Pairwise(BOUND, surrogate="sigmoid"), WEIGHED),
    "program, area": Steps(lambda: sp.Program(EVERYONE["roc area"])),
    "program, precision at recall": Steps(lambda: sp.Program(sp.precision_at_recall(0.8))),
    "program, misses": Steps(lambda: sp.Program(BOUND)),
    "program, f score": Steps(lambda: sp.Program(sp.Problem(maximize=sp.f_score(1)))),
    "program, jaccard": Steps(lambda: sp.Program(sp.Problem(maximize=jaccard)), WEIGHED),
    "program, structural": Steps(lambda: sp.Program(sp.Problem(minimize=sp.error))),
    "auc": loss(auc_loss),
    "auc, ramp": loss(auc_loss, surrogate="ramp"),
    "partial auc": loss(partial_auc_loss, fpr=(0.1, 0.4)),
    "f score": loss(f_score_loss, beta=2.0, threshold=0.0),
    "f score, best threshold": loss(f_score_loss, threshold="best", lift=False),
    "jaccard": loss(jaccard_loss, margin=0.5, threshold=0.0),
    "precision at recall": loss(precision_at_recall_loss, recall=0.8),
    "precision at recall, fpr": loss(precision_at_recall_loss, recall=0.8, objective="fpr"),
    "structural": loss(structural_loss, metric=sp.f_score(1)),
    "classes, mu": loss(multiclass_auc_loss, Data(classes=3, weights=True)),
    "classes, one against all": loss(multiclass_auc_loss, OF_CLASSES, kind="one_vs_all"),
    "expected f": expected,
    "programs": programs,
    "barrier": Trained(lambda model: sp.Barrier(model.parameters()), backward=bounded),
    "barrier, every 2": Trained(lambda m: sp.Barrier(m.parameters(), every=2), backward=bounded),
    "barrier, ordered": Trained(lambda model: sp.Barrier(model.parameters()), backward=ordered),
    "rate barrier": Trained(lambda model: sp.RateBarrier(BOUND, model.parameters())),
    "rate barrier, slices": Trained(
        lambda model: sp.RateBarrier(SLICED, model.parameters()), Data(groups=2, weights=True)
    ),
}


# ---- choices ---------------------------------------------------------------------------------


def choice(problem: sp.Problem, data: Data = PLAIN, **options: Any) -> Any:
    """What is chosen, what it is worth, and what the first batch's thresholds are worth later."""

    def found() -> Any:
        scores, labels, more = data.draw(0)
        chosen = problem.choose(scores, labels, **more, **options)
        later, truth, others = data.draw(1)
        known = {"thresholds": chosen.thresholds} if "queries" not in more else {}
        return {
            "thresholds": plain(chosen.thresholds),
            "value": plain(chosen.value),
            "rates": plain(dict(chosen.rates)),
            "evaluated": plain(problem.evaluate(scores, labels, **more, **options)),
            "later": plain(problem.evaluate(later, truth, **known, **others, **options)),
            "in torch": plain(
                problem.evaluate(torch.from_numpy(scores), labels, **more, **options)
            ),
        }

    def recorded() -> Any:
        try:
            return found()
        except ValueError as refused:
            return {"refused": type(refused).__name__}

    return recorded


def worth(problem: sp.Problem, data: Data) -> Any:
    """The value of what needs no thresholds."""

    def recorded() -> Any:
        scores, labels, more = data.draw(0)
        return plain(problem.evaluate(scores, labels, **more))

    return recorded


CHOICES = {
    **{f"everyone, {name}": choice(goal) for name, goal in EVERYONE.items()},
    **{
        f"groups, {name}": choice(goal, Data(rows=90, groups=groups_of(goal).groups))
        for name, goal in GROUPED.items()
    },
    **{f"classes, {name}": choice(goal, OF_CLASSES) for name, goal in CLASSES.items()},
    **{f"queries, {name}": choice(goal, OF_QUERIES) for name, goal in QUERIES.items()},
    "everyone, weights": choice(BOUND, WEIGHED),
    "everyone, weights and ties": choice(AREA, Data(weights=True, ties=True)),
    "everyone, slices": choice(SLICED, Data(groups=2)),
    "everyone, float32": choice(HELD, SINGLE),
    "everyone, float16": choice(HELD, Data(dtype=np.float16)),
    "everyone, infeasible": choice(sp.recall_at_precision(0.999), TIED),
    "everyone, no positives": choice(BOUND, Data(missing=1)),
    "groups, weights and ties": choice(FAIR, Data(rows=90, groups=3, weights=True, ties=True)),
    "groups, everyone at once": choice(
        per_group(
            maximize=fairness.smallest(sp.tpr, **TWO),
            subject_to=fairness.ratio(sp.coverage, **TWO) >= 0.9,
        ),
        Data(rows=90, groups=2),
    ),
    "classes, weights and ties": choice(COVERED, Data(classes=3, weights=True, ties=True)),
    "classes, named": choice(
        sp.Problem(maximize=sp.recall.of("cat"), subject_to=sp.precision.of("dog") >= 0.5),
        OF_CLASSES,
        classes=NAMES,
    ),
    "classes, slices": choice(SLICED_CLASSES, Data(classes=3, groups=2)),
    "classes, area": worth(sp.Problem(maximize=auc_mu), Data(classes=3, weights=True)),
    "classes, one against all": worth(sp.Problem(maximize=one_vs_all_auc), OF_CLASSES),
    "queries, weights and ties": choice(RANKED, Data(queries=5, weights=True, ties=True)),
}


# ---- certificates ----------------------------------------------------------------------------

CALIBRATION = Data(rows=600)
BY_GROUP = Data(rows=900, groups=3)
BY_CLASS = Data(rows=400, classes=3)
NUMBER = re.compile(r"\d[\d,.]*\d|\d")


def facts(certificate: Any) -> Any:
    """The numbers of a certificate; of its prose only the numbers in it."""
    found = json.loads(certificate.to_json())
    for name in ("version", "checksum", "assumptions"):
        found.pop(name, None)
    for name in ("notes", "advice"):
        texts = " ".join(found.pop(name, []))
        found[f"numbers in {name}"] = sorted(NUMBER.findall(texts))
    for claim in found["claims"]:
        claim["counts"] = NUMBER.findall(claim["counts"])
    return found


def certified(goal: Any, data: Data = CALIBRATION, **options: Any) -> Any:
    def recorded() -> Any:
        scores, labels, more = data.draw(0)
        try:
            certificate = sp.certify(scores, labels, goal, **more, **options)
        except ValueError as refused:
            return {"refused": type(refused).__name__}
        found = {"json": facts(certificate)}
        if certificate.certified:
            new, truth, others = data.draw(1)
            others.pop("weights", None)
            check = certificate.check(new, truth, **others)
            accepted = certificate.decide(new, **(others if certificate.column else {}))
            found |= {"check": check.exit_code, "accepted": int(accepted.sum())}
        return found

    return recorded


def given(goal: sp.Problem, data: Data, thresholds: Any = None, **options: Any) -> Any:
    """Thresholds that were chosen on other rows."""

    def recorded() -> Any:
        scores, labels, more = data.draw(1)
        at = thresholds
        if at is None:
            at = goal.choose(scores, labels, **more).thresholds
        scores, labels, more = data.draw(0)
        return {"json": facts(sp.certify(scores, labels, goal, thresholds=at, **more, **options))}

    return recorded


def shifted(sentence: str, shifts: tuple[float, ...] = (0.2, -0.1, -0.1), **options: Any) -> Any:
    def recorded() -> Any:
        scores, labels, _ = BY_CLASS.draw(0)
        problem = sp.Problem.parse(sentence)
        return {
            "json": facts(certify_shifts(scores, labels, problem, shifts, classes=NAMES, **options))
        }

    return recorded


A, B = sp.fpr.on(group="a"), sp.fpr.on(group="b")
CERTIFICATES = {
    "fpr": certified(sp.fpr <= 0.05),
    "fpr, infeasible": certified(sp.fpr <= 0.001),
    "tnr": certified(sp.tnr >= 0.9),
    "recall": certified(sp.recall >= 0.8),
    "fnr": certified(sp.fnr <= 0.3),
    "coverage": certified(sp.coverage <= 0.2),
    "precision": certified(sp.precision >= 0.7),
    "precision, not certified": certified(sp.precision >= 0.95),
    "npv": certified(sp.npv >= 0.85),
    "f score": certified(sp.f_score(1) >= 0.5),
    "jaccard": certified(jaccard >= 0.3),
    "error": certified(sp.error <= 0.3),
    "accuracy": certified(sp.accuracy >= 0.7),
    "balanced error": certified(sp.balanced_error <= 0.4),
    "lift": certified(lift >= 1.5),
    "combination": certified(sp.fpr + sp.fnr / 2 <= 0.47),
    "worst of two": certified(sp.maximum(sp.fnr, sp.fpr) <= 0.5),
    "two bounds": certified([sp.fpr <= 0.3, sp.recall >= 0.6]),
    "three bounds": certified([sp.fpr <= 0.3, sp.recall >= 0.5, sp.precision >= 0.4]),
    "problem": certified(
        sp.Problem(maximize=sp.f_score(1), subject_to=[sp.fpr <= 0.2, sp.recall >= 0.5])
    ),
    "problem, precision": certified("maximize precision subject to recall >= 0.6"),
    "sentence": certified("fpr <= 5 % and recall >= 0.3"),
    "confidence": certified(sp.fpr <= 0.05, confidence=0.99),
    "candidates": certified(sp.fpr <= 0.05, candidates=20),
    "mean": certified(sp.fpr <= 0.05, guarantee="mean"),
    "mean, recall": certified(sp.recall >= 0.9, guarantee="mean"),
    "prevalence": certified(sp.precision >= 0.4, prevalence=0.1),
    "prevalence, coverage": certified(sp.coverage <= 0.2, prevalence=0.05),
    "ties": certified(sp.fpr <= 0.1, Data(rows=600, ties=True)),
    "constant": certified(sp.fpr <= 0.1, Data(rows=600, constant=True)),
    "float32": certified(sp.fpr <= 0.05, Data(rows=600, dtype=np.float32)),
    "weights": certified(sp.fpr <= 0.05, Data(rows=600, weights=True)),
    "an exact value": certified(sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.at(0.05))),
    "alerts": certified("maximize precision subject to coverage <= 0.1"),
    "groups": certified(sp.fpr <= 0.1, BY_GROUP),
    "groups, two bounds": certified([sp.fpr <= 0.3, sp.recall >= 0.5], BY_GROUP),
    "groups, mean": certified(sp.fpr <= 0.1, BY_GROUP, guarantee="mean"),
    "slices": certified([A <= 0.1, B <= 0.2], BY_GROUP),
    "slices, gap": certified([sp.fpr <= 0.2, abs(A - B) <= 0.2], BY_GROUP),
    "slices, ratio": certified([sp.fpr <= 0.3, A / B >= 0.2], BY_GROUP),
    "given": given(sp.fnr_at_fpr(0.1), CALIBRATION, 1.9),
    "given, not certified": given(sp.fnr_at_fpr(0.1), CALIBRATION, 0.5),
    "given, per group": given(
        per_group(minimize=sp.error, subject_to=fairness.demographic_parity(0.4, **THREE)), BY_GROUP
    ),
    "given, each group": given(
        per_group(minimize=sp.fnr, subject_to=[r <= 0.2 for r in fairness.each(sp.fpr, **THREE)]),
        BY_GROUP,
        dict.fromkeys(GROUPS, 1.6),
    ),
    "classes, recall": shifted('minimize error subject to recall of "dog" >= 0.5'),
    "classes, two": shifted(
        'minimize error subject to recall of "dog" >= 0.5 and fpr of "cat" or "dog" <= 0.5'
    ),
    "classes, lowest": shifted("maximize accuracy subject to lowest(recall) >= 0.6"),
    "classes, error": shifted("maximize macro(recall) subject to error <= 0.5", confidence=0.9),
    "classes, not certified": shifted("maximize accuracy subject to lowest(recall) >= 0.95"),
    "classes, no bound": shifted("maximize macro(recall)"),
}


# ---- training --------------------------------------------------------------------------------


def write_table(path: Path, rows: int, seed: int) -> Path:
    """A table to learn from: numbers, categories, gaps, a group."""
    rng = np.random.default_rng([22, seed])
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "income", "city", "sex", "churn"])
        for i in range(rows):
            y = rng.random() < 0.3
            age = "" if rng.random() < 0.05 else round(float(rng.normal(40 + 20 * y, 10)), 2)
            city = ("Rome", "Oslo", "Bonn")[rng.integers(3)]
            income = round(float(rng.normal(3 - y, 1)), 3)
            writer.writerow([age, income, city, "fm"[i % 2], "yes" if y else "no"])
    return path


def cells(page: str) -> list[str]:
    """The numbers in the tables of a page, in order."""
    tables = " ".join(re.findall(r"<table.*?</table>", page, re.S))
    return NUMBER.findall(re.sub(r"<[^>]+>", " ", tables))


def trained(goal: str, *more: str) -> Any:
    """What ``setpoint train`` leaves in its folder."""

    def recorded() -> Any:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            table = write_table(folder / "data.csv", 400, 0)
            test = write_table(folder / "test.csv", 150, 1)
            command = ["train", str(table), "--label", "churn", "--goal", goal, "--quiet"]
            command += ["--out", str(folder / "run"), "--test", str(test), *more]
            command += ["--model", "linear", "--epochs", "3", "--batch-size", "64"]
            with contextlib.redirect_stdout(io.StringIO()):
                code = cli.main(command)
            return {"code": code, **folder_of(folder / "run")}

    return recorded


def folder_of(run: Path) -> dict[str, Any]:
    history = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    model, scores = (load_file(run / f"{name}.safetensors") for name in ("model", "scores"))
    described = json.loads((run / "run.json").read_text())
    certificate = json.loads((run / "certificate.json").read_text())
    for name in ("version", "checksum", "assumptions", "notes", "advice"):
        certificate.pop(name, None)
    for claim in certificate["claims"]:
        claim["counts"] = NUMBER.findall(claim["counts"])
    return {
        "certificate": certificate,
        "columns": described["columns"],
        "history": [{k: v for k, v in row.items() if k != "seconds"} for row in history],
        "model": {name: plain(value) for name, value in sorted(model.items())},
        "scores": {
            name: [len(value), *plain(value.astype(float).reshape(len(value), -1)[:8].ravel())]
            for name, value in sorted(scores.items())
            if value.dtype.kind == "f" or name.endswith("labels")
        },
        "report": cells((run / "report.html").read_text()),
    }


def table_of(rows: int, seed: int, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([23, seed])
    y = rng.integers(0, classes, rows)
    x = rng.normal(size=(rows, 4))
    x[:, :classes] += 1.3 * np.eye(classes)[y]
    return x, y


def classifier(goal: str, classes: int = 2, **options: Any) -> Any:
    def recorded() -> Any:
        given = {"model": "linear", "epochs": 4, "batch_size": 64, "random_state": 0} | options
        model = sp.Classifier(goal, **given)
        x, y = table_of(400, 0, classes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(x, y)
        new, truth = table_of(100, 1, classes)
        certificate = model.certificate_
        return {
            "weights": [plain(p) for p in model.module_.parameters()],
            "threshold": plain(getattr(model, "shifts_" if classes > 2 else "threshold_")),
            "certificate": None if certificate is None else facts(certificate),
            "predicted": plain(model.predict(new)),
            "probabilities": plain(model.predict_proba(new)[:10]),
            "score": model.score(new, truth),
        }

    return recorded


def ranker() -> Any:
    x, y = table_of(300, 2)
    queries = np.repeat(np.arange(30), 10)
    model = sp.Ranker(sp.precision_at_k(3), epochs=4, batch_size=8, random_state=0)
    model.fit(x, y, qid=queries)
    return {
        "weights": [plain(p) for p in model.module_.parameters()],
        "scores": plain(model.predict(x)[:20]),
        "score": model.score(x, y, qid=queries),
    }


def fitted() -> Any:
    """The training loop by itself with stratified batches, then another goal for the last layer."""
    x, y = (torch.from_numpy(part) for part in table_of(300, 3))
    model = network()
    done = sp.fit(
        model,
        sp.Implicit(BOUND, steps=12),
        x,
        y,
        steps=12,
        batch_size=32,
        learning_rate=0.05,
        seed=0,
        sampler=sp.Stratified(32, least=8),
    )
    weights = [plain(p) for p in done.model.parameters()]
    again = retarget(model, None, sp.precision_at_recall(0.7), [(x, y)], steps=20, batch_size=100)
    return {
        "weights": weights,
        "retargeted": [plain(p) for p in model.parameters()],
        "thresholds": plain(again.thresholds),
        "values": [again.value, again.before],
    }


def averaged() -> Any:
    model = network()
    mean = Averaged(model)
    for step in range(4):
        with torch.no_grad():
            for p in model.parameters():
                p += 0.1 * (step + 1)
        mean.update()
    x, _, _ = features(Data(), 0)
    return plain(mean(x[:8]))


TRAINED = {
    "train": trained("maximize recall subject to fpr <= 0.2", "--group", "sex", "--use-protected"),
    "train, classes": trained("maximize macro(recall)"),
    "classifier": classifier("minimize fnr subject to fpr <= 0.2"),
    "classifier, mlp, auto": classifier("maximize f_score(1)", model="mlp", method="auto"),
    "classifier, classes": classifier("minimize error subject to recall of 0 >= 0.3", 3),
    "ranker": ranker,
    "fit": fitted,
    "averaged": averaged,
}

FAMILIES = {
    "implicit": IMPLICIT,
    "compiled": COMPILED,
    "solvers": SOLVERS,
    "choices": CHOICES,
    "certificates": CERTIFICATES,
    "trained": TRAINED,
}
