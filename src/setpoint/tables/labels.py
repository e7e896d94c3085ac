"""Two classes, and which of them is the positive one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setpoint.tables.source import Chunk, Source, TableError, listed, quoted
from setpoint.tables.values import coded, normal, number_of

MOST = 20  # different labels remembered before giving up
POSITIVE = frozenset({"1", "true", "yes", "y", "t", "positive", "pos"})
NEGATIVE = frozenset({"0", "-1", "false", "no", "n", "f", "negative", "neg"})


@dataclass(frozen=True)
class Classes:
    """The two values of a label column, as texts."""

    negative: str
    positive: str

    def encode(self, source: Source, chunk: Chunk, name: str) -> NDArray[np.int64]:
        """1 for the positive class and 0 for the other, or an error with the row."""
        values, codes = coded(chunk.columns[name])
        known = {self.negative: 0, self.positive: 1}
        numbers = np.array([known.get(normal(v) or "", -1) for v in values], dtype=np.int64)
        found: NDArray[np.int64] = numbers[codes]
        if found.min(initial=0) < 0:
            place = int(np.argmin(found))
            value = values[codes[place]]
            shown = "missing" if value is None else quoted(value)
            problem = f"the label is {shown}; it must be {quoted(self.negative)} or "
            problem += f"{quoted(self.positive)}."
            raise TableError(source.path, problem, row=chunk.rows[place], column=name)
        return found


class LabelCount:
    """Collects the values of a label column, chunk by chunk."""

    def __init__(self, source: Source, name: str, most: int = MOST) -> None:
        self.source, self.name, self.most = source, name, most
        self.seen: Counter[str] = Counter()
        self.spelled: dict[str, set[str]] = {}

    def update(self, chunk: Chunk) -> None:
        """Count the labels of these rows; a missing one is an error."""
        values, codes = coded(chunk.columns[self.name])
        if None in values:
            place = int(np.argmax(codes == values.index(None)))
            problem = "the label is missing; fill it in or remove the row."
            raise TableError(self.source.path, problem, row=chunk.rows[place], column=self.name)
        for value, count in zip(values, np.bincount(codes).tolist(), strict=True):
            self.seen[normal(value) or ""] += count
            self.spelled.setdefault(normal(value) or "", set()).add((value or "").strip())
            if len(self.seen) > self.most:
                raise self._not_two() if self.most == MOST else self._too_many()

    def several(self) -> Several:
        """All classes, two at least."""
        if not self.seen:
            raise TableError(self.source.path, "has a header and no rows.")
        if len(self.seen) < 2:
            problem = (
                f"a label column has two classes at least; this one has {listed([*self.seen])}."
            )
            raise TableError(self.source.path, problem, column=self.name)
        return several_of(self.spelled)

    def classes(self, positive: str | None = None, *, one_will_do: bool = False) -> Classes:
        """The two classes; ``positive`` names the positive one where it is not plain.

        New rows may all be of one class (``one_will_do``); the other one is then not named.
        """
        if not self.seen:
            raise TableError(self.source.path, "has a header and no rows.")
        if one_will_do and len(self.seen) == 1:
            return self._alone(positive)
        if len(self.seen) != 2:
            raise self._not_two()
        if positive is not None:
            return self._chosen(positive)
        yes = [value for value in self.seen if value.lower() in POSITIVE]
        no = [value for value in self.seen if value.lower() in NEGATIVE]
        if len(yes) == 1 and len(no) == 1:
            return Classes(no[0], yes[0])
        raise self._not_plain()

    def _alone(self, positive: str | None) -> Classes:
        (value,) = self.seen
        plain = value.lower() in POSITIVE | NEGATIVE
        if positive is None and not plain:
            raise self._not_plain()
        yes = value.lower() in POSITIVE if positive is None else value == normal(positive)
        return Classes("", value) if yes else Classes(value, "")

    def _not_plain(self) -> TableError:
        problem = f"the labels are {listed(sorted(self.seen))}; say which is the positive one: "
        return TableError(self.source.path, f"{problem}--positive VALUE.", column=self.name)

    def _chosen(self, positive: str) -> Classes:
        wanted = normal(positive)
        others = [value for value in self.seen if value != wanted]
        if wanted is None or len(others) != 1:
            problem = f"--positive {quoted(positive)} is no label; the labels are "
            problem += f"{listed(sorted(self.seen))}."
            raise TableError(self.source.path, problem, column=self.name)
        return Classes(others[0], wanted)

    def _not_two(self) -> TableError:
        several = f"more than {MOST}" if len(self.seen) > MOST else str(len(self.seen))
        problem = f"a label column has two different values; this one has {several}: "
        problem += f"{listed(sorted(self.seen), 5)}."
        if 2 < len(self.seen) <= MOST:
            problem += (
                " For several, train for a goal about classes, as in 'maximize macro(recall)'."
            )
        return TableError(self.source.path, problem, column=self.name)

    def _too_many(self) -> TableError:
        problem = f"more than {self.most:,} different labels: {listed(sorted(self.seen), 5)}. "
        problem += "Is this a column of classes?"
        return TableError(self.source.path, problem, column=self.name)


# ------------------------------------------------------------------------------------------------
# Labels of any number of classes, each called as the file writes it.


MOST_CLASSES = 1000
"""Different labels beyond which a column holds no classes."""


@dataclass(frozen=True)
class Several:
    """The values of a label column as texts; their order is that of the columns of scores."""

    names: tuple[str, ...]

    def encode(self, source: Source, chunk: Chunk, name: str) -> NDArray[np.int64]:
        """The number of each row's class, or an error with the row."""
        values, codes = coded(chunk.columns[name])
        known = {normal(text): place for place, text in enumerate(self.names)}
        numbers = np.array([known.get(normal(v), -1) for v in values], dtype=np.int64)
        found: NDArray[np.int64] = numbers[codes]
        if found.min(initial=0) < 0:
            place = int(np.argmin(found))
            value = values[codes[place]]
            shown = "missing" if value is None else quoted(value)
            problem = f"the label is {shown}; it must be one of {listed(list(self.names), 5)}."
            raise TableError(source.path, problem, row=chunk.rows[place], column=name)
        return found


def several_of(spelled: Mapping[str, set[str]]) -> Several:
    """All classes in order: numbers by size, texts by the alphabet.

    Args:
        spelled: For each class, as it is compared, every way it is written. One that is written in
            one way is called so; ``1`` and ``1.0`` in one file are called ``1``.
    """
    numeric = all(number_of(value) is not None for value in spelled)
    order = sorted(spelled, key=lambda v: (float(v), v) if numeric else (0.0, v))
    return Several(
        tuple(next(iter(spelled[v])) if len(spelled[v]) == 1 else v for v in order),
    )
