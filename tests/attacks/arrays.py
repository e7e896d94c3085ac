"""Attacks by values: dtypes, shapes, containers, extremes, what is missing.

Oracles: what is a column of finite numbers gives what the same numbers give as float64; what is
none is refused; a certificate's threshold keeps its bound by the binomial law.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import torch
from attacks.refusals import Refused, attempt
from scipy.stats import binom
from subjects import CRITERIA

import setpoint as sp
from setpoint.solvers import Split

FAMILIES: dict[str, Callable[[Random], float]] = {
    "normal": lambda r: r.gauss(0, 1),
    "few": lambda r: float(r.randrange(4)),
    "constant": lambda r: 0.7,
    "extreme": lambda r: r.choice([1.7e308, -1.7e308, 1e300, 0.0, -1e-300, 1.0]),
    "subnormal": lambda r: r.choice([5e-324, 1e-320, -5e-324, 0.0, -0.0]),
    "half": lambda r: float(np.float16(r.gauss(0, 1))),
    "shares": lambda r: r.random(),
    "logits": lambda r: r.choice([-80.0, 80.0, 0.0, 30.0]) + r.gauss(0, 1),
}

# ---- containers --------------------------------------------------------------------------------
READABLE: dict[str, Callable[[np.ndarray], Any]] = {
    "list": lambda x: x.tolist(),
    "tuple": lambda x: tuple(x.tolist()),
    "float64": lambda x: x,
    "read only": lambda x: np.frombuffer(x.tobytes()),
    "every second": lambda x: np.repeat(x, 2)[::2],
    "backwards": lambda x: x[::-1].copy()[::-1],
    "big endian": lambda x: x.astype(">f8"),
    "torch": lambda x: torch.from_numpy(x.copy()),
    "torch with a gradient": lambda x: torch.from_numpy(x.copy()).requires_grad_(),
    "pandas": pd.Series,
    "column": lambda x: x[:, None],
    "unmasked": lambda x: np.ma.masked_array(x),
}
"""Ways to say the same float64 numbers."""
REFUSED: dict[str, Callable[[np.ndarray], Any]] = {
    "masked": lambda x: np.ma.masked_array(x, np.arange(len(x)) == 1),
    "nan": lambda x: np.where(np.arange(len(x)) == 1, np.nan, x),
    "infinite": lambda x: np.where(np.arange(len(x)) == 1, -np.inf, x),
    "complex": lambda x: x.astype(complex),
    "dates": lambda x: np.arange(len(x)).astype("datetime64[s]"),
    "structured": lambda x: np.zeros(len(x), [("a", float)]),
    "text": lambda x: [f"{v} points" for v in x.tolist()],
    "none": lambda x: [None, *x.tolist()[1:]],
    "a dictionary": lambda x: dict(enumerate(x.tolist())),
    "one number": lambda x: 3.0,
    "nothing": lambda x: None,
    "a cube": lambda x: np.stack([np.stack([x, x])] * 2),
    "ragged": lambda x: [[v] * (i % 2 + 1) for i, v in enumerate(x.tolist())],
    "meta": lambda x: torch.empty(len(x), device="meta"),
    "sparse": lambda x: torch.from_numpy(x.copy()).to_sparse(),
    "missing in pandas": lambda x: pd.Series([None, *x.tolist()[1:]], dtype="Float64"),
    "huge integers": lambda x: [10**400] * len(x),
}
"""What is no column of finite numbers."""
UNLABELLED = ("none", "nan", "missing in pandas")
"""Labels that are missing: the rows are left out."""
GOALS = {
    "fpr <= 0.2": ("minimize fnr subject to fpr <= 0.2", 0, 0.2, lambda s, t: s > t),
    "recall >= 0.6": ("minimize fpr subject to recall >= 0.6", 1, 0.4, lambda s, t: s <= t),
    "coverage <= 0.3": (
        "maximize recall subject to coverage <= 0.3",
        None,
        0.3,
        lambda s, t: s > t,
    ),
}


def column(random: Random) -> tuple[np.ndarray, np.ndarray]:
    """Scores of some family, and labels of both kinds."""
    make, n = FAMILIES[random.choice(sorted(FAMILIES))], random.choice([2, 3, 8, 30, 60])
    scores = np.array([make(random) for _ in range(n)])
    labels = np.array([random.randrange(2) for _ in range(n)])
    labels[:2] = 0, 1
    return scores, labels


def same(one: Any, other: Any) -> bool:
    """Equal, and both refused or neither."""
    if isinstance(one, Refused) or isinstance(other, Refused):
        return isinstance(one, Refused) and isinstance(other, Refused)
    return repr(one) == repr(other)


CALLS: dict[str, Callable[[str, Any, Any], Any]] = {
    "evaluate": lambda goal, s, y: sp.Problem.parse(GOALS[goal][0]).evaluate(s, y),
    "choose": lambda goal, s, y: sp.Problem.parse(GOALS[goal][0]).choose(s, y),
    "certify": lambda goal, s, y: sp.certify(s, y, goal, confidence=0.8).to_json(),
}


def containers(random: Random) -> None:
    """The same numbers in any container have the same answer; labels, too."""
    scores, labels = column(random)
    goal, call = random.choice(sorted(GOALS)), CALLS[random.choice(sorted(CALLS))]
    expected = attempt(lambda: call(goal, scores, labels))
    given = READABLE[random.choice(sorted(READABLE))](scores)
    of_labels = READABLE[random.choice(sorted(READABLE))](labels.astype(float))
    whose = random.choice([labels, labels.astype(bool), labels.tolist(), of_labels])
    found = attempt(lambda: call(goal, given, whose))
    assert same(found, expected), (goal, found, expected)


def refused(random: Random) -> None:
    """What is no column of finite numbers is refused, as scores and as labels."""
    scores, labels = column(random)
    goal, call = random.choice(sorted(GOALS)), CALLS[random.choice(sorted(CALLS))]
    name = random.choice(sorted(REFUSED))
    fine = name in UNLABELLED  # as labels
    if random.random() < 0.5 or fine or (name == "nothing" and goal.startswith("coverage")):
        found = attempt(lambda: call(goal, REFUSED[name](scores), labels))
    else:
        found = attempt(lambda: call(goal, scores, REFUSED[name](labels.astype(float))))
    assert isinstance(found, Refused), (name, goal, found)


def certified(random: Random) -> None:
    """A certified threshold keeps its bound by the binomial law, in the precision of the scores."""
    scores, labels = column(random)
    copies = random.choice([1, 2, 5])
    labels = np.tile(labels, copies)
    kind = random.choice([np.float64, np.float32, np.float16])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        scores = np.clip(np.tile(scores, copies), np.finfo(kind).min, np.finfo(kind).max)
        scores = scores.astype(kind)
    goal = random.choice(sorted(GOALS))
    confidence = random.choice([0.5, 0.8, 0.95])
    found = attempt(lambda: sp.certify(scores, labels, goal, confidence=confidence))
    if isinstance(found, Refused):
        return
    _, of, level, wrong = GOALS[goal]
    shown = scores if of is None else scores[labels == of]
    risk = 1 - confidence + 1e-12
    if found.status != "certified":
        assert binom.cdf(0, len(shown), level) > risk - 2e-12 or len(set(scores.tolist())) > 1
        return
    assert sp.Certificate.from_json(found.to_json()) == found
    decided = np.asarray(found.decide(scores), bool)
    assert (decided == (scores > found.threshold)).all()
    count = int(wrong(shown, found.threshold).sum())
    assert binom.cdf(count, len(shown), level) <= risk, (goal, count, len(shown))
    assert "nan" not in str(found).replace("inance", "")


NAMES: dict[str, Callable[[np.ndarray], Any]] = {
    "int64": lambda x: x,
    "uint64": lambda x: x.astype(np.uint64),
    "list": lambda x: x.tolist(),
    "objects": lambda x: x.astype(object),
    "torch": lambda x: torch.from_numpy(x.copy()),
    "pandas": pd.Series,
    "nullable": lambda x: pd.Series(x, dtype="Int64"),
    "texts": lambda x: x.astype(str),
}
"""Ways to say long identifiers, of which float64 would make one."""


def names(random: Random) -> None:
    """Groups, clusters and queries are told apart by their last digit, however they are given."""
    rng = np.random.default_rng(random.randrange(2**32))
    count = random.choice([2, 5, 40])
    whose = rng.integers(0, count, 200)
    long = 2**60 + random.randrange(2**59) + whose
    labels = rng.integers(0, 2, 200)
    scores = rng.normal(size=200) + 2 * labels
    given = NAMES[random.choice(sorted(NAMES))](long)
    for column in ("clusters", "groups") if count < 40 else ("clusters",):
        found = [
            attempt(partial(sp.certify, scores, labels, "fpr <= 0.4", **{column: each}))
            for each in (given, whose)
        ]
        if not isinstance(found[1], Refused):
            one, other = (sorted(str(p.threshold) for p in each.points) for each in found)
            assert one == other, (one, other)
    per_query = sp.precision_at_k(2).per("query")
    one, other = (per_query.choose(scores, labels, queries=q) for q in (given, whose))
    assert len(one.thresholds) == len(other.thresholds) == len(set(whose.tolist()))
    assert one.value == other.value


# ---- criteria ----------------------------------------------------------------------------------
ON_SCORES = sorted(name for name in CRITERIA if "last" not in name)
USUAL = torch.linspace(-1, 1, 12), torch.arange(12) % 2


def criteria(random: Random) -> None:
    """Finite scores give a finite loss and gradient, or an error that names them; then all is well.

    A loss is a sum of 60 differences at most: so far from the largest number of their precision.
    """
    scores, labels = column(random)
    dtype = random.choice([torch.float64, torch.float32, torch.float16, torch.bfloat16])
    most = torch.finfo(dtype).max / 256
    leaf = torch.from_numpy(np.clip(scores, -most, most)).to(dtype)
    labels = torch.from_numpy(labels).to(random.choice([torch.long, torch.bool, torch.float32]))
    criterion = CRITERIA[random.choice(ON_SCORES)](None)
    for batch, y in ((leaf, labels), (USUAL[0].to(dtype), USUAL[1])):
        batch = batch.clone().requires_grad_()

        def step(batch=batch, y=y):
            loss = criterion(batch, y)
            loss.backward()
            return loss

        found = attempt(step)
        if isinstance(found, Refused):
            assert "score" in found.lower(), found
            continue
        assert found.shape == ()
        assert found.isfinite(), found
        assert batch.grad.isfinite().all(), batch.grad
        status = str(getattr(criterion, "status", ""))  # any loss has none
        assert "nan" not in status, status
        assert not any(
            v.isnan().any() for k, v in criterion.state_dict().items() if "threshold" in k
        )


def odd_tensors(random: Random) -> None:
    """A criterion refuses what it cannot train on, by name."""
    scores, labels = column(random)
    if np.abs(scores).max() > 1e30:
        return
    name = random.choice(sorted(REFUSED))
    criterion = CRITERIA[random.choice(ON_SCORES)](None)
    given = REFUSED[name](scores)
    found = attempt(lambda: criterion(given, torch.from_numpy(labels)))
    assert isinstance(found, Refused), (name, found)


def models(random: Random) -> None:
    """`LastLayer` and `RateBarrier`, which know the model: as :func:`criteria`, by its features."""
    values, labels = column(random)
    dtype = random.choice([torch.float64, torch.float32])
    most = torch.finfo(dtype).max / 2**16
    x = torch.from_numpy(np.clip(values, -most, most)).to(dtype)[:, None]
    y = torch.from_numpy(labels)
    body, head = torch.nn.Linear(1, 2, dtype=dtype), torch.nn.Linear(2, 1, dtype=dtype)
    net = torch.nn.Sequential(body, head)
    kind = random.choice(["last layer", "last layer, penalty", "barrier"])
    if kind == "barrier":
        goal = random.choice(["minimize fnr subject to fpr <= 0.2", "maximize precision"])
        criterion: Any = sp.RateBarrier(goal, net.parameters(), share=random.choice([0.0, 0.3]))
    else:
        criterion = CRITERIA[kind](Split(net))
    given = net if kind == "barrier" else body
    for features, truth in ((x, y), (USUAL[0].to(dtype)[:, None], USUAL[1])):
        net.zero_grad()

        def step(features=features, truth=truth):
            loss = criterion(given(features), truth)
            loss.backward()
            return loss

        found = attempt(step, allowed=(ValueError, TypeError, FloatingPointError))
        if isinstance(found, Refused):
            assert any(word in found.lower() for word in ("score", "feature", "gradient")), found
            continue
        assert found.isfinite(), found
        assert "nan" not in str(criterion.status if kind != "barrier" else criterion.stats())
        gradients = [p.grad for p in net.parameters() if p.grad is not None]
        assert all(g.isfinite().all() for g in gradients), (kind, gradients)
