"""What a barrier remembers between steps, and its report in numbers and words.

The numbers are read and written by Python at every step, so they are numpy arrays, and become
tensors only in ``state_dict()``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from setpoint.solvers.barrier.constraints import Losses
from setpoint.solvers.barrier.quadratic_program import Mask, Vector

_BOUND_KINDS = ("<=", ">=", "==", "after")
_PER_BOUND = (
    "multiplier",  # of the last step
    "largest",  # the largest multiplier so far
    "binds",  # whether the bound changed the direction of the last step
    "binding",  # the number of steps in which it did
    "floor",  # the least value of the multiplier: the noise correction
    "gap",  # of the last step (lexicographic: the loss itself)
    "mean_gap",
    "mean_jump",  # of the squared difference of successive gaps
    "mean_square",  # of the squared length of the gradient
    "mean_printed",  # of the multiplier without the noise correction
    "mean_multiplier",
)
LEARNT = {  # lexicographic: what earlier steps say about each loss but the first, and shapes
    "signal": (0, 1),  # mean product of a gradient with the mean of earlier ones, on what the
    # first losses reach: its squared length without noise
    "square": (0, 1),  # mean squared length, there
    "shares": (1,),  # of all losses in the last step
    "lift": (0,),  # the factor of the share, moved by progress
    "largest_share": (0,),
    "levels": (0, 1),  # the direction of each level in the last step, by weights of the losses
    "along": (0,),  # mean product of recent directions with the gradient: 1 if it is followed whole
    "path": (0,),  # mean squared length of recent directions, next to share * gradient
    "whole": (0,),  # as "along", of the direction of all losses
    "recent": (0,),  # the squared part of the gradient that is followed, over a tenth of the steps
    "longer": (0,),  # and over a fifth
    "residual": (0,),  # the squared residual of eq. (16)
}
_COUNTS = ("steps", "opposed", "skipped", "looks")
_SCALARS = ("mean_pull", "arrived")
_MEMORY = 0.05
"""The share of the newest step in running means; before the 20th step they are plain means."""
_CLOSE = 0.01
"""A bound counts as held within this share of its level, besides the noise of batches."""


@dataclass(frozen=True)
class Direction:
    """The direction ``sum_i weights[i] * gradient[i]``, and how it was found.

    Attributes:
        weights: One weight per loss, the objective last, ``[m + 1]``.
        multipliers: One per bound, ``[m]``.
        printed: The multipliers without the noise correction, ``[m]``.
        pushes: What each bound asks for (eq. 8), ``[m]``.
        score: The KKT score (eq. 9) with ``nu = 1``.
        residual: ``|v| / |grad f|``: 0 where nothing is left to do; in lexicographic training the
            residual of eq. (16), estimated from recent directions.
        opposed: Whether no direction keeps all bounds.
        binds: Which bounds change the direction of this step, ``[m]``.
        arrived: Whether nothing is left to do for the objective.
        learnt: Numbers for the rule's part of the state.
    """

    weights: Vector
    multipliers: Vector
    printed: Vector
    pushes: Vector
    score: float
    residual: float
    opposed: bool
    binds: Mask
    arrived: bool
    learnt: Mapping[str, Vector] = field(default_factory=dict)


class BarrierState(nn.Module):
    """Running numbers of a barrier; a module, so that they are part of ``state_dict()``."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: dict[str, Vector] = {}
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        names = (*_PER_BOUND, *LEARNT, "kinds", "weights")
        self.numbers.update({name: np.zeros(0) for name in names})
        self.numbers.update({name: np.zeros(()) for name in (*_COUNTS, *_SCALARS)})

    def check(self, kinds: Sequence[str]) -> None:
        """Raise if earlier steps had other bounds."""
        known = [_BOUND_KINDS[int(code)] for code in self.numbers["kinds"]]
        if known and known != list(kinds):
            raise ValueError(
                f"This barrier has kept the bounds ({', '.join(known)}) so far and now got "
                f"({', '.join(kinds)}). What it learns belongs to each bound: use another "
                "Barrier, or call reset() first."
            )

    def open(self, kinds: Sequence[str]) -> None:
        """In the first step, make room for these bounds."""
        if not len(self.numbers["kinds"]):
            m = len(kinds)
            self.numbers.update({name: np.zeros(m) for name in _PER_BOUND})
            shapes = {name: [m + extra for extra in more] for name, more in LEARNT.items()}
            self.numbers.update({name: np.zeros(shape) for name, shape in shapes.items()})
            for name in ("lift", "along", "path", "whole"):
                self.numbers[name] += 1
            self.numbers["kinds"] = np.array(
                [_BOUND_KINDS.index(kind) for kind in kinds], dtype=float
            )

    def count(self, name: str) -> int:
        """One of the numbers in ``_COUNTS``."""
        return int(self.numbers[name])

    def follow(self, name: str, values: Vector) -> None:
        """Move a running mean towards the values of this step."""
        mean = self.numbers[name]
        self.numbers[name] = mean + self.pace() * (values - mean)

    def pace(self) -> float:
        """The share of this step in running means."""
        return max(_MEMORY, 1 / (1 + self.count("steps")))

    def add(self, values: Vector, direction: Direction | None, gram: Vector) -> None:
        """Take in one step; without a direction the weights of an earlier step were used again."""
        numbers = self.numbers
        if direction is not None:
            squares = np.diagonal(gram)
            used = direction.multipliers
            numbers["multiplier"], numbers["weights"] = used, direction.weights
            numbers["arrived"] = np.array(float(direction.arrived))
            numbers["largest"] = np.maximum(numbers["largest"], np.abs(used))
            self.follow("mean_square", squares[:-1])
            self.follow("mean_pull", squares[-1])
            self.follow("mean_printed", np.abs(direction.printed))
            self.follow("mean_multiplier", np.abs(used))
            numbers.update(direction.learnt)
            numbers["binds"] = direction.binds.astype(float)
            numbers["opposed"] = numbers["opposed"] + direction.opposed
        numbers["binding"] = numbers["binding"] + numbers["binds"]
        if self.count("steps") > 0:
            jumps = (values[:-1] - numbers["gap"]) ** 2
            pace = max(self.pace(), 1 / self.count("steps"))
            numbers["mean_jump"] = numbers["mean_jump"] + pace * (jumps - numbers["mean_jump"])
        self.follow("mean_gap", values[:-1])
        numbers["gap"] = values[:-1]
        numbers["steps"] = numbers["steps"] + 1

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


class BarrierReport(dict[str, Any]):
    """A plain dict that prints as one line per entry."""

    def __str__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{key:<{width}}  {_as_text(value)}" for key, value in self.items())


def step_record(
    losses: Losses, values: Vector, direction: Direction | None, state: BarrierState
) -> dict[str, Any]:
    """One step in plain numbers; lists have one number per bound, in the order given."""
    gaps, read = losses.gaps(values), losses.read(values)
    record: dict[str, Any] = {
        "status": _status(losses, direction, state),
        "objective": read[-1],
        "losses": read[:-1],
        "multiplier": state.numbers["multiplier"].tolist(),
        "weights": state.numbers["weights"].tolist(),
    }
    if direction is not None:
        record["push"] = direction.pushes.tolist()
        record["kkt_score"] = direction.score
        record["residual"] = direction.residual
    if not losses.ranked:
        broken = np.where(losses.free, np.abs(gaps), np.maximum(gaps, 0.0))
        record["slack"] = np.where(losses.free, -np.abs(gaps), -gaps).tolist()
        record["penalty"] = read[-1] + float(state.numbers["largest"] @ broken)
    return record


def summary(last: dict[str, Any], state: BarrierState) -> BarrierReport:
    """The record of the last step, and totals of all steps."""
    steps, numbers = state.count("steps"), state.numbers
    if not steps:
        return BarrierReport({"status": "not started", **last, "steps": 0})
    report = BarrierReport({"status": "resumed", "steps": steps, **last})
    report["binding"] = (numbers["binding"] / steps).tolist()
    report["largest_multiplier"] = numbers["largest"].tolist()
    if _BOUND_KINDS.index("after") not in numbers["kinds"]:
        report["mean_slack"] = (-numbers["mean_gap"]).tolist()
        report["noise_ratio"] = _ratio(numbers["mean_printed"], numbers["mean_multiplier"])
    else:
        ratio = _ratio(np.diagonal(numbers["signal"]), np.diagonal(numbers["square"]))
        report["noise_ratio"] = [max(each, 1.0) for each in ratio]  # a mean lags behind a descent
    report["opposed_steps"] = state.count("opposed")
    report["skipped"] = state.count("skipped")
    return report


def _ratio(asked: Vector, given: Vector) -> list[float]:
    """``given / asked`` elementwise; 1 where one of them is not positive."""
    both = (asked > 0) & (given > 0)
    ratio: list[float] = np.where(both, given / np.where(both, asked, 1.0), 1.0).tolist()
    return ratio


def _status(losses: Losses, direction: Direction | None, state: BarrierState) -> str:
    if losses.ranked:
        return "settled" if state.numbers["arrived"] else "descending"
    if direction is not None and direction.opposed:
        return (
            "opposed: no direction keeps all bounds, so the least broken one was taken; "
            "loosen one of them"
        )
    words = [_word(i, losses, state) for i in range(len(losses.kinds))]
    troubled = [word for word in words if word not in ("held", "slack")]
    return "; ".join(troubled) or ("held" if "held" in words else "slack")


def _word(i: int, losses: Losses, state: BarrierState) -> str:
    """The state of one bound in words."""
    name, level = losses.names[i], float(losses.levels[i])
    mean, last = float(state.numbers["mean_gap"][i]), float(state.numbers["gap"][i])
    # the running mean of batches: their deviation over the root of how many it looks at
    noise = 2 * float(np.sqrt(state.numbers["mean_jump"][i] / 2 * state.pace()))
    # a bound is broken where the mean says so and the last batch does not contradict it
    off = min(abs(mean), abs(last)) if losses.kinds[i] == "==" else min(mean, last)
    if off <= max(noise, _CLOSE * max(abs(level), _CLOSE)):
        idle = state.numbers["multiplier"][i] == 0 and losses.kinds[i] != "=="
        return "slack" if idle else "held"
    if state.numbers["mean_square"][i] == 0:
        return f"{name} is flat: broken by {off:.3g} with a zero gradient; start elsewhere"
    return f"{name} is being mended: broken by {off:.3g}"


def _as_text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(map(_as_text, value))
    return str(value)
