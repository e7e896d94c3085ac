"""The bounds of a goal by how they are proved, and what a search for a threshold finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from setpoint.certify.forms import ACCEPTED, REJECTED, Atom
from setpoint.certify.places import Place

Proved = dict[Atom, tuple[float | None, str]]


@dataclass(frozen=True)
class Found:
    """A verdict; the place, if there is one; and for each atom what is proved and from what."""

    status: str
    place: Place | None
    proved: Proved
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Families:
    """The atoms of a goal by how they are proved."""

    caps: list[Atom]
    floors: list[Atom]
    walks: list[Atom]
    rest: list[Atom]

    @classmethod
    def of(cls, found: Sequence[Atom]) -> Families:
        """Sort atoms into families."""
        open_ = [a for a in found if a.caps is None]
        walks = [a for a in open_ if a.kind in (ACCEPTED, REJECTED)]
        rest = [a for a in open_ if a not in walks]
        caps, floors = ([a for a in found if a.caps is side] for side in (True, False))
        return cls(caps, floors, walks, rest)

    def __len__(self) -> int:
        return bool(self.caps) + bool(self.floors) + len(self.walks) + bool(self.rest)
