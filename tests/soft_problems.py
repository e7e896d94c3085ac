"""The soft problem behind a gradient, written out naively from public readings.

A threshold sits on a score of the batch, and holds a rate at its soft value there. Which score and
which rate is told apart by what the criterion says of itself: its soft objective is that of one
score next to the threshold, its multiplier that of one rate. Then the thresholds are functions of
the scores, found by Newton's method with the slopes of the start, and so is the objective.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import torch
from subjects import Batch, Subject
from torch import Tensor

from setpoint import Implicit, Problem, Sigmoid, coverage
from setpoint.rates import Counts, Expression
from setpoint.steps import Step

CLOSE = 1e-9


def soft_problem(subject: Subject, batch: Batch, step: Any) -> SoftProblem:
    """Of a subject whose criterion has just taken this step, without a main loss."""
    problem = subject.problem
    if problem.kind == "groups":
        return Groups.read(problem, batch, step)
    if problem.kind == "queries":
        return Separate.of_queries(subject, batch, step)
    return Separate.of_everyone(problem, batch, step)


class SoftProblem:
    """An objective as a function of scores and thresholds, and what the thresholds hold."""

    scores: Tensor
    start: Tensor  # the thresholds, [t]
    width: Tensor  # of each
    level: Tensor  # of what is held

    def held(self, scores: Tensor, thresholds: Tensor) -> Tensor:
        raise NotImplementedError

    def objective(self, scores: Tensor, thresholds: Tensor) -> Tensor:
        raise NotImplementedError

    def lines(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Rows that share a threshold, and the only direction they can be pulled in."""
        raise NotImplementedError

    @cached_property
    def slopes(self) -> Tensor:
        """How what is held follows the thresholds, at the start."""
        return torch.autograd.functional.jacobian(lambda t: self.held(self.scores, t), self.start)

    @property
    def narrowest(self) -> float:
        """The width of the narrowest step."""
        return float(self.width.min())

    def __call__(self, scores: Tensor) -> float:
        """The objective, to be minimized, where all that is held has its level."""
        at = self.start.clone()
        for _ in range(6):  # the scores have moved by next to nothing: the slopes are as they were
            gap = self.held(scores, at) - self.level
            at = at - torch.linalg.solve(self.slopes, gap)
        assert gap.abs().max() < 1e-13
        return float(self.objective(scores, at))


def tables(apart: Tensor, step: Step, labels: Tensor, inside: dict) -> dict:
    """Soft counts of every slice for scores this far above their threshold, in widths of it.

    FN and TN are counted by the mirrored step.
    """
    up, down = step.value(apart), step.value(-apart)
    found = {}
    for where, members in inside.items():
        p, n = members * labels, members * (1 - labels)
        sums = ((x * c).sum() for x in (up, down) for c in (p, n))
        found[where] = Counts(*sums, p.sum().double(), n.sum().double())
    return found


def insides(problem: Problem, groups: Any, rows: Tensor) -> dict:
    """Who belongs to each slice, among these rows."""
    found = {}
    for where in problem.slices:
        member = torch.ones(int(rows.sum()))
        if where:
            member = (torch.as_tensor(groups)[rows] == where[0][1]).double()
        found[where] = member.double()
    return found


def neighbours(scores: Tensor, labels: Tensor, threshold: float) -> list[float]:
    """The scores next to a threshold, of either class, on either side."""
    found = set()
    for own in (scores[labels == 1], scores[labels == 0]):
        found |= set(own[own >= threshold].sort().values[:1].tolist())
        found |= set(own[own <= threshold].sort(descending=True).values[:1].tolist())
    return sorted(found)


def pull_line(scores: Tensor, at: Tensor, width: Tensor, labels: Tensor) -> Tensor:
    """``q dTP - p dFP``: what changes two counts and is no shift."""
    kernel = torch.sigmoid((scores - at) / width) * torch.sigmoid((at - scores) / width)
    p, n = kernel * labels, kernel * (1 - labels)
    return n.sum() * p - p.sum() * n


# ---- thresholds that do not know of each other -------------------------------------------------


@dataclass(frozen=True)
class Seat:
    """A threshold: whose it is, on which score it sits, what it holds."""

    problem: Problem
    rows: Tensor
    inside: dict
    labels: Tensor
    step: Step
    width: float
    at: float
    anchor: Expression = coverage

    def of(self, expression: Expression, scores: Tensor, at: Tensor) -> Tensor:
        apart = (scores[self.rows] - at) / self.width
        return torch.as_tensor(expression.of(tables(apart, self.step, self.labels, self.inside)))


class Separate(SoftProblem):
    """The mean of objectives, one for each threshold."""

    def __init__(self, seats: list[Seat], scores: Tensor) -> None:
        self.seats = seats
        self.start = torch.tensor([seat.at for seat in seats], dtype=torch.float64)
        self.width = torch.tensor([seat.width for seat in seats], dtype=torch.float64)
        self.level = self.held(scores, self.start)
        self.scores = scores

    def held(self, scores: Tensor, thresholds: Tensor) -> Tensor:
        pairs = zip(self.seats, thresholds, strict=True)
        return torch.stack([seat.of(seat.anchor, scores, t) for seat, t in pairs])

    def objective(self, scores: Tensor, thresholds: Tensor) -> Tensor:
        pairs = zip(self.seats, thresholds, strict=True)
        sign = -1 if self.seats[0].problem.maximize else 1
        values = [seat.of(seat.problem.objective, scores, t) for seat, t in pairs]
        return sign * torch.stack(values).mean()

    def lines(self) -> Iterator[tuple[Tensor, Tensor]]:
        for seat, at in zip(self.seats, self.start, strict=True):
            own = self.scores[seat.rows]
            yield seat.rows, pull_line(own, at, seat.width, seat.labels)

    @classmethod
    def of_everyone(cls, problem: Problem, batch: Batch, step: Any) -> Separate:
        rows = torch.ones(len(batch), dtype=torch.bool)
        return cls(seats_of(problem, batch, rows, step.criterion), batch.x)

    @classmethod
    def of_queries(cls, subject: Subject, batch: Batch, step: Any) -> Separate:
        """Every query is the plain problem: a plain criterion tells where its thresholds sit."""
        problem, queries = subject.problem, batch.more["queries"]
        alone, seats = Problem.parse(str(problem).removesuffix(" per query")), []
        for query in queries.unique():
            rows = queries == query
            criterion = Implicit(alone, share=0.0, step=step.criterion.step)
            criterion(batch.x[rows].clone().requires_grad_(), batch.labels[rows])
            seats += seats_of(alone, batch, rows, criterion)
        return cls(seats, batch.x)


def seats_of(problem: Problem, batch: Batch, rows: Tensor, criterion: Any) -> list[Seat]:
    """Where the thresholds of a criterion sit, and what they hold."""
    own, labels = batch.x[rows], batch.labels[rows]
    inside = insides(problem, batch.more.get("groups"), rows)
    step = criterion.step
    width = step.temperature or step.width * float(own.std(correction=0))
    said, several = criterion.stats(), len(problem.points) > 1
    seats = []
    for k, threshold in enumerate(criterion.thresholds.reshape(-1).tolist()):
        soft, multiplier = (
            said[name][k] if several else said[name] for name in ("soft_objective", "multiplier")
        )
        tried = [
            Seat(problem, rows, inside, labels, step, width, at)
            for at in neighbours(own, labels, threshold)
        ]
        seat = min(tried, key=lambda s: abs(value_at(s, batch.x, problem.objective) - soft))
        assert abs(value_at(seat, batch.x, problem.objective) - soft) < CLOSE
        anchor = anchor_of(seat, batch.x, multiplier)
        seats.append(replace(seat, anchor=anchor))
    return seats


def value_at(seat: Seat, scores: Tensor, expression: Expression) -> float:
    return float(seat.of(expression, scores, torch.tensor(seat.at, dtype=torch.float64)))


def anchor_of(seat: Seat, scores: Tensor, multiplier: float) -> Expression:
    """The rate whose slope explains the multiplier: that of a target, or the coverage."""
    at = torch.tensor(seat.at, dtype=torch.float64, requires_grad=True)
    rates = [target.expression for target in seat.problem.subject_to] + [coverage]
    (goal,) = torch.autograd.grad(seat.of(seat.problem.objective, scores, at), at)
    count = len(seat.problem.points)
    for rate in rates:
        (slope,) = torch.autograd.grad(seat.of(rate, scores, at), at, allow_unused=True)
        if abs(abs(goal / slope) / count - abs(multiplier)) <= CLOSE * max(1.0, abs(multiplier)):
            return rate
    raise AssertionError(f"No rate of `{seat.problem}` has the multiplier {multiplier}.")


# ---- thresholds of groups, held together ------------------------------------------------------


class Groups(SoftProblem):
    """The equations that a criterion names, and of the groups' coverages what these leave open."""

    def __init__(self, problem: Problem, batch: Batch, start: Tensor, equations: list) -> None:
        self.problem, self.labels = problem, batch.labels
        self.groups, self.scores = torch.as_tensor(batch.more["groups"]), batch.x
        self.start, self.equations = start, equations
        self.width = widths(batch)
        everyone = torch.ones(len(batch), dtype=torch.bool)
        self.inside = insides(problem, self.groups, everyone)
        slopes = torch.autograd.functional.jacobian(lambda t: self.shares(batch.x, t), start)
        sizes = torch.stack([(self.groups == k).double().mean() for k in range(len(start))])
        rows = torch.zeros(0, len(start), dtype=torch.float64)
        if equations:
            rows = torch.autograd.functional.jacobian(lambda t: self.named(batch.x, t), start)
            rows = rows / (slopes.diag() * sizes.sqrt())
        rank = int(torch.linalg.matrix_rank(rows)) if len(rows) else 0
        assert rank == len(rows)  # otherwise the thresholds are not functions of the scores
        *_, v = torch.linalg.svd(rows, full_matrices=True)
        self.rest = v[rank:] * sizes.sqrt()
        self.level = self.held(batch.x, start)

    def tables(self, scores: Tensor, at: Tensor) -> dict:
        apart = (scores - at[self.groups]) / self.width[self.groups]
        return tables(apart, Sigmoid(), self.labels, self.inside)

    def shares(self, scores: Tensor, at: Tensor) -> Tensor:
        accepted = torch.sigmoid((scores - at[self.groups]) / self.width[self.groups])
        return torch.stack([accepted[self.groups == k].mean() for k in range(len(at))])

    def named(self, scores: Tensor, at: Tensor) -> Tensor:
        found = self.tables(scores, at)
        values = [torch.as_tensor(e.of(found)) for e in self.equations]
        return torch.stack(values) if values else at[:0]

    def held(self, scores: Tensor, thresholds: Tensor) -> Tensor:
        rest = self.rest @ self.shares(scores, thresholds)
        return torch.cat([self.named(scores, thresholds), rest])

    def objective(self, scores: Tensor, thresholds: Tensor) -> Tensor:
        value = torch.as_tensor(self.problem.objective.of(self.tables(scores, thresholds)))
        return -value if self.problem.maximize else value

    def lines(self) -> Iterator[tuple[Tensor, Tensor]]:
        for k, at in enumerate(self.start):
            own = self.groups == k
            yield own, pull_line(self.scores[own], at, self.width[k], self.labels[own])

    @classmethod
    def read(cls, problem: Problem, batch: Batch, step: Any) -> Groups:
        """The scores next to the thresholds that have the loss of the step."""
        said, groups = step.criterion.stats(), torch.as_tensor(batch.more["groups"])
        equations = [Problem.parse(f"minimize {e}").objective for e in said["multipliers"]]
        tried = [
            neighbours(batch.x[groups == k], batch.labels[groups == k], float(t))
            for k, t in enumerate(step.criterion.thresholds)
        ]
        plain = cls.__new__(cls)
        plain.problem, plain.labels, plain.groups = problem, batch.labels, groups
        plain.width = widths(batch)
        plain.inside = insides(problem, groups, torch.ones(len(batch), dtype=torch.bool))
        starts = [torch.tensor(at, dtype=torch.float64) for at in product(*tried)]
        apart = [abs(plain.objective(batch.x, at) - step.loss) for at in starts]
        best = min(range(len(starts)), key=lambda i: apart[i])
        assert apart[best] < CLOSE
        return cls(problem, batch, starts[best], equations)


def widths(batch: Batch) -> Tensor:
    """A twentieth of the spread of each group, as steps have it by default."""
    groups = torch.as_tensor(batch.more["groups"])
    spreads = [batch.x[groups == k].std(correction=0) for k in groups.unique()]
    return 0.05 * torch.stack(spreads)
