"""What the barrier remembers between steps: a few numbers for each bound, kept in numpy.

They are read and written by python at every step, so they are arrays, and become tensors only in
``state_dict()``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from setpoint.solvers.barrier.constraints import Losses
from setpoint.solvers.barrier.quadratic_program import Direction, Mask, Vector

KINDS = ("<=", ">=", "==", "after")
PER_BOUND = (
    "multiplier",  # of the last step
    "largest",  # multiplier so far
    "binds",  # whether it mattered in the last step
    "binding",  # in how many steps it did
    "floor",  # the noise correction: what the multiplier is at least
    "gap",  # of the last step (lexicographic: the loss itself)
    "mean_gap",
    "mean_jump",  # of the squared difference of successive gaps
    "mean_square",  # of the squared length of the gradient
    "mean_printed",  # of the multiplier that a single batch asks for
    "mean_multiplier",
)
LEARNT = (  # lexicographic: of the direction of each level,
    "recent",  # the mean of its squared length, with the weights of the running mean of gradients
    "signal",  # the mean over all steps of the squared length of the true gradient
    "square",  # the same of the batch's gradient
    "next",  # the same of the next level's gradient, as far as it is no noise
    "next_batch",  # the same of its batches
)
COUNTS = ("steps", "opposed", "skipped", "looks")
SCALARS = ("mean_pull", "residual", "spent")
MEMORY = 0.05
"""The share of the newest step in running means; before the 20th step they are plain means."""


class Ledger(nn.Module):
    """Running numbers of a barrier; a module so that they travel in ``state_dict()``."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: dict[str, Vector] = {}
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        names = (*PER_BOUND, *LEARNT, "kinds", "weights")
        self.numbers.update({name: np.zeros(0) for name in names})
        self.numbers.update({name: np.zeros(()) for name in (*COUNTS, *SCALARS)})

    def check(self, kinds: Sequence[str]) -> None:
        """An error if there were other bounds before."""
        known = [KINDS[int(code)] for code in self.numbers["kinds"]]
        if known and known != list(kinds):
            raise ValueError(
                f"This barrier has kept the bounds ({', '.join(known)}) so far and now got "
                f"({', '.join(kinds)}). What it learns belongs to each bound: use another "
                "Barrier, or call reset() first."
            )

    def open(self, kinds: Sequence[str]) -> None:
        """Make room for these bounds, in the first step."""
        if not len(self.numbers["kinds"]):
            self.numbers.update({name: np.zeros(len(kinds)) for name in (*PER_BOUND, *LEARNT)})
            self.numbers["kinds"] = np.array([KINDS.index(kind) for kind in kinds], dtype=float)

    def count(self, name: str) -> int:
        """How often something happened."""
        return int(self.numbers[name])

    def follow(self, name: str, values: Vector) -> None:
        """Move a running mean towards the values of this step."""
        mean = self.numbers[name]
        self.numbers[name] = mean + self.pace() * (values - mean)

    def pace(self) -> float:
        """The share of this step in running means."""
        return max(MEMORY, 1 / (1 + self.count("steps")))

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, values in self.numbers.items():
            destination[prefix + name] = torch.tensor(values, dtype=torch.float64)

    def _load_from_state_dict(self, state: Any, prefix: str, *rest: Any) -> None:
        missing: list[str] = rest[2]
        for name in self.numbers:
            if prefix + name in state:
                self.numbers[name] = state[prefix + name].double().cpu().numpy().copy()
            else:
                missing.append(prefix + name)


JUMPS = 3.0
"""Gaps count up to so many deviations of the batch noise: a long way home is not noise."""
HIGHEST = 30.0
"""Floors end at so many times the ratio of gradient lengths, where noise cannot be beaten."""


def raise_floors(ledger: Ledger, gaps: Vector, free: Mask, *, alpha: float, gain: float) -> Vector:
    """The floors after one more batch.

    All factors of the gap come from earlier batches, so the rise is unbiased: its mean over the
    batches of a data set is the rise for the gap of the whole.

    Args:
        ledger: Running numbers of earlier batches.
        gaps: By how much each bound is broken on this batch.
        free: Which are equalities: their term may have either sign.
        alpha: Of the push: the floor rises like ``gain`` times the multiplier of the push.
        gain: The share of it in each step.
    """
    floors = ledger.numbers["floor"]
    squares = ledger.numbers["mean_square"]
    if gain == 0 or ledger.count("steps") < 2 or not squares.any():
        return floors
    squares = np.where(squares > 0, squares, np.inf)
    mean = np.abs(ledger.numbers["mean_gap"])
    noise = JUMPS * np.sqrt(ledger.numbers["mean_jump"] / 2)
    share = np.where(mean > noise, noise / np.where(mean > 0, mean, 1.0), 1.0)
    share = np.where(gaps * floors < 0, 1.0, share)  # what is too much may always fade
    limit = HIGHEST * np.sqrt(float(ledger.numbers["mean_pull"]) / squares)
    moved = floors + gain * alpha * share * gaps / squares
    risen: Vector = np.clip(moved, np.where(free, -limit, 0.0), limit)
    return risen


def follow_noise(ledger: Ledger, gaps: Vector) -> None:
    """Take in the gaps of a step."""
    if ledger.count("steps") > 0:
        jumps = (gaps - ledger.numbers["gap"]) ** 2
        mean = ledger.numbers["mean_jump"]
        pace = max(ledger.pace(), 1 / ledger.count("steps"))
        ledger.numbers["mean_jump"] = mean + pace * (jumps - mean)
    ledger.follow("mean_gap", gaps)
    ledger.numbers["gap"] = gaps


SETTLED = 0.3
"""Of the length of the last gradient, what may be left over where an order of losses is settled."""
CLOSE = 0.01
"""A bound counts as held within this share of its level, besides the noise of batches."""


class BarrierReport(dict[str, Any]):
    """A plain dict that prints as lines of words and numbers."""

    def __str__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{key:<{width}}  {_shown(value)}" for key, value in self.items())


def book(
    ledger: Ledger,
    losses: Losses,
    values: Vector,
    floors: Vector,
    direction: Direction | None,
    gram: Vector,
) -> dict[str, Any]:
    """Enter a step into the ledger; returns it in plain numbers.

    Without a direction the weights of an earlier step were used again.
    """
    numbers = ledger.numbers
    if direction is not None:
        squares = np.diagonal(gram)
        used = direction.multipliers
        numbers["multiplier"], numbers["weights"] = used, direction.weights
        numbers["residual"] = np.array(direction.residual)
        numbers["largest"] = np.maximum(numbers["largest"], np.abs(used))
        ledger.follow("mean_square", squares[:-1])
        ledger.follow("mean_pull", squares[-1])
        ledger.follow("mean_printed", np.abs(direction.printed))
        ledger.follow("mean_multiplier", np.abs(used))
        numbers.update(direction.learnt)
        numbers["binds"] = direction.binds.astype(float)
        numbers["opposed"] = numbers["opposed"] + direction.opposed
    numbers["binding"] = numbers["binding"] + numbers["binds"]
    numbers["floor"] = floors
    follow_noise(ledger, values[:-1])
    numbers["steps"] = numbers["steps"] + 1
    return _record(losses, values, direction, ledger)


def _record(
    losses: Losses, values: Vector, direction: Direction | None, ledger: Ledger
) -> dict[str, Any]:
    """One step in plain numbers: lists have one number for each bound, in the order given."""
    gaps, read = losses.gaps(values), losses.read(values)
    record: dict[str, Any] = {
        "status": _status(losses, direction, ledger),
        "objective": read[-1],
        "losses": read[:-1],
        "multiplier": ledger.numbers["multiplier"].tolist(),
        "weights": ledger.numbers["weights"].tolist(),
    }
    if direction is not None:
        record["push"] = direction.pushes.tolist()
        record["kkt_score"] = direction.score
        record["residual"] = direction.residual
    if not losses.ranked:
        broken = np.where(losses.free, np.abs(gaps), np.maximum(gaps, 0.0))
        record["slack"] = np.where(losses.free, -np.abs(gaps), -gaps).tolist()
        record["penalty"] = read[-1] + float(ledger.numbers["largest"] @ broken)
    return record


def summary(last: dict[str, Any], ledger: Ledger) -> BarrierReport:
    """The last step, and how it went since the beginning."""
    steps, numbers = ledger.count("steps"), ledger.numbers
    if not steps:
        return BarrierReport({"status": "not started", **last, "steps": 0})
    report = BarrierReport({"status": "resumed", "steps": steps, **last})
    report["binding"] = (numbers["binding"] / steps).tolist()
    report["largest_multiplier"] = numbers["largest"].tolist()
    if KINDS.index("after") not in numbers["kinds"]:
        report["mean_slack"] = (-numbers["mean_gap"]).tolist()
        report["noise_ratio"] = _ratio(numbers["mean_printed"], numbers["mean_multiplier"])
    else:
        ratio = _ratio(numbers["signal"], numbers["square"])
        report["noise_ratio"] = [max(each, 1.0) for each in ratio]  # a mean lags behind a descent
    report["opposed_steps"] = ledger.count("opposed")
    report["skipped"] = ledger.count("skipped")
    return report


def _ratio(asked: Vector, given: Vector) -> list[float]:
    """How many times what was asked for was given; 1 where one of them is nothing."""
    both = (asked > 0) & (given > 0)
    ratio: list[float] = np.where(both, given / np.where(both, asked, 1.0), 1.0).tolist()
    return ratio


def _status(losses: Losses, direction: Direction | None, ledger: Ledger) -> str:
    if losses.ranked:
        return "settled" if ledger.numbers["residual"] < SETTLED else "descending"
    if direction is not None and direction.opposed:
        return (
            "opposed: no direction keeps all bounds, so the least broken one was taken; "
            "loosen one of them"
        )
    words = [_word(i, losses, ledger) for i in range(len(losses.kinds))]
    troubled = [word for word in words if word not in ("held", "slack")]
    return "; ".join(troubled) or ("held" if "held" in words else "slack")


def _word(i: int, losses: Losses, ledger: Ledger) -> str:
    """How one bound stands."""
    name, level = losses.names[i], float(losses.levels[i])
    mean = float(ledger.numbers["mean_gap"][i])
    # the running mean of batches: their deviation over the root of how many it looks at
    noise = 2 * float(np.sqrt(ledger.numbers["mean_jump"][i] / 2 * ledger.pace()))
    off = abs(mean) if losses.kinds[i] == "==" else mean
    if off <= max(noise, CLOSE * max(abs(level), CLOSE)):
        idle = ledger.numbers["multiplier"][i] == 0 and losses.kinds[i] != "=="
        return "slack" if idle else "held"
    if ledger.numbers["mean_square"][i] == 0:
        return f"{name} is flat: broken by {off:.3g} with a zero gradient; start elsewhere"
    return f"{name} is being mended: broken by {off:.3g}"


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return str(value)
