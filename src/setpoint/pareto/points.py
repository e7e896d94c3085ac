"""Points of a front: dominance and hypervolume, their JSON, and their files.

Both objectives are minimised. One point dominates another when it is at least as good in both and
better in one; the front is the set of points that no other one dominates.

Every point has a safetensors file, replaced as a whole: it is there completely or not at all, so a
run that is killed at any moment loses only the points that were being trained.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any, overload

from torch import Tensor

from setpoint._checks import quoted
from setpoint.certificates.storage import checked_record, json_object
from setpoint.train import load_checkpoint, save_checkpoint

_FRONT_FORMAT = "setpoint front 1"
Pair = tuple[float, float]


@dataclass(frozen=True)
class FrontPoint:
    """One trained model.

    Attributes:
        place: Where it stands on the grid: 0 has the smallest held objective, the last the largest.
        minimized: The value of the objective that was minimised (``f``), on all data.
        held: The value of the objective that was held (``g``), on all data.
        level: What ``held`` was held below (``c``); None for end points and for other methods.
        steps: How many batches it was trained on.
        seconds: How long that took.
        status: How the training ended, in words.
        measures: Further numbers, as the caller's ``measure`` gave them.
    """

    place: int
    minimized: float
    held: float
    level: float | None = None
    steps: int = 0
    seconds: float = 0.0
    status: str = ""
    measures: Mapping[str, float] = field(default_factory=dict)

    @property
    def gap(self) -> float | None:
        """``g - c``: how far the held objective is from its level; None where there is none."""
        return None if self.level is None else self.held - self.level

    @property
    def pair(self) -> Pair:
        """The two objectives."""
        return self.minimized, self.held


def non_dominated(pairs: Sequence[Pair]) -> list[bool]:
    """Which pairs no other pair dominates; of equal pairs all or none.

    Examples:
        >>> non_dominated([(0.0, 2.0), (1.0, 1.0), (1.0, 1.5), (2.0, 0.0)])
        [True, True, False, True]
    """
    found = [False] * len(pairs)
    best, best_before = float("inf"), float("inf")  # of all second values, of smaller first values
    previous = None
    for place in sorted(range(len(pairs)), key=pairs.__getitem__):
        first, second = pairs[place]
        if first != previous:
            previous, best_before, best_here = first, best, second
        found[place] = second < best_before and second == best_here
        best = min(best, second)
    return found


def hypervolume(pairs: Sequence[Pair], reference: Pair) -> float:
    """The area between the pairs and ``reference`` that some pair dominates.

    Examples:
        >>> hypervolume([(0.0, 1.0), (1.0, 0.0)], reference=(2.0, 2.0))
        3.0
    """
    area, ceiling = 0.0, reference[1]
    for first, second in sorted(pairs):
        if first < reference[0] and second < ceiling:
            area += (reference[0] - first) * (ceiling - second)
            ceiling = second
    return area


def unevenness(values: Sequence[float]) -> float:
    """The coefficient of variation of the gaps between neighbours: 0 is an even spread.

    Examples:
        >>> unevenness([0.0, 1.0, 2.0]), unevenness([0.0, 0.0, 2.0])
        (0.0, 1.0)
    """
    ordered = sorted(values)
    gaps = [after - before for before, after in pairwise(ordered)]
    middle = fmean(gaps) if gaps else 0.0
    return pstdev(gaps) / middle if middle > 0 else 0.0


def to_plain(point: FrontPoint) -> dict[str, Any]:
    """A point as JSON; a measure that is no finite number is null."""
    plain = asdict(point)
    measures = point.measures.items()
    plain["measures"] = {name: x if math.isfinite(x) else None for name, x in measures}
    return plain


def from_plain(plain: Mapping[str, Any]) -> FrontPoint:
    """And back; ValueError if it is something else."""
    point = checked_record(FrontPoint, plain, "point of a front")
    numbers = {name: math.nan if x is None else x for name, x in point.measures.items()}
    return replace(point, measures=numbers)


def front_to_json(content: Mapping[str, Any]) -> str:
    """A front's content, with the format it is written in."""
    return json.dumps(
        {"format": _FRONT_FORMAT, **content}, indent=2, ensure_ascii=False, allow_nan=False
    )


def front_from_json(
    text: str,
) -> tuple[tuple[str, str], str, tuple[FrontPoint, ...], dict[str, Any]]:
    """Names, method, points and recipe of a front.

    Raises:
        ValueError: This is something else.
    """
    try:
        content = json_object(text, "front")
        if content["format"] != _FRONT_FORMAT:
            raise ValueError(f"its format is {quoted(content['format'])}")
        plain = [dict(point) for point in content["points"]]
        for point in plain:
            del point["gap"], point["non_dominated"]
        first, second = map(str, content["names"])
        points = tuple(map(from_plain, plain))
        if not points:
            raise ValueError("it has no point")
        return (first, second), str(content["method"]), points, dict(content["recipe"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = f"{error}"[:300]
        raise ValueError(f"This is not a front that setpoint wrote ({why}).") from None


Weights = Mapping[str, Tensor]


@dataclass(frozen=True)
class Store:
    """A folder with a point in each folder below it, all of one recipe."""

    folder: Path
    recipe: Mapping[str, Any]

    def write(self, point: FrontPoint, tensors: Weights) -> None:
        """Keep a finished point."""
        odd = [name for name, value in tensors.items() if not isinstance(value, Tensor)]
        if odd:
            raise TypeError(f"The model's state {odd[0]!r} is no tensor; keep state in buffers.")
        record = {"recipe": dict(self.recipe), "point": to_plain(point)}
        save_checkpoint(self._place(point.place), dict(tensors), record)

    def read(self, place: int) -> tuple[FrontPoint, Weights]:
        """A finished point and its weights."""
        found = self.find(place)
        if found is None:
            raise FileNotFoundError(f"{self._place(place)} is missing; run the front again.")
        return found

    def find(self, place: int) -> tuple[FrontPoint, Weights] | None:
        """The same, or None if it is not finished; an error if it is of another front."""
        found = load_checkpoint(self._place(place))
        if found is None:
            return None
        tensors, record = found
        was = record.get("recipe", {})
        changed = [name for name in self.recipe if was.get(name) != self.recipe[name]]
        if changed:
            name = changed[0]
            raise ValueError(
                f"{self.folder} holds another front ({name} was {was.get(name)!r}, now it is "
                f"{self.recipe[name]!r}). Use another folder, or delete it."
            )
        return from_plain(record["point"]), tensors

    def done(self) -> dict[int, FrontPoint]:
        """All finished points by their place."""
        found = ((place, self.find(place)) for place in range(self.recipe["points"]))
        return {place: one[0] for place, one in found if one is not None}

    def _place(self, place: int) -> Path:
        return self.folder / f"point-{place:03d}"


def open_store(folder: Path) -> Store:
    """The store in a folder, with the recipe that its points name."""
    for path in sorted(folder.glob("point-*")):
        found = load_checkpoint(path)
        if found is not None and isinstance(found[1].get("recipe"), dict):
            return Store(folder, found[1]["recipe"])
    raise FileNotFoundError(f"{folder} holds no point of a front; name a folder that has one.")


class StoredStates(Sequence[Weights]):
    """The weights of a front, read from its files when they are asked for."""

    def __init__(self, store: Store, places: Sequence[int]) -> None:
        self.store, self.places = store, places

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, index: int) -> Weights: ...
    @overload
    def __getitem__(self, index: slice) -> list[Weights]: ...
    def __getitem__(self, index: int | slice) -> Weights | list[Weights]:
        if isinstance(index, slice):
            return [self.store.read(place)[1] for place in self.places[index]]
        return self.store.read(self.places[index])[1]
