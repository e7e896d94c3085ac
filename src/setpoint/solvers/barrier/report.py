"""What the barrier did, in numbers for a logger and in words for a reader."""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint.solvers.barrier.directions import Direction
from setpoint.solvers.barrier.ledger import KINDS, Ledger
from setpoint.solvers.barrier.losses import Losses
from setpoint.solvers.barrier.noise import follow_noise
from setpoint.solvers.barrier.quadratic import Vector

SETTLED = 0.3
"""Of the length of the last gradient, what may be left over where an order of losses is settled."""
CLOSE = 0.01
"""A bound counts as held within this share of its level, besides the noise of batches."""


class Report(dict[str, Any]):
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


def summary(last: dict[str, Any], ledger: Ledger) -> Report:
    """The last step, and how it went since the beginning."""
    steps, numbers = ledger.count("steps"), ledger.numbers
    if not steps:
        return Report({"status": "not started", **last, "steps": 0})
    report = Report({"status": "resumed", "steps": steps, **last})
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
