"""Who must obey the laws: every solver with every kind of goal and axis, in one table.

``test_laws.py`` runs the laws that a subject names; ``distributed/test_global_batch.py`` those of
several processes. Constructors are called with the model that is trained; most do not look at it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from losses.draws import BINARY, CLASSES
from samples import draw, draw_classes, draw_groups, draw_queries
from torch import Tensor, nn

import setpoint as sp
from setpoint import fairness
from setpoint.losses import auc_loss, multiclass_auc_loss
from setpoint.rates import jaccard, lift, prevalence
from setpoint.solvers import GlobalBatch, Penalty, Split, focal
from setpoint.steps import Hinge, Softplus

# ---- batches -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Batch:
    """What a model is called with, labels, and columns by keyword."""

    x: Tensor
    labels: Tensor
    more: Mapping[str, Any] = field(default_factory=dict)

    def take(self, rows: Tensor) -> Batch:
        """Some rows, in this order."""
        more = {name: rows_of(column, rows) for name, column in self.more.items()}
        return Batch(self.x[rows], self.labels[rows], more)

    def weighing(self, counts: Tensor) -> Batch:
        """Every row so many times its weight."""
        return replace(self, more={**self.more, "weights": counts * self.more.get("weights", 1.0)})

    def __len__(self) -> int:
        return len(self.labels)


def rows_of(values: Any, part: Any) -> Any:
    """Some rows of a tensor, an array, or a dict of columns."""
    if isinstance(values, dict):
        return {name: rows_of(column, part) for name, column in values.items()}
    return values[
        part.numpy() if isinstance(values, np.ndarray) and torch.is_tensor(part) else part
    ]


@dataclass(frozen=True)
class Subject:
    """A criterion, what it is called with, and the laws that it obeys."""

    make: Callable[[nn.Module], Any]
    laws: frozenset[str] = frozenset()
    outputs: int = 1
    weights: bool = False
    groups: str = ""  # "letters", "text", "named" or "tensor": how they are given
    classes: int = 0
    split: bool = False
    queries: bool = False
    resampling: bool = False
    trains: bool = False  # it looks at the parameters of the model
    problem: sp.Problem | None = None
    rows: int = 150
    seeds: tuple[int, ...] = (0, 1)  # of the batches that are shuffled and copied
    ties: tuple[bool, ...] = (False, True)  # whether they have equal scores

    @property
    def axis(self) -> str:
        """Whose thresholds they are."""
        return "everyone" if self.problem is None else self.problem.kind

    def model(self) -> nn.Module:
        """What makes scores of ``x``: nothing to do, or a small network, always the same."""
        if not (self.trains or self.split):
            return nn.Identity()
        torch.manual_seed(1)
        return network(self)

    def batches(self) -> Iterator[tuple[int, Batch]]:
        """Batches in a row with their seeds: one without equal scores, one with many."""
        for i, seed in enumerate(self.seeds):
            yield seed, self.batch(seed, ties=self.ties[i % len(self.ties)])

    def batch(self, seed: int = 0, *, ties: bool = False) -> Batch:
        """A batch that suits it."""
        rng = torch.Generator().manual_seed(1000 + seed)
        more: dict[str, Any] = {}
        if self.trains or self.split:
            x, labels = draw(self.rows, seed, gap=0.8, features=4, ties=ties)
        elif self.queries:
            lengths = (12, 30, 7, 21)
            x, labels, more["queries"] = draw_queries(lengths, seed, ties=ties)
        elif self.classes:
            x, labels = draw_classes(90, self.classes, seed, ties)
        elif self.axis == "groups" and not self.groups:
            count = len({where for where in self.problem.slices if where})
            x, labels, more["groups"] = draw_groups(240, count, seed, ties=ties)
        elif self.outputs > 1:
            columns = [draw(self.rows, seed + 50 * i, ties=ties) for i in range(self.outputs)]
            x, labels = (torch.stack(part, 1) for part in zip(*columns, strict=True))
        else:
            x, labels = draw(self.rows, seed, gap=1.2, ties=ties)
        if self.weights:
            more["weights"] = 0.5 + torch.rand(len(x), generator=rng, dtype=torch.float64)
        if self.resampling:
            more["resampling"] = torch.where(labels > 0, 0.5, 2.0).double()
        if self.groups:
            more["groups"] = self._members(torch.rand(len(x), generator=rng) < 0.5)
        return Batch(x, labels, more)

    def _members(self, member: Tensor) -> Any:
        if self.groups == "letters":
            return np.where(member.numpy(), "a", "b")
        if self.groups == "text":
            return np.where(member.numpy(), "a", "bee")
        if self.groups == "named":
            return {"group": member.long().numpy(), "unused": np.where(member.numpy(), "é", "x")}
        return member.long()


class RowByRow(nn.Linear):
    """Gives a row the same scores to the last bit whatever batch it is in; matrix products do not.

    A sharp goal makes more of a last bit than the law allows for.
    """

    def forward(self, x):
        return (x[:, None, :] * self.weight).sum(-1) + self.bias


def network(subject: Subject, dtype: torch.dtype = torch.float64) -> nn.Module:
    """A small network, the same in every process."""
    torch.manual_seed(1)
    model = nn.Sequential(RowByRow(4, 6), nn.Tanh(), RowByRow(6, subject.outputs)).to(dtype)
    return Split(model) if subject.split else model


# ---- goals -------------------------------------------------------------------------------------

EQUALITIES = [
    sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.at(0.05)),
    sp.Problem(maximize=sp.precision, subject_to=sp.recall.at(0.9)),
    sp.Problem(maximize=sp.recall, subject_to=sp.coverage.at(0.2)),
    sp.Problem(minimize=sp.fnr, subject_to=sp.tnr.at(0.9)),
    sp.Problem(minimize=sp.fpr, subject_to=sp.fnr.at(0.1)),
    sp.precision_at_k(40),
    sp.precision_at_k(20, of=100),
]
INEQUALITIES = [
    sp.fnr_at_fpr(0.05),
    sp.fnr_at_fpr(0.001),
    sp.tpr_at_fpr(0.1),
    sp.precision_at_recall(0.9),
    sp.recall_at_precision(0.8),
    sp.Problem(maximize=sp.precision, subject_to=sp.recall >= 0.5),
    sp.Problem(maximize=sp.recall, subject_to=sp.coverage <= 0.15),
    sp.Problem(minimize=sp.error, subject_to=[sp.fpr <= 0.3, sp.recall >= 0.6]),
    sp.Problem(maximize=lift, subject_to=sp.recall >= 0.3),
    sp.Problem(maximize=sp.recall, subject_to=sp.fpr + 0.5 * sp.coverage <= 0.2),
    sp.Problem(minimize=sp.error, subject_to=sp.maximum(sp.fpr, sp.coverage) <= 0.2),
]
CHOSEN = [
    sp.Problem(maximize=sp.f_score(1)),
    sp.Problem(maximize=jaccard),
    sp.Problem(minimize=sp.error),
    sp.Problem(minimize=0.3 * sp.fpr + 0.7 * sp.fnr),
    sp.Problem(maximize=sp.npv - sp.fpr / 2),
    sp.Problem(minimize=sp.maximum(sp.fpr, sp.fnr)),
]
AREAS = [
    sp.roc_auc(fpr=(0.0, 0.2), points=4),
    sp.pr_auc(recall=(0.8, 1.0), points=5),
    sp.roc_auc(points=3),
]
ONE_THRESHOLD = [*EQUALITIES, *INEQUALITIES, *CHOSEN]
PROBLEMS = [*ONE_THRESHOLD, *AREAS]
STEPS = [Softplus(), Hinge(), sp.Sigmoid(temperature=0.3)]
SLICED = [
    sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.on(group=1) <= 0.1),
    sp.Problem(maximize=sp.recall.on(group=0), subject_to=sp.coverage <= 0.3),
]

CHOOSABLE = [
    sp.Problem(minimize=sp.fnr, subject_to=sp.fpr <= 0.29),
    sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.at(0.3)),
    sp.Problem(maximize=sp.tpr, subject_to=sp.tnr >= 0.5),
    sp.Problem(maximize=sp.precision, subject_to=sp.recall >= 0.7),
    sp.Problem(maximize=sp.precision, subject_to=sp.recall.at(0.5)),
    sp.Problem(maximize=sp.recall, subject_to=sp.precision >= 0.6),
    sp.Problem(maximize=sp.recall, subject_to=sp.precision.at(0.5)),
    sp.Problem(maximize=sp.precision, subject_to=sp.alerts.at(3)),
    sp.Problem(maximize=sp.precision, subject_to=sp.alerts.at(2.5)),
    sp.Problem(maximize=sp.recall, subject_to=sp.coverage <= 0.4),
    sp.Problem(maximize=sp.f_score(1)),
    sp.Problem(maximize=jaccard),
    sp.Problem(maximize=sp.accuracy, subject_to=[sp.fpr <= 0.5, sp.fnr <= 0.5]),
    sp.Problem(minimize=sp.error),
    sp.Problem(minimize=abs(sp.fpr - 0.5), subject_to=sp.recall.at(0.5)),
    sp.Problem(minimize=sp.maximum(sp.fpr, 0.3), subject_to=sp.recall.at(0.5)),
    sp.Problem(minimize=sp.maximum(sp.fpr, sp.fnr)),
    sp.Problem(minimize=sp.fpr.on(group="a"), subject_to=sp.recall.at(0.5)),
    sp.Problem(
        minimize=sp.fnr,
        subject_to=abs(sp.coverage.on(group="a") - sp.coverage.on(group="b")) <= 0.2,
    ),
    sp.Problem(
        minimize=sp.fnr, subject_to=sp.recall.on(group="a") / sp.recall.on(group="b") >= 0.8
    ),
    sp.Problem(maximize=prevalence, subject_to=sp.fpr <= 0.5),
    sp.Problem(maximize=lift, subject_to=sp.fnr.at(0.25)),
]

TWO, THREE = {"g": [0, 1]}, {"g": [0, 1, 2]}


def per_group(**goal: Any) -> sp.Problem:
    return sp.Problem(**goal, thresholds="per group")


PER_GROUP = [
    per_group(minimize=sp.error, subject_to=fairness.demographic_parity(0.02, **THREE)),
    per_group(minimize=sp.error, subject_to=fairness.equal_opportunity(0.02, **THREE)),
    per_group(minimize=sp.error, subject_to=fairness.equalized_odds(0.05, **TWO)),
    per_group(maximize=sp.f_score(1), subject_to=fairness.four_fifths(0.9, **THREE)),
    per_group(minimize=sp.error, subject_to=fairness.predictive_parity(0.05, **TWO)),
    per_group(
        minimize=sp.fnr, subject_to=[sp.fpr <= 0.2, fairness.equal_opportunity(0.02, **THREE)]
    ),
    per_group(minimize=sp.fnr, subject_to=[r <= 0.1 for r in fairness.each(sp.fpr, **THREE)]),
    per_group(minimize=fairness.largest(sp.fnr, **TWO), subject_to=sp.coverage <= 0.3),
    per_group(
        minimize=sp.error, subject_to=[sp.recall >= 0.8, fairness.demographic_parity(0.05, **TWO)]
    ),
    per_group(minimize=sp.error, subject_to=fairness.bounded_group_loss(0.4, **TWO)),
    per_group(minimize=sp.error, subject_to=fairness.demographic_parity(0.001, **TWO)),
]
PER_CLASS = [
    "maximize macro(recall)",
    "maximize lowest(recall)",
    "maximize macro(f_score(1))",
    "maximize macro(recall) subject to coverage of 0 at 0.3 and coverage of 2 at 0.2",
    "minimize macro(fnr) subject to recall of 1 >= 0.9",
    "minimize cost([[0, 1, 2, 3], [4, 0, 1, 2], [1, 2, 0, 5], [1, 1, 1, 0]])",
    "maximize top_k(2) subject to coverage of 1 at 0.4",
    "maximize precision of 1 or 2 subject to recall of 0 at 0.5",
    "minimize error subject to fpr of 3 <= 0.05",
    "maximize f_score(1) of 2",
]
PER_QUERY = [
    sp.precision_at_k(5),
    sp.precision_at_k(3, of=10),
    sp.Problem(maximize=sp.recall, subject_to=sp.alerts.at(4)),
    sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.at(0.2)),
    sp.Problem(maximize=sp.precision, subject_to=sp.recall.at(0.7)),
    sp.fnr_at_fpr(0.2),
    sp.precision_at_recall(0.6),
    sp.Problem(maximize=sp.f_score(1)),
    sp.Problem(maximize=sp.recall, subject_to=sp.coverage <= 0.3),
    sp.Problem(maximize=sp.precision, subject_to=sp.alerts.over(0, 6), thresholds=3),
    sp.roc_auc((0, 0.4), points=3),
    sp.pr_auc(precision=(0.2, 0.6), points=2),
]


# ---- criteria by name ----------------------------------------------------------------------------

BOUND = sp.fnr_at_fpr(0.2)
CRITERIA: dict[str, Callable[[Any], Any]] = {
    "implicit": lambda _: sp.Implicit(BOUND, steps=10),
    "implicit, bare": lambda _: sp.Implicit(BOUND, share=0.0),
    "implicit, memory": lambda _: sp.Implicit(BOUND, memory=64),
    "implicit, precision at recall": lambda _: sp.Implicit(sp.precision_at_recall(0.8)),
    "implicit, precision at k": lambda _: sp.Implicit(sp.precision_at_k(9)),
    "implicit, f score": lambda _: sp.Implicit(sp.Problem(maximize=sp.f_score(1))),
    "implicit, area": lambda _: sp.Implicit(sp.pr_auc(recall=(0.5, 1.0), points=3)),
    "lagrangian": lambda _: sp.Lagrangian(BOUND),
    "lagrangian, proxy": lambda _: sp.Lagrangian(sp.precision_at_recall(0.8), proxy=True),
    "lagrangian, swap": lambda _: sp.Lagrangian(BOUND, proxy=True, regret="swap"),
    "cross entropy": lambda _: sp.CrossEntropy(BOUND),
    "balanced": lambda _: sp.CrossEntropy(positives="balanced"),
    "focal": lambda _: sp.CrossEntropy(gamma=2.0),
    "pairwise": lambda _: sp.Pairwise(sp.roc_auc(fpr=(0, 0.3))),
    "pairwise, sigmoid": lambda _: sp.Pairwise(sp.roc_auc(fpr=(0, 0.3)), surrogate="sigmoid"),
    "program, area": lambda _: sp.Program(sp.roc_auc(fpr=(0, 0.3))),
    "program, misses": lambda _: sp.Program(BOUND),
    "program, f score": lambda _: sp.Program(sp.Problem(maximize=sp.f_score(1))),
    "program, structural": lambda _: sp.Program(sp.Problem(minimize=sp.error)),
    "any loss": lambda _: GlobalBatch(auc_loss),
    "last layer": lambda split: sp.LastLayer(BOUND, split),
    "last layer, penalty": lambda split: sp.LastLayer(BOUND, split, body=Penalty()),
}
"""Every criterion of two classes, by the model or the split that it trains.

Tests of precision, compilers, accumulation and hostile input take all of them, or some by name.
"""


# ---- the table ---------------------------------------------------------------------------------

ALWAYS = frozenset({"order", "copies", "absent", "resume"})
SOFT = frozenset({"differences", "closed form"})
VALUE = frozenset({"shift of the value"})
CHOICE = frozenset({"choice, shuffled", "choice, copied", "choice, moved"})
INVARIANT = ALWAYS - {"resume"} | CHOICE | {"shift", "scale"}


def implicit(problem: sp.Problem, laws: frozenset[str], **more: Any) -> Subject:
    """The criterion of a problem; what a subject does not know is an option of the criterion."""
    known = {name: more.pop(name) for name in list(more) if name in Subject.__annotations__}
    known = {"classes": 4 if problem.kind == "classes" else 0, **known}
    known = {"queries": problem.kind == "queries", **known}
    return Subject(lambda _: sp.Implicit(problem, **more), laws, problem=problem, **known)


def published(model: nn.Module) -> Any:
    problem = sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.at(0.2))
    return sp.Implicit.as_published(
        problem, correct_every=2, correction_batches=2, follow=model.parameters()
    )


def everyone() -> dict[str, Subject]:
    """One threshold for all, or several along a curve."""
    found = {}
    for problem in PROBLEMS:
        laws = INVARIANT | SOFT | {"outputs"}
        laws |= (
            {"scale of weights"} if "alerts" not in str(problem) else set()
        )  # so many, by weight
        laws |= {"direction"} if problem in ONE_THRESHOLD else set()
        found[f"everyone, bare, {problem}"] = implicit(problem, laws, share=0.0)
        laws = ALWAYS - {"resume"} | VALUE
        found[f"everyone, {problem}"] = implicit(problem, laws, steps=6)
    for step in STEPS:
        for problem in PROBLEMS:
            found[f"everyone, {step!r}, {problem}"] = implicit(
                problem, frozenset({"closed form"}), share=0.0, step=step
            )
    for problem in CHOOSABLE:
        groups = "letters" if "group" in str(problem) else ""
        found[f"everyone, chosen, {problem}"] = implicit(
            problem, CHOICE | {"copies"}, groups=groups
        )
    for problem in SLICED:
        laws = INVARIANT | SOFT
        found[f"everyone, bare, {problem}"] = implicit(problem, laws, groups="tensor", share=0.0)
    return found


def groups() -> dict[str, Subject]:
    found = {}
    for problem in PER_GROUP:
        laws = INVARIANT | SOFT | {"direction", "scale of weights"}
        found[f"groups, bare, {problem}"] = implicit(problem, laws, share=0.0)
    for problem in PER_GROUP[::3]:
        found[f"groups, {problem}"] = implicit(problem, ALWAYS | VALUE, steps=6)
    return found


def classes() -> dict[str, Subject]:
    found = {}
    for sentence in PER_CLASS:
        problem = sp.Problem.parse(sentence)
        # A copy may be dealt out apart from the other, a weight of two may not. So it is where the
        # search begins, too: in a third of all batches it then ends elsewhere, not in this one.
        dealt = {"copies", "choice, copied"} if "coverage" in sentence else set()
        more = {"seeds": (3, 3), "ties": (False,) if dealt else (False, True)}
        found[f"classes, bare, {problem}"] = implicit(problem, INVARIANT - dealt, share=0, **more)
        found[f"classes, {problem}"] = implicit(problem, ALWAYS - dealt | VALUE, steps=6, **more)
    return found


def queries() -> dict[str, Subject]:
    found = {}
    for goal in PER_QUERY:
        problem = goal.per("query")
        laws = INVARIANT | SOFT
        laws |= {"direction"} if goal.swept is None else set()
        found[f"queries, bare, {problem}"] = implicit(problem, laws, share=0.0)
        laws = ALWAYS | VALUE | {"shift"}  # the main loss compares the documents of a query, too
        found[f"queries, {problem}"] = implicit(problem, laws, share=0.5)
    return found


def losses() -> dict[str, Subject]:
    """Exact metric losses, as criteria."""
    found = {}
    for name, loss in {**BINARY, **CLASSES}.items():
        laws = {"order", "absent", "own differences", "scale of weights"}
        laws |= {"copies"} if "structural" not in name else set()
        laws |= {"outputs"} if name in BINARY else set()
        if any(word in name for word in ("auc", "best", "recall", "mu", "vs")):
            laws |= {"shift"}
        found[f"loss, {name}"] = Subject(
            lambda _, loss=loss: GlobalBatch(loss),
            frozenset(laws),
            classes=3 if name in CLASSES else 0,
            ties=(False,) if name == "mu, costs" else (False, True),  # it projects, and rounds
        )
    return found


GOALS = {
    "fnr at fpr": sp.fnr_at_fpr(0.1),
    "fpr held": sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.at(0.1)),
    "precision at recall": sp.precision_at_recall(0.8),
    "recall at precision": sp.recall_at_precision(0.6),
    "precision at k": sp.precision_at_k(8),
    "coverage": sp.Problem(maximize=sp.recall, subject_to=sp.coverage <= 0.2),
    "two bounds": sp.Problem(minimize=sp.error, subject_to=[sp.fpr <= 0.3, sp.recall >= 0.5]),
    "roc area": sp.roc_auc(fpr=(0, 0.2), points=3),
    "pr area": sp.pr_auc(recall=(0.5, 1.0), points=3),
    "f score": sp.Problem(maximize=sp.f_score(1)),
    "difference": sp.Problem(maximize=sp.precision - sp.fpr / 2),
}
BY_TEXT = sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.on(group="a") <= 0.2)
BY_NUMBER = sp.Problem(maximize=sp.recall.on(group=0), subject_to=sp.coverage <= 0.3)
BOUND = sp.fnr_at_fpr(0.2)
FAIR = sp.Problem(
    minimize=sp.error,
    subject_to=fairness.demographic_parity(0.1, group=["a", "bee"]),
    thresholds="per group",
)
RANKED = sp.precision_at_k(3).per("query")
MACRO = sp.Problem(maximize=sp.macro(sp.recall))
COVERED = sp.Problem(minimize=sp.error, subject_to=sp.coverage.of(1).at(0.25))

RANKS = frozenset({"ranks"})
USUAL = ALWAYS | RANKS
LIMITED = USUAL - {
    "copies",
    "absent",
    "scale of weights",
}  # of a loss without weights, or a history of so many rows


def options() -> dict[str, Subject]:
    """What else Implicit can be told, and be called with."""
    return {
        **{f"implicit, {n}": implicit(g, RANKS | {"resume"}, steps=6) for n, g in GOALS.items()},
        **{f"bare, {n}": implicit(g, RANKS, share=0.0) for n, g in GOALS.items()},
        "implicit, memory": implicit(BOUND, RANKS | {"resume"}, memory=100, weights=True),
        "implicit, long memory": implicit(BOUND, ALWAYS, memory=2000, weights=True),
        "implicit, flatness": implicit(BOUND, USUAL, flatness=0.5),
        "implicit, softplus": implicit(GOALS["fpr held"], USUAL, step=Softplus()),
        "implicit, own main loss": implicit(BOUND, LIMITED, main=nn.BCEWithLogitsLoss()),
        "implicit, corrected rarely": implicit(
            BOUND, LIMITED, correct_every=2, correction_batches=2
        ),
        "implicit, as published, followed": Subject(published, LIMITED, trains=True),
        "implicit, weights": implicit(GOALS["precision at recall"], USUAL, steps=6, weights=True),
        "implicit, resampled": implicit(BOUND, USUAL, steps=6, resampling=True),
        "implicit, several outputs": implicit(BOUND, USUAL, steps=6, outputs=3),
        "implicit, groups of texts": implicit(BY_TEXT, USUAL, groups="text"),
        "implicit, groups by name": implicit(BY_NUMBER, USUAL, groups="named"),
        "implicit, groups in a tensor": implicit(BY_NUMBER, USUAL, groups="tensor"),
        "implicit, per group": implicit(FAIR, USUAL, steps=6, groups="text", weights=True),
        "bare, per group": implicit(FAIR, USUAL, share=0.0, groups="text"),
        "implicit, per group, memory": implicit(
            FAIR, RANKS | {"resume"}, memory=100, groups="text"
        ),
        "implicit, per group, long memory": implicit(FAIR, ALWAYS, memory=2000, groups="text"),
        "implicit, per query": implicit(RANKED, USUAL, steps=6, weights=True),
        "bare, per query": implicit(RANKED, RANKS, share=0.0),
        "implicit, classes": implicit(
            MACRO, USUAL, steps=6, outputs=3, classes=3, weights=True, seeds=(0, 2)
        ),
        "bare, classes held": implicit(COVERED, RANKS, share=0.0, outputs=3, classes=3),
    }


def multipliers() -> dict[str, Subject]:
    def made(problem: sp.Problem, laws: frozenset[str] = USUAL, **more: Any) -> Subject:
        known = {name: more.pop(name) for name in list(more) if name in Subject.__annotations__}
        if not any(word in str(problem) for word in ("precision", "f_score", "alerts")):
            laws = laws | {"own differences"}  # ratios follow a running mean, which has no gradient
        return Subject(lambda _: sp.Lagrangian(problem, **more), laws, problem=problem, **known)

    return {
        **{f"lagrangian, {name}": made(goal) for name, goal in GOALS.items()},
        "proxy lagrangian": made(BOUND, proxy=True, weights=True),
        "swap regret": made(BOUND, proxy=True, regret="swap"),
        "lagrangian, groups": made(BY_TEXT, groups="text"),
        "lagrangian, fixed threshold": made(BOUND, threshold=0.1, weights=True),
        "lagrangian, fixed, groups": made(BY_TEXT, threshold=0.1, proxy=True, groups="text"),
        "lagrangian, fixed, softplus, ratio": made(
            GOALS["recall at precision"], threshold=0.1, step=Softplus(temperature=0.5)
        ),
        "swap regret, fixed, several outputs": made(
            BOUND, threshold=0.0, proxy=True, regret="swap", outputs=3
        ),
    }


def others() -> dict[str, Subject]:
    own = USUAL | {"own differences"}
    pairs = own | {"shift", "outputs"}
    return {
        "cross entropy": Subject(lambda _: sp.CrossEntropy(BOUND), own | {"outputs"}),
        "cross entropy, balanced": Subject(
            lambda _: sp.CrossEntropy(positives="balanced"), own, weights=True
        ),
        "cross entropy, no goal": Subject(lambda _: sp.CrossEntropy(positives=3.0), own),
        "focal, several outputs": Subject(lambda _: sp.CrossEntropy(gamma=2.0), own, outputs=2),
        "pairwise, squared hinge": Subject(lambda _: sp.Pairwise(GOALS["roc area"]), pairs),
        "pairwise, sigmoid": Subject(
            lambda _: sp.Pairwise(BOUND, surrogate="sigmoid"), own | {"shift"}, weights=True
        ),
        "pairwise, sigmoid, no weights": Subject(
            lambda _: sp.Pairwise(BOUND, surrogate="sigmoid"), frozenset({"outputs"})
        ),
        "program, area": Subject(lambda _: sp.Program(GOALS["roc area"]), pairs),
        "program, precision at recall": Subject(
            lambda _: sp.Program(GOALS["precision at recall"]), pairs
        ),
        "program, misses at fpr": Subject(lambda _: sp.Program(BOUND), pairs),
        "program, f score": Subject(lambda _: sp.Program(GOALS["f score"]), own | {"outputs"}),
        "program, jaccard": Subject(
            lambda _: sp.Program(sp.Problem(maximize=jaccard)), own, weights=True
        ),
        "program, structural": Subject(
            lambda _: sp.Program(sp.Problem(minimize=sp.error)), own - {"copies"} | {"outputs"}
        ),
        **{
            f"last layer, {name}": Subject(
                lambda split, body=body, outside=outside: sp.LastLayer(
                    BOUND, split.head if outside else split, body=body()
                ),
                ALWAYS,
                split=True,
            )
            for outside in (False, True)
            for name, body in {
                f"focal, {outside}": lambda: sp.CrossEntropy(gamma=2),
                f"weighted, {outside}": lambda: sp.CrossEntropy(positives="balanced"),
                f"penalty 3, {outside}": lambda: Penalty(eta=3.0),
            }.items()
        },
        "last layer": Subject(lambda split: sp.LastLayer(BOUND, split, steps=6), USUAL, split=True),
        "last layer, penalty": Subject(
            lambda split: sp.LastLayer(BOUND, split, body=Penalty()),
            USUAL,
            split=True,
            weights=True,
        ),
        "last layer, penalty everywhere": Subject(
            lambda split: sp.LastLayer(BOUND, split, body=Penalty(everywhere=True)),
            USUAL,
            split=True,
        ),
        "rate barrier": Subject(
            lambda model: sp.RateBarrier(BOUND, model.parameters()), USUAL, trains=True
        ),
        "rate barrier, groups": Subject(
            lambda model: sp.RateBarrier(BY_TEXT, model.parameters()),
            USUAL,
            trains=True,
            groups="text",
            weights=True,
        ),
        "any loss": Subject(lambda _: GlobalBatch(focal), own, weights=True),
        "classes": Subject(lambda _: GlobalBatch(multiclass_auc_loss), USUAL, outputs=3, classes=3),
        "classes, one against all": Subject(
            lambda _: GlobalBatch(partial(multiclass_auc_loss, kind="one_vs_all")),
            USUAL,
            outputs=3,
            classes=3,
        ),
    }


SUBJECTS: dict[str, Subject] = {
    **everyone(),
    **groups(),
    **classes(),
    **queries(),
    **options(),
    **multipliers(),
    **losses(),
    **others(),
}
