"""The files of a front: one safetensors file a point, each replaced as a whole.

A point is there completely or not at all, so a run that is killed at any moment loses only the
points that were being trained. Nothing is pickled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

from torch import Tensor

from setpoint.pareto.points import FrontPoint, from_plain, to_plain
from setpoint.train import load_checkpoint, save_checkpoint

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
