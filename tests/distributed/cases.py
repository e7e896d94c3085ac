"""Every solver with every kind of goal: what must not depend on the number of processes."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from setpoint import (
    CrossEntropy,
    Implicit,
    Lagrangian,
    LastLayer,
    Pairwise,
    Problem,
    Program,
    RateBarrier,
    coverage,
    error,
    f_score,
    fnr,
    fnr_at_fpr,
    fpr,
    macro,
    pr_auc,
    precision,
    precision_at_k,
    precision_at_recall,
    recall,
    recall_at_precision,
    roc_auc,
)
from setpoint.fairness import demographic_parity
from setpoint.losses import multiclass_auc_loss
from setpoint.rates import jaccard
from setpoint.solvers import GlobalBatch, Penalty, Split, focal
from setpoint.steps import Softplus

ROWS = 64


@dataclass(frozen=True)
class Case:
    """A criterion, made for a model, and what it is called with beside scores and labels."""

    make: Any
    outputs: int = 1
    weights: bool = False
    groups: str = ""
    classes: int = 0
    split: bool = False
    queries: bool = False
    resampling: bool = False


def implicit(problem, **options):
    return lambda model: Implicit(problem, **options)


def published(model):
    problem = Problem(minimize=fnr, subject_to=fpr.at(0.2))
    return Implicit.as_published(
        problem, correct_every=2, correction_batches=2, follow=model.parameters()
    )


GOALS = {
    "fnr at fpr": fnr_at_fpr(0.1),
    "fpr held": Problem(minimize=fnr, subject_to=fpr.at(0.1)),
    "precision at recall": precision_at_recall(0.8),
    "recall at precision": recall_at_precision(0.6),
    "precision at k": precision_at_k(8),
    "coverage": Problem(maximize=recall, subject_to=coverage <= 0.2),
    "two bounds": Problem(minimize=error, subject_to=[fpr <= 0.3, recall >= 0.5]),
    "roc area": roc_auc(fpr=(0, 0.2), points=3),
    "pr area": pr_auc(recall=(0.5, 1.0), points=3),
    "f score": Problem(maximize=f_score(1)),
    "difference": Problem(maximize=precision - fpr / 2),
}
SLICED = Problem(minimize=fnr, subject_to=fpr.on(group="a") <= 0.2)
NUMBERED = Problem(maximize=recall.on(group=0), subject_to=coverage <= 0.3)
BOUND = fnr_at_fpr(0.2)
FAIR = Problem(
    minimize=error,
    subject_to=demographic_parity(0.1, group=["a", "bee"]),
    thresholds="per group",
)
RANKED = precision_at_k(3).per("query")
MACRO = Problem(maximize=macro(recall))
COVERED = Problem(minimize=error, subject_to=coverage.of(1).at(0.25))

CASES = {
    **{f"implicit, {name}": Case(implicit(goal, steps=6)) for name, goal in GOALS.items()},
    **{f"bare, {name}": Case(implicit(goal, share=0.0)) for name, goal in GOALS.items()},
    "implicit, memory": Case(implicit(BOUND, memory=100), weights=True),
    "implicit, flatness": Case(implicit(BOUND, flatness=0.5)),
    "implicit, softplus": Case(implicit(GOALS["fpr held"], step=Softplus())),
    "implicit, own main loss": Case(implicit(BOUND, main=nn.BCEWithLogitsLoss())),
    "implicit, corrected rarely": Case(implicit(BOUND, correct_every=2, correction_batches=2)),
    "implicit, as published, followed": Case(published),
    "implicit, weights": Case(implicit(GOALS["precision at recall"], steps=6), weights=True),
    "implicit, resampled": Case(implicit(BOUND, steps=6), resampling=True),
    "implicit, several outputs": Case(implicit(BOUND, steps=6), outputs=3),
    "implicit, groups of texts": Case(implicit(SLICED), groups="text"),
    "implicit, groups by name": Case(implicit(NUMBERED), groups="named"),
    "implicit, groups in a tensor": Case(implicit(NUMBERED), groups="tensor"),
    "implicit, per group": Case(implicit(FAIR, steps=6), groups="text", weights=True),
    "bare, per group": Case(implicit(FAIR, share=0.0), groups="text"),
    "implicit, per group, memory": Case(implicit(FAIR, memory=100), groups="text"),
    "implicit, per query": Case(implicit(RANKED, steps=6), queries=True, weights=True),
    "bare, per query": Case(implicit(RANKED, share=0.0), queries=True),
    **{
        f"lagrangian, {name}": Case(lambda _, goal=goal: Lagrangian(goal))
        for name, goal in GOALS.items()
    },
    "proxy lagrangian": Case(lambda _: Lagrangian(BOUND, proxy=True), weights=True),
    "swap regret": Case(lambda _: Lagrangian(BOUND, proxy=True, regret="swap")),
    "lagrangian, groups": Case(lambda _: Lagrangian(SLICED), groups="text"),
    "lagrangian, fixed threshold": Case(lambda _: Lagrangian(BOUND, threshold=0.1), weights=True),
    "lagrangian, fixed, groups": Case(
        lambda _: Lagrangian(SLICED, threshold=0.1, proxy=True), groups="text"
    ),
    "lagrangian, fixed, softplus, ratio": Case(
        lambda _: Lagrangian(
            GOALS["recall at precision"], threshold=0.1, step=Softplus(temperature=0.5)
        )
    ),
    "swap regret, fixed, several outputs": Case(
        lambda _: Lagrangian(BOUND, threshold=0.0, proxy=True, regret="swap"), outputs=3
    ),
    "cross entropy": Case(lambda _: CrossEntropy(BOUND)),
    "cross entropy, balanced": Case(lambda _: CrossEntropy(positives="balanced"), weights=True),
    "cross entropy, no goal": Case(lambda _: CrossEntropy(positives=3.0)),
    "focal, several outputs": Case(lambda _: CrossEntropy(gamma=2.0), outputs=2),
    "pairwise, squared hinge": Case(lambda _: Pairwise(GOALS["roc area"])),
    "pairwise, sigmoid": Case(lambda _: Pairwise(BOUND, surrogate="sigmoid"), weights=True),
    "program, area": Case(lambda _: Program(GOALS["roc area"])),
    "program, precision at recall": Case(lambda _: Program(GOALS["precision at recall"])),
    "program, misses at fpr": Case(lambda _: Program(BOUND)),
    "program, f score": Case(lambda _: Program(GOALS["f score"])),
    "program, jaccard": Case(lambda _: Program(Problem(maximize=jaccard)), weights=True),
    "program, structural": Case(lambda _: Program(Problem(minimize=error))),
    "last layer": Case(lambda split: LastLayer(BOUND, split, steps=6), split=True),
    "last layer, penalty": Case(
        lambda split: LastLayer(BOUND, split, body=Penalty()), split=True, weights=True
    ),
    "last layer, penalty everywhere": Case(
        lambda split: LastLayer(BOUND, split, body=Penalty(everywhere=True)), split=True
    ),
    "rate barrier": Case(lambda model: RateBarrier(BOUND, model.parameters())),
    "rate barrier, groups": Case(
        lambda model: RateBarrier(SLICED, model.parameters()), groups="text", weights=True
    ),
    "any loss": Case(lambda _: GlobalBatch(focal), weights=True),
    "implicit, classes": Case(implicit(MACRO, steps=6), outputs=3, classes=3, weights=True),
    "bare, classes held": Case(implicit(COVERED, share=0.0), outputs=3, classes=3),
    "classes": Case(lambda _: GlobalBatch(multiclass_auc_loss), outputs=3, classes=3),
    "classes, one against all": Case(
        lambda _: GlobalBatch(partial(multiclass_auc_loss, kind="one_vs_all")), outputs=3, classes=3
    ),
}


class RowByRow(nn.Linear):
    """Gives a row the same scores to the last bit whatever batch it is in; matrix products do not.

    A sharp goal makes more of a last bit than the law allows for.
    """

    def forward(self, x):
        return (x[:, None, :] * self.weight).sum(-1) + self.bias


def model_of(case, dtype):
    """A small network, the same in every process."""
    torch.manual_seed(1)
    model = nn.Sequential(RowByRow(4, 6), nn.Tanh(), RowByRow(6, case.outputs)).to(dtype)
    return Split(model) if case.split else model


def batch_of(case, step, dtype):
    """The whole batch of a step: features, labels, and what else the criterion is called with.

    In the second step positives come first, so that the last ranks have none.
    """
    r = torch.Generator().manual_seed(100 + step)
    y = (torch.rand(ROWS, generator=r) < 0.3).long()
    if step == 1:
        y = y.sort(descending=True).values
    x = torch.randn(ROWS, 4, generator=r, dtype=torch.float64) + 0.8 * y[:, None]
    more = {}
    if case.weights:
        more["weights"] = 0.5 + torch.rand(ROWS, generator=r, dtype=torch.float64)
    if case.resampling:
        more["resampling"] = torch.where(y > 0, 0.5, 2.0)
    member = torch.rand(ROWS, generator=r) < 0.5
    if case.groups == "text":
        more["groups"] = np.where(member.numpy(), "a", "bee")
    elif case.groups == "named":
        more["groups"] = {"group": member.long().numpy(), "unused": ["é", "x"] * (ROWS // 2)}
    elif case.groups == "tensor":
        more["groups"] = member.long()
    if case.queries:  # of five to eleven documents, in no order: ranks hold pieces of them
        more["queries"] = np.array(["é", "b", "c", "d", "e", "f", "g", "h"])[
            torch.randint(0, 8, (ROWS,), generator=r).numpy()
        ]
    if case.classes:
        y = (y + torch.randint(0, case.classes, (ROWS,), generator=r)) % case.classes
    elif case.outputs > 1:
        y = (torch.rand(ROWS, case.outputs, generator=r) < 0.3).long()
    return x.to(dtype), y, more


def rows_of(values, part):
    """Some rows of a tensor, an array, or a dict of columns."""
    if isinstance(values, dict):
        return {name: rows_of(column, part) for name, column in values.items()}
    return values[part]
