"""Laws: each is a function of a subject (``subjects.py``) and fails where it is not obeyed.

Float64 throughout. Counts are exact, algebra holds to 1e-12 of the largest number of its kind;
where a law is looser, the reason stands with it. Only public readings are taken: losses, gradients,
``thresholds``, ``status``, ``stats()``, ``state_dict()``.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
import torch
from soft_problems import soft_problem
from subjects import Batch, Subject
from torch import Tensor, nn
from torch.testing import assert_close

from setpoint import Infeasible
from setpoint.solvers import hold

# ---- steps ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """What came out of a step: the loss, its gradient on the rows and on all parameters."""

    loss: Tensor
    rows: Tensor | None
    parameters: dict[str, Tensor]
    criterion: Any = None
    status: str = ""
    readings: dict[str, Tensor] = field(default_factory=dict)


class Training:
    """A fresh criterion with its model, taking steps."""

    def __init__(self, subject: Subject) -> None:
        self.model = subject.model()
        self.criterion = subject.make(self.model)

    @property
    def parts(self) -> nn.ModuleList:
        return nn.ModuleList([self.model, self.criterion])

    def step(self, batch: Batch) -> Step:
        self.parts.zero_grad()
        leaf = batch.x.detach().clone().requires_grad_()
        loss = self.criterion(self.model(leaf), batch.labels, **batch.more)
        loss.backward()
        named = dict(self.parts.named_parameters())
        found = {name: p.grad.clone() for name, p in named.items() if p.grad is not None}
        assert leaf.grad is not None or found
        status = getattr(self.criterion, "status", "")
        names = [name for name in ("thresholds", "multipliers") if hasattr(self.criterion, name)]
        readings = {name: getattr(self.criterion, name).clone() for name in names}
        return Step(loss.detach(), leaf.grad, found, self.criterion, status, readings)

    def look(self, batch: Batch) -> Tensor:
        """The loss, without learning from it."""
        self.criterion.eval()
        with torch.no_grad():
            return self.criterion(self.model(batch.x), batch.labels, **batch.more)


def one(subject: Subject, batch: Batch) -> Step:
    """The first step of a fresh criterion."""
    return Training(subject).step(batch)


def same(found: Step, expected: Step, rows: Any = None, *, rtol: float, atol: float) -> None:
    """Equal losses and gradients; ``rows`` makes those of ``found`` comparable.

    ``atol`` is a share of the largest number of its kind, or of 1 where all are smaller.
    """
    assert_close(found.loss, expected.loss, rtol=rtol, atol=atol)
    if expected.rows is not None:
        gradient = found.rows if rows is None else rows(found.rows)
        assert_close(gradient, expected.rows, rtol=rtol, atol=atol * scale_of(expected.rows))
    assert found.parameters.keys() == expected.parameters.keys()
    for name, one in found.parameters.items():
        other = expected.parameters[name]
        assert_close(one, other, rtol=rtol, atol=atol * scale_of(other))


def scale_of(gradient: Tensor) -> float:
    return max(1e-3, float(gradient.abs().max()))


# ---- invariances -------------------------------------------------------------------------------


OFFSETS = torch.tensor([8.0, -3.0, 0.5, 64.0], dtype=torch.float64)


def shifts_of(subject: Subject, batch: Batch) -> Tensor:
    """What may be added to the scores: a constant for all that share a threshold."""
    if subject.classes:
        return OFFSETS[: batch.x.shape[1]]
    if subject.queries:
        return OFFSETS[batch.more["queries"]]
    if subject.axis == "groups":
        return OFFSETS[torch.as_tensor(batch.more["groups"])]
    return OFFSETS[: batch.x.shape[1]] if batch.x.ndim == 2 else OFFSETS[0]


def units_of(subject: Subject, batch: Batch) -> list[Tensor]:
    """The rows that share a threshold."""
    if subject.queries or subject.axis == "groups":
        of = torch.as_tensor(batch.more["queries" if subject.queries else "groups"])
        return [of == unit for unit in of.unique()]
    return [torch.ones(len(batch), dtype=torch.bool)]


def shift(subject: Subject) -> None:
    """Scores that are all higher by a constant change nothing; no gradient pulls that way."""
    for ties in subject.ties:
        batch = subject.batch(ties=ties)
        moved = Batch(batch.x + shifts_of(subject, batch), batch.labels, batch.more)
        step = one(subject, batch)
        # adding 64 costs two digits of the differences between scores, a narrow band some more
        same(one(subject, moved), step, rtol=1e-9, atol=1e-10)
        for unit in units_of(subject, batch):
            pull = step.rows[unit].sum(0).abs().max()
            assert pull <= 1e-12 * step.rows.abs().sum()
        if subject.axis == "classes":  # nor along all scores of an example
            assert step.rows.sum(1).abs().max() <= 1e-12 * step.rows.abs().sum()


def shift_of_the_value(subject: Subject) -> None:
    """The value is that of the goal: constants do not change it, though the main loss sees them."""
    batch = subject.batch()
    moved = Batch(batch.x + shifts_of(subject, batch), batch.labels, batch.more)
    assert_close(one(subject, moved).loss, one(subject, batch).loss, rtol=1e-12, atol=1e-12)


def scale(subject: Subject) -> None:
    """In other units of the scores the value is the same, and the gradient in these units."""
    batch = subject.batch()
    step = one(subject, batch)
    for factors in ([3.0] * 4, [1e-10] * 4, [1e10] * 4, [1.0, 1e-6, 1e6, 3.0]):
        factor = torch.tensor(factors, dtype=torch.float64)
        if subject.queries:
            factor = factor[batch.more["queries"]]
        elif subject.axis == "groups":
            factor = factor[torch.as_tensor(batch.more["groups"])]
        else:
            factor = factor[0]
        scaled = one(subject, Batch(batch.x * factor, batch.labels, batch.more))
        # a product is rounded; in a band of a twentieth of the spread that is some digits more
        same(scaled, step, lambda rows, f=factor: rows * f, rtol=1e-7, atol=1e-10)


def order(subject: Subject) -> None:
    """The order of the examples and the names of queries are irrelevant, to the memory too."""
    straight, shuffled = Training(subject), Training(subject)
    for seed, batch in subject.batches():
        rows = torch.randperm(len(batch), generator=torch.Generator().manual_seed(seed))
        expected = straight.step(batch)
        found = shuffled.step(renamed(batch.take(rows)))
        back = lambda gradient, rows=rows: gradient[torch.argsort(rows)]  # noqa: E731
        same(found, expected, back, rtol=1e-10, atol=1e-11)
        assert words(found.status) == words(expected.status)


def renamed(batch: Batch) -> Batch:
    """With other names of queries, in another order."""
    if "queries" not in batch.more:
        return batch
    names = np.array(["d", "a", "c", "b"])[batch.more["queries"].numpy()]
    return replace(batch, more={**batch.more, "queries": names})


def words(status: str) -> str:
    """A status without its numbers, whose last digit depends on the order of a sum."""
    return re.sub(r"[-\d.e]+", "#", status)


def copies(subject: Subject) -> None:
    """An example of weight two is two examples, and one of weight zero is absent."""
    weighted, copied = Training(subject), Training(subject)
    for seed, batch in subject.batches():
        counts, rows = some_copies(batch, seed)
        expected = weighted.step(batch.weighing(counts.double()))
        found = copied.step(batch.take(rows))
        added = lambda gradient, rows=rows, like=expected.rows: (  # noqa: E731
            torch.zeros_like(like).index_add(0, rows, gradient)
        )
        # widths are deviations from a mean, summed in another order
        same(found, expected, added, rtol=1e-8, atol=1e-10)
        for name, reading in expected.readings.items():
            assert_close(found.readings[name], reading, rtol=1e-12, atol=1e-12, equal_nan=True)


def some_copies(batch: Batch, seed: int) -> tuple[Tensor, Tensor]:
    """How many copies of each example, from none to three, and their rows."""
    counts = torch.randint(0, 4, (len(batch),), generator=torch.Generator().manual_seed(seed))
    return counts, torch.repeat_interleave(torch.arange(len(batch)), counts)


def absent(subject: Subject) -> None:
    """Examples of weight zero may have any score: nothing changes, and nothing pulls them."""
    batch = subject.batch()
    few = batch.take(torch.arange(8))
    far = torch.tensor([50.0, -70.0] * 4, dtype=torch.float64)
    far = far[:, None] if batch.x.ndim == 2 else far
    more = joined(batch, Batch(0 * few.x + far, few.labels, few.more))
    counts = (torch.arange(len(more)) < len(batch)).double()
    expected = one(subject, batch.weighing(torch.ones(len(batch), dtype=torch.float64)))
    found = one(subject, more.weighing(counts))
    same(found, expected, lambda rows: rows[: len(batch)], rtol=1e-10, atol=1e-11)
    if found.rows is not None:
        assert not found.rows[len(batch) :].any()


def joined(first: Batch, second: Batch) -> Batch:
    """The rows of one batch after those of another."""
    both = first.take(torch.cat([torch.arange(len(first)), torch.arange(len(second))]))
    return Batch(torch.cat([first.x, second.x]), both.labels, both.more)


def scale_of_weights(subject: Subject) -> None:
    """Only the ratios of weights count."""
    small, plain = Training(subject), Training(subject)
    for seed in subject.seeds:
        batch = subject.batch(seed)
        weights = torch.rand(len(batch), generator=torch.Generator().manual_seed(seed)).double()
        expected = plain.step(batch.weighing(weights))
        same(small.step(batch.weighing(1e-3 * weights)), expected, rtol=1e-9, atol=1e-11)


def outputs(subject: Subject) -> None:
    """Outputs side by side are problems of their own; the loss is the mean of theirs."""
    batches = [subject.batch(seed) for seed in range(3)]
    alone = [one(subject, batch) for batch in batches]
    x = torch.stack([batch.x for batch in batches], 1)
    labels = torch.stack([batch.labels for batch in batches], 1)
    expected = Step(
        torch.stack([step.loss for step in alone]).mean(),
        torch.stack([step.rows for step in alone], 1) / 3,
        {},
    )
    step = one(subject, Batch(x, labels))
    same(step, expected, rtol=1e-9, atol=1e-12)


# ---- choices on hard counts ----------------------------------------------------------------------


def chosen(subject: Subject, batch: Batch) -> tuple[float, dict[Any, Any]]:
    """What ``Problem.choose`` reaches, and its thresholds by whose they are."""
    try:
        found = subject.problem.choose(batch.x, batch.labels, **batch.more)
    except Infeasible:
        return math.nan, {}
    at = found.thresholds
    return found.value, dict(at if isinstance(at, Mapping) else enumerate(at))


def same_choice(found: Any, expected: Any, moved: Any = lambda unit, t: t) -> None:
    """The same value, and thresholds that are ``moved`` from where they were."""
    assert found[0] == pytest.approx(expected[0], rel=1e-12, abs=1e-12, nan_ok=True)
    assert found[1].keys() == expected[1].keys()
    for unit, thresholds in expected[1].items():
        there = np.vectorize(lambda t, unit=unit: moved(unit, t))(thresholds)
        assert np.asarray(found[1][unit]) == pytest.approx(there, rel=1e-9, abs=1e-12)


def choice_of_shuffled(subject: Subject) -> None:
    """What is chosen does not depend on the order of the examples."""
    for ties in subject.ties:
        batch = subject.batch(ties=ties)
        order = torch.randperm(len(batch), generator=torch.Generator().manual_seed(0))
        same_choice(chosen(subject, batch.take(order)), chosen(subject, batch))


def choice_of_copied(subject: Subject) -> None:
    """What is chosen takes a weight for a number of copies."""
    for seed, batch in subject.batches():
        counts, rows = some_copies(batch, seed)
        weighed = chosen(subject, batch.weighing(counts.double()))
        same_choice(chosen(subject, batch.take(rows)), weighed)


def choice_of_moved(subject: Subject) -> None:
    """Thresholds move with the scores that share them; what they reach stays."""
    offsets = OFFSETS.tolist() if subject.axis != "everyone" else [8.0] * 99
    mean = sum(offsets[: subject.classes]) / max(subject.classes, 1)  # shifts add up to zero
    for ties in subject.ties:
        batch = subject.batch(ties=ties)
        expected = chosen(subject, batch)
        moved = Batch(batch.x + shifts_of(subject, batch), batch.labels, batch.more)
        found = chosen(subject, moved)
        same_choice(found, expected, lambda unit, t: t + offsets[int(unit)] - mean)
        scaled = Batch(batch.x * 16, batch.labels, batch.more)
        same_choice(chosen(subject, scaled), expected, lambda unit, t: t * 16)


# ---- gradients ---------------------------------------------------------------------------------


def direction(subject: Subject) -> None:
    """With one threshold, every goal of TP and FP pulls along ``q dTP - p dFP``.

    ``p`` and ``q`` are the soft densities of positives and negatives at the threshold. So it is
    within every group and every query that has a threshold of its own.
    """
    batch = subject.batch()
    step = one(subject, batch)
    soft = soft_problem(subject, batch, step)
    for unit, line in soft.lines():
        mine = step.rows[unit]
        if mine.norm() > 1e-12:  # else the objective is what is held: nothing is left to pull
            cosine = (mine @ line) / (mine.norm() * line.norm())
            assert abs(float(cosine)) >= 1 - 1e-12


def differences(subject: Subject) -> None:
    """The gradient is that of the soft problem, its thresholds solved for again.

    Width and level are those of the batch: what was held stays at its soft value.
    """
    for seed in range(2):
        batch = subject.batch(seed)
        step = one(subject, batch)
        soft = soft_problem(subject, batch, step)
        check_slopes(soft, batch.x, step, seed, length=1e-5 * soft.narrowest)


def closed_form(subject: Subject) -> None:
    """The gradient is what ``hold`` gives by automatic differentiation of the soft problem."""
    batch = subject.batch()
    step = one(subject, batch)
    soft = soft_problem(subject, batch, step)
    leaf = batch.x.clone().requires_grad_()
    thresholds = hold(soft.held, leaf, find=lambda _: soft.start, coupled=True)
    soft.objective(leaf, thresholds).backward()
    assert_close(step.rows, leaf.grad, rtol=1e-9, atol=1e-11 * scale_of(leaf.grad))


def own_differences(subject: Subject) -> None:
    """The gradient is that of the value, the state of the criterion given."""
    training = Training(subject)
    for seed in range(3):  # so that multipliers are not all zero
        training.step(subject.batch(seed))
    batch = subject.batch(3)
    training.criterion.eval()
    step = training.step(batch)
    again = lambda x: training.look(Batch(x, batch.labels, batch.more))  # noqa: E731
    check_slopes(again, batch.x, step, 0, length=1e-7)  # so short that no kink of a hinge is near


def check_slopes(value: Any, x: Tensor, step: Step, seed: int, length: float) -> None:
    """Central differences along random directions, to 1e-6 and what rounding leaves of them."""
    rng = torch.Generator().manual_seed(seed)
    for _ in range(3):
        towards = torch.randn(x.shape, generator=rng, dtype=torch.float64)
        ahead, behind = (float(value(x + sign * length * towards)) for sign in (1, -1))
        found = float((step.rows * towards).sum())
        around = float((step.rows.abs() * towards.abs()).sum())
        noise = 1e-15 / length  # the value is only known to a rounding error
        expected = (ahead - behind) / (2 * length)
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-6 * around + noise)


# ---- state -------------------------------------------------------------------------------------


def resume(subject: Subject) -> None:
    """Training resumed from a checkpoint gives the very numbers of training never stopped."""
    whole, before, after = (Training(subject) for _ in range(3))
    batches = [subject.batch(seed) for seed in range(5)]
    expected = [learn(whole, batch) for batch in batches]
    for batch in batches[:3]:
        learn(before, batch)
    after.parts.load_state_dict(copy.deepcopy(before.parts.state_dict()))
    for batch, step in zip(batches[3:], expected[3:], strict=True):
        found = learn(after, batch)
        assert torch.equal(found.loss, step.loss)
        assert found.rows is None or torch.equal(found.rows, step.rows)
        assert all(torch.equal(found.parameters[name], g) for name, g in step.parameters.items())
    for name, value in whole.parts.state_dict().items():
        assert_close(after.parts.state_dict()[name], value, rtol=0, atol=0, equal_nan=True)
    if hasattr(whole.criterion, "stats"):
        found, expected = (part.criterion.stats() for part in (after, whole))
        for each in (found, expected):
            each.pop(
                "recent", None
            )  # of the batches since the start of a process, as in the status
            if "status" in each:
                each["status"] = each["status"].partition("; over the last")[0]
        assert repr(found) == repr(expected)  # NaN equals itself
    if hasattr(whole.criterion, "history"):
        assert after.criterion.history() == whole.criterion.history()


def learn(training: Training, batch: Batch) -> Step:
    """A step of gradient descent."""
    found = training.step(batch)
    with torch.no_grad():
        for parameter in training.parts.parameters():
            if parameter.grad is not None:
                parameter -= 0.3 * parameter.grad
    return found
