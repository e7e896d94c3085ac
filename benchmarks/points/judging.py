"""Judge runs on the way by every goal; keep the checkpoint and the setting validation prefers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from benchmarks.points.goals import GOALS, points
from benchmarks.points.methods import READINGS, RUNS, Column
from setpoint import Infeasible
from setpoint.results import diagnose

Scores = Callable[[str, bool], Any]
"""The scores ``[n, columns]`` of a part (train, validation, test) by last or averaged weights."""


class Cell(NamedTuple):
    """What all methods share: data, model class, optimizer, batch, start, seed."""

    data: str
    model: str = "linear"
    optimizer: str = "adam"
    batch: int = 512  # 0: all rows
    zero_head: bool = False
    seed: int = 0


@dataclass
class Best:
    """The checkpoint that validation prefers, for one column, reading and goal."""

    validation: float = -np.inf
    step: int = 0
    scores: dict[str, Any] = field(default_factory=dict)


@dataclass
class Judge:
    """The labels of all parts, the goals, and the best so far."""

    labels: dict[str, Any]
    goals: list[str]
    best: dict[tuple[str, str, Column], Best] = field(default_factory=dict)

    def look(self, step: int, columns: list[Column], scores: Scores) -> None:
        """Take the validation metrics; where one is the best yet, keep the scores of the others."""
        for name, reading in READINGS.items():
            if all(column.run != reading.run for column in columns):
                continue
            seen = scores("validation", reading.averaged)
            kept = ("test", "train") if name == "cross-entropy" else ("test",)
            fresh: dict[str, Any] = {}
            for place, column in enumerate(columns):
                if column.run != reading.run:
                    continue
                for goal in [column.goal] if column.goal else self.goals:
                    found = value(goal, seen[:, place], self.labels["validation"])
                    mine = self.best.setdefault((name, goal, column), Best())
                    if found > mine.validation:
                        mine.validation, mine.step = found, step
                        fresh = fresh or {part: scores(part, reading.averaged) for part in kept}
                        mine.scores = {part: fresh[part][:, place].copy() for part in kept}
                        mine.scores["validation"] = seen[:, place].copy()

    def rows(self, cell: Cell) -> Iterator[dict[str, Any]]:
        """One row for every reading and goal: the column validation prefers, and all others."""
        for name in READINGS:
            for goal in self.goals:
                mine = {c: b for (n, g, c), b in self.best.items() if (n, g) == (name, goal)}
                if not mine:
                    continue
                tests = {
                    c: value(goal, b.scores["test"], self.labels["test"]) for c, b in mine.items()
                }
                pick = max(mine, key=lambda c: mine[c].validation)
                yield {
                    **cell._asdict(),
                    "goal": goal,
                    "method": name,
                    "validation": round(mine[pick].validation, 4),
                    "test": round(tests[pick], 4),
                    "rate": pick.rate,
                    "setting": RUNS[pick.run].settings[pick.setting],
                    "step": mine[pick].step,
                    "by_rate": {
                        f"{c.rate}/{c.setting}": [round(b.validation, 3), round(tests[c], 3)]
                        for c, b in mine.items()
                    },
                    **(self._limits(goal, mine[pick]) if name == "cross-entropy" else {}),
                }

    def _limits(self, goal: str, best: Best) -> dict[str, Any]:
        """What setpoint.results.diagnose says of cross-entropy: does it foretell the gain?"""
        pairs = {part: (best.scores[part], self.labels[part]) for part in ("validation", "train")}
        try:
            found = diagnose(*pairs["validation"], GOALS[goal], train=pairs["train"], draws=30)
        except Infeasible:
            return {}
        return {
            "train": round(points(goal, found.train), 3),
            "noise": round(100 * found.noise, 3),
            "effective": [round(found.positives, 1), round(found.negatives, 1)],
            "limit": found.limit,
        }


def value(goal: str, scores: Any, labels: Any) -> float:
    """The goal in points; nothing reached counts 0."""
    if not np.isfinite(scores).all():
        return 0.0
    try:
        return points(goal, GOALS[goal].evaluate(scores, labels))
    except Infeasible:
        return 0.0
