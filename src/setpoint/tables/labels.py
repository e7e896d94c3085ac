"""The classes of a label column: which there are, and which of two is the positive one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from setpoint._checks import quoted, quoted_list
from setpoint.tables.table import Chunk, TableError
from setpoint.tables.values import Codes, normal, number_of

MOST_LABELS = 20  # different labels of a column that should have two
MOST_CLASSES = 1000  # different labels of a column of classes
POSITIVE = frozenset({"1", "true", "yes", "y", "t", "positive", "pos"})
NEGATIVE = frozenset({"0", "-1", "false", "no", "n", "f", "negative", "neg"})


@dataclass(frozen=True)
class LabelNames:
    """The values of a label column as texts, in the order of the columns of scores.

    Of two classes the first is the negative and the second the positive one.
    """

    names: tuple[str, ...]

    @property
    def both(self) -> tuple[str, ...]:
        """The names of two classes; nothing if these are 0 and 1, or if one does not occur."""
        plain = self.names == ("0", "1")
        return self.names if len(self.names) == 2 and all(self.names) and not plain else ()

    def encode(self, chunk: Chunk, column: str) -> Codes:
        """The number of each row's class; TableError for a label that is none of them."""
        values, codes = chunk.coded(column)
        known = {normal(text): place for place, text in enumerate(self.names)}
        found: Codes = np.array([known.get(normal(v), -1) for v in values], dtype=np.int64)[codes]
        if found.min(initial=0) < 0:
            place = int(np.argmin(found))
            value = values[codes[place]]
            shown = "missing" if value is None else quoted(value)
            wanted = f"one of {quoted_list(self.names, 5)}"
            if len(self.names) == 2:
                wanted = " or ".join(map(quoted, self.names))
            raise chunk.error(f"the label is {shown}; it must be {wanted}.", place, column)
        return found


class LabelCount:
    """Collects the different values of a label column, chunk by chunk."""

    def __init__(self, path: Path, name: str, most: int = MOST_LABELS) -> None:
        self.path, self.name, self.most = path, name, most
        self.seen: Counter[str] = Counter()
        self.spelled: dict[str, set[str]] = {}

    def update(self, chunk: Chunk) -> None:
        """Count the labels of these rows, which all have one; TableError if there are too many."""
        values, codes = chunk.coded(self.name)
        for text, count in zip(values, np.bincount(codes).tolist(), strict=True):
            value = normal(text) or ""
            self.seen[value] += count
            self.spelled.setdefault(value, set()).add((text or "").strip())
            if len(self.seen) > self.most:
                raise self._not_two() if self.most == MOST_LABELS else self._too_many()

    def add(self, other: LabelCount) -> None:
        """Count what another part of the table has, too."""
        self.seen += other.seen
        for value, texts in other.spelled.items():
            self.spelled.setdefault(value, set()).update(texts)
        if len(self.seen) > self.most:
            raise self._not_two()

    def all_classes(self) -> LabelNames:
        """All classes, at least two: numbers by size, texts by the alphabet.

        A class that is written in one way is called so; ``1`` and ``1.0`` are called ``1``.
        """
        self._need_rows()
        if len(self.seen) < 2:
            raise self._error(
                f"a label column has two classes at least; this one has {quoted_list(self.seen)}. "
                "Name another column, or add rows of other classes."
            )
        numeric = all(number_of(value) is not None for value in self.seen)
        order = sorted(self.seen, key=lambda v: (float(v), v) if numeric else (0.0, v))
        spelled = [self.spelled[value] for value in order]
        names = (min(s) if len(s) == 1 else v for s, v in zip(spelled, order, strict=True))
        return LabelNames(tuple(names))

    def two_classes(
        self,
        positive: str | None = None,
        *,
        known: Sequence[str] = (),
        one_will_do: bool = False,
    ) -> LabelNames:
        """The negative and the positive class.

        Args:
            positive: The positive one, where its name does not tell.
            known: What a certificate calls both: their names here, too, if all labels are of them.
            one_will_do: Whether all rows may be of one class; the other has then no name.
        """
        self._need_rows()
        if known and positive is not None and normal(positive) == known[0]:
            raise self._error(
                f"--positive {quoted(positive)} is the negative label of the certificate, whose "
                f"positive one is {quoted(known[1])}: leave --positive out."
            )
        if known and positive is None:
            if set(self.seen) <= {normal(name) for name in known}:
                return LabelNames(tuple(known))
            if known[0].lower() not in NEGATIVE or known[1].lower() not in POSITIVE:
                raise self._not_known(known)
        if len(self.seen) == 1 and one_will_do:
            (value,) = self.seen
            if positive is None and value.lower() not in POSITIVE | NEGATIVE:
                raise self._not_plain()
            is_it = value.lower() in POSITIVE if positive is None else value == normal(positive)
            return LabelNames(("", value) if is_it else (value, ""))
        if len(self.seen) != 2:
            raise self._not_two()
        if positive is not None:
            return self._chosen(positive)
        yes = [value for value in self.seen if value.lower() in POSITIVE]
        no = [value for value in self.seen if value.lower() in NEGATIVE]
        if len(yes) == 1 and len(no) == 1:
            return LabelNames((no[0], yes[0]))
        raise self._not_plain()

    def _chosen(self, positive: str) -> LabelNames:
        wanted = normal(positive)
        others = [value for value in self.seen if value != wanted]
        if wanted is None or len(others) != 1:
            problem = f"--positive {quoted(positive)} is no label; the labels are "
            raise self._error(f"{problem}{quoted_list(sorted(self.seen))}.")
        return LabelNames((others[0], wanted))

    def _need_rows(self) -> None:
        if not self.seen:
            raise TableError(self.path, "no row has a label.", column=self.name)

    def _error(self, problem: str) -> TableError:
        return TableError(self.path, problem, column=self.name)

    def _not_plain(self) -> TableError:
        problem = (
            f"the labels are {quoted_list(sorted(self.seen))}; say which is the positive one: "
        )
        return self._error(f"{problem}--positive VALUE.")

    def _not_known(self, known: Sequence[str]) -> TableError:
        found = quoted_list(sorted(self.seen), 5)
        no, yes = map(quoted, known)
        return self._error(
            f"the labels are {found}; the certificate knows {no} and, as positive, {yes}. If they "
            "mean the same, say which is the positive one: --positive VALUE."
        )

    def _not_two(self) -> TableError:
        many = len(self.seen) > MOST_LABELS
        several = f"more than {MOST_LABELS}" if many else str(len(self.seen))
        problem = f"a label column has two different values; this one has {several}: "
        problem += f"{quoted_list(sorted(self.seen), 5)}."
        if len(self.seen) == 1:
            problem += " Name another column, or add rows of the other class."
        if many:
            problem += " Name another column."
        if len(self.seen) > 2 and not many:
            problem += (
                " For several, train for a goal about classes, as in 'maximize macro(recall)'."
            )
        return self._error(problem)

    def _too_many(self) -> TableError:
        problem = f"more than {self.most:,} different labels: {quoted_list(sorted(self.seen), 5)}. "
        return self._error(f"{problem}Is this a column of classes?")
