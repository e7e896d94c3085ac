"""Label plans: which rows of an unlabelled table to label, so that few labels prove much.

A threshold at a false positive rate of 0.1 % is decided by the highest scores. Labels drawn
uniformly are mostly elsewhere: 2,000 of them hold two false alarms. A plan draws most labels
uniformly among the ``top`` highest scores and a few among the others.

How much the labels prove, and why: :mod:`setpoint.certificates.planned_labels`.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import share, whole
from setpoint.certificates.goals import (
    ACCEPTED,
    CertificateGoal,
    Inequality,
    goal_to_certify,
    inequalities,
)
from setpoint.certificates.sample import NEGATIVES, POSITIVES, CannotPromise, scores_and_precision
from setpoint.certificates.storage import checked_record, json_object

PLAN_KIND = "setpoint label plan"
BELOW = 0.1
"""The share of the budget that is drawn below the top, for the prevalence; at least 50 labels."""
ROOM = 1.3
"""How many times the rows that a goal is expected to accept are the top."""


@dataclass(frozen=True)
class LabelPlan:
    """Which rows to label. See :func:`label_plan`.

    Attributes:
        goal: What the labels are to prove.
        examples: How many scores the table has.
        top: How many of the highest scores most labels are drawn from.
        rows: The rows to label, numbered from 0: first those of the top (of a goal on precision
            from the highest score downwards, else in random order), then those below.
        top_labels: How many of ``rows`` belong to the top.
        fingerprint: A digest of the scores, so that the plan is not used with others.

    Examples:
        >>> import numpy as np
        >>> from setpoint import label_plan
        >>> plan = label_plan(np.random.default_rng(0).normal(size=5000), "fpr <= 2 %", budget=800)
        >>> plan.goal, len(plan.rows) <= 800
        ('fpr <= 0.02', True)
    """

    goal: str
    examples: int
    top: int
    rows: tuple[int, ...]
    top_labels: int
    fingerprint: str

    @property
    def in_order(self) -> bool:
        """Whether rows are labelled from the highest score downwards (goals on precision)."""
        return single_inequality(self.goal)[1].kind == ACCEPTED

    def to_json(self) -> str:
        """The plan as JSON."""
        return json.dumps({"kind": PLAN_KIND, **asdict(self)}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> LabelPlan:
        """Read :meth:`to_json` back; anything else is a ValueError."""
        body = json_object(text)
        if body.pop("kind", None) != PLAN_KIND:
            raise ValueError("This is no label plan: make one with label_plan or `setpoint plan`.")
        plan = checked_record(cls, body, "label plan")
        single_inequality(plan.goal)
        there = all(row < plan.examples for row in plan.rows)
        if not there or len(set(plan.rows)) != len(plan.rows):
            raise ValueError("This is no valid label plan: its rows are not those of the table.")
        if not 0 <= plan.top_labels <= min(plan.top, len(plan.rows)) <= plan.examples:
            raise ValueError("This is no valid label plan: it labels more rows than it has.")
        return plan

    def __str__(self) -> str:
        below = len(self.rows) - self.top_labels
        text = f"label {self.top_labels:,} of the {self.top:,} highest scores"
        return f"{text} and {below:,} of the {self.examples - self.top:,} others: {self.goal}"


def label_plan(
    scores: Any,
    goal: Any,
    budget: int = 2000,
    *,
    prevalence: float = 0.02,
    reviewed: float | None = None,
    seed: int = 0,
) -> LabelPlan:
    """Choose the rows of an unlabelled table whose labels prove most.

    Args:
        scores: One score per example, without labels; the examples are independent draws from what
            the threshold will meet.
        goal: A bound on ``fpr`` from above, on ``precision`` or ``recall`` from below; a problem
            with such a bound, or a sentence.
        budget: How many labels can be had.
        prevalence: Roughly the share of positives. A guess that is too high wastes labels; one
            that is too low ends the search above the best threshold. It does not enter the proof.
        reviewed: A threshold that was fixed before these rows came, above which all rows are
            labelled already (reviewed alerts). They come on top of the budget, which is drawn
            below. Needed for ``recall``.
        seed: Of the random draw.

    Returns:
        The plan, for `certify` with the labels.

    Raises:
        CannotPromise: The goal is of another kind.
        ValueError: The budget is too small, or no row lies on one side of ``reviewed``.

    Examples:
        >>> import numpy as np
        >>> from setpoint import certify, label_plan
        >>> random = np.random.default_rng(0)
        >>> y = random.random(100_000) < 0.01
        >>> s = random.normal(size=100_000) + 4 * y
        >>> plan = label_plan(s, "fpr <= 0.1 %", budget=2000, prevalence=0.01)
        >>> print(plan)
        label 1,430 of the 1,430 highest scores and 200 of the 98,570 others: fpr <= 0.001
        >>> labels = np.full(len(s), np.nan)
        >>> labels[list(plan.rows)] = y[list(plan.rows)]  # the 2,000 that somebody labelled
        >>> certificate = certify(s, labels, plan.goal, plan=plan)
        >>> certificate.status, bool(y[certificate.decide(s)].sum() > 700)
        ('certified', True)
    """
    array, _ = scores_and_precision(scores)
    wanted, inequality = single_inequality(goal)
    budget, guess = whole(budget, "budget", least=1), share(prevalence, "prevalence")
    order = np.argsort(-array, kind="stable")
    precise = inequality.kind == ACCEPTED
    if reviewed is not None:
        top = drawn = int((array > reviewed).sum())
        below = budget
        if not 0 < top < len(array):
            side = "above" if top == 0 else "below"
            raise ValueError(f"No score is {side} the reviewed threshold, {reviewed:g}.")
    elif inequality.kind == POSITIVES:
        raise CannotPromise(
            f"`{inequality.source}` is about the positives that are missed, and these may be "
            "anywhere below the threshold. Pass reviewed= (a threshold above which all rows are "
            "labelled); the budget is then drawn below it."
        )
    elif precise:
        top = drawn = _whole_ties(array[order], min(budget, len(array)))
        below = 0
        if not top:
            ties = int((array == array.max()).sum())
            raise CannotPromise(
                f"{ties:,} rows share the highest score, {array.max():g}, and no threshold tells "
                f"them apart: a budget of {budget:,} is too small. Pass budget={ties}, or certify "
                "finer scores."
            )
    else:
        top = _top(array[order], inequality, guess)
        below = min(max(50, round(BELOW * budget)), len(array) - top)
        drawn = min(top, budget - below)
        if drawn < 1:
            raise ValueError(f"budget must be more than the {below} labels below; got {budget}.")
    rows = _draw(order, top, drawn, min(below, len(array) - top), precise, seed)
    return LabelPlan(wanted.text, len(array), top, tuple(rows), drawn, fingerprint_of(array))


def single_inequality(goal: Any) -> tuple[CertificateGoal, Inequality]:
    """The goal and the one inequality in it; CannotPromise for what no plan serves."""
    wanted = goal_to_certify(goal)
    first, *more = inequalities(wanted.bounds, None)
    served = first.share is not None and not first.share.subset.where and not more
    cases = ((NEGATIVES, True), (POSITIVES, False), (ACCEPTED, None))
    if not served or (first.kind, first.caps) not in cases:
        raise CannotPromise(
            "A label plan serves one bound for everyone, on fpr from above, on precision or "
            f"recall from below; got `{wanted.text}`. Label rows drawn uniformly, and certify them."
        )
    return wanted, first


def _top(falling: NDArray[Any], inequality: Inequality, prevalence: float) -> int:
    """How many of the highest scores the threshold should be looked for in, ties kept together.

    Raises:
        CannotPromise: These are more than three quarters of the scores.
    """
    assert inequality.share is not None
    n = len(falling)
    expected = max(1, math.ceil(ROOM * (inequality.share.risk + prevalence) * n))
    most = n - n // 4  # the others tell how many negatives there are
    if expected <= most:
        more = int(np.searchsorted(-falling, -falling[expected - 1], "right"))
        top = more if more <= most else _whole_ties(falling, expected)
        if top:
            return top
    raise CannotPromise(
        f"`{inequality.source}` may accept about {expected:,} of {n:,} rows, if {prevalence:g} of "
        "all are positive, or as many scores are equal, and a plan gains where few are accepted. "
        "Label rows drawn uniformly and certify these, or pass a smaller prevalence=."
    )


def _whole_ties(falling: NDArray[Any], count: int) -> int:
    """The largest number of highest scores, at most ``count``, that splits no equal scores."""
    if count == len(falling):
        return count
    return int(np.searchsorted(-falling, -falling[count], "left"))


def _draw(
    order: NDArray[Any], top: int, drawn: int, below: int, in_order: bool, seed: int
) -> list[int]:
    """The rows of the top, then those below."""
    random = np.random.default_rng(seed)
    ranks = np.arange(drawn) if in_order else random.choice(top, drawn, replace=False)
    others = random.choice(len(order) - top, below, replace=False) + top
    return [int(row) for row in order[np.concatenate([ranks, others])]]


def fingerprint_of(scores: NDArray[Any]) -> str:
    """A digest of scores in their order."""
    return hashlib.sha256(np.ascontiguousarray(scores).tobytes()).hexdigest()[:16]
