"""Which labelled rows count, and as how many: labels that are partial, chosen by decision, or late.

**The rule.** Rows come in blocks (an update, or a period of it). A block counts once, when its
labels are complete or no more of them are expected, and never before an earlier block. If labels
are missing then, the labelled alerts stand for all alerts of the block, and the labelled other rows
for all others. A block that lacks every label of one kind is carried on into the next.

**Why.** Let the excess of a row (event minus limit) have the means ``m[a]`` among rows of decision
``a``, of which the block has ``N[a]``, and labels of a share ``r[a]``. Whether a label is known may
depend on the decision, on chance and on the past; given the decision not on the class. The gains
``1 + bet * scale / r[a] * excess`` of the labelled rows then have a mean product of at most
``prod (1 + bet * scale * m[a] / r[a]) ** (r[a] * N[a]) <= prod (1 + bet * scale * m[a]) ** N[a]``,
by Bernoulli's inequality. That is the mean product of all rows, given their decisions, so its mean
is at most 1 while the bound holds, for a scale that was chosen before the block. Blocks may end
whenever decisions and known labels say so, since these are stopping times: so no share needs to be
stated or equal for alerts and others. If all labels come in the end, nothing is assumed about which
come first.

**Its limits.** Among rows of one decision and slice labels must not go by the score: ranks of the
labelled rows are compared with those of all, and where they differ the block is left out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from setpoint.axes.arrays import Bools, Floats
from setpoint.certificates.copies import mixed
from setpoint.monitoring.incoming_rows import IncomingRows
from setpoint.rates import Where

_KINDS = ("other rows", "alerts")
"""Rows by decision: not accepted, accepted."""
_MOST_UNLABELLED = 1000
"""After so many rows of a kind without one label, rows that are carried on are left out."""
_MOST_UNITS = 20_000
"""The same for different amounts that are carried on."""
_MOST_OPEN = 400
"""When more blocks wait, older neighbours are put together."""
_BLOCK_ROWS = 200
"""Blocks that wait take in the next ones up to so many rows. A complete block of so many rows
counts by itself, whatever was carried on before."""
_TELLING_LABELS = 20
"""So many labels of a kind tell that their share is too small for the present size of bets."""
_FORGET, _FAR = 0.9, 4.0
"""By score: how much of older blocks is kept at each, and how many standard errors are too many."""


class LabelledTest(Protocol):
    """What is needed of a test here."""

    name: str

    @property
    def wheres(self) -> tuple[Where, ...]:
        """The slices that it is about."""
        ...

    @property
    def decisions(self) -> tuple[int, ...]:
        """The decisions that it is about: 1 alerts, 0 other rows."""
        ...

    @property
    def least_share(self) -> float:
        """The smallest share of labels among rows of a decision that it can bet on."""
        ...

    def adapt(self, tally: Tally) -> None:
        """Choose the size of bets for the next block."""
        ...


@dataclass(frozen=True)
class Tally:
    """Rows of a block, counted by slice and decision, and labelled ones by what they are.

    Attributes:
        totals: ``[slices, 2]``: rows by decision, labelled or not.
        units: ``[u, 5]``: slice, cell (``tn, fn, fp, tp``), amount, stated share of labels, and how
            many labelled rows are like that; -1 where there is no amount or share.
    """

    totals: Floats
    units: Floats

    @staticmethod
    def of(rows: IncomingRows, wheres: Sequence[Where], *, new: bool = True) -> Tally:
        """Count rows; with ``new=False`` only their labels."""
        totals, units = np.zeros((len(wheres), 2)), []
        for place, where in enumerate(wheres):
            inside = rows.inside(where)
            if new:
                totals[place] = (inside & ~rows.alerts).sum(), (inside & rows.alerts).sum()
            chosen = np.flatnonzero(inside & rows.known)
            more = [None if each is None else each[chosen] for each in (rows.amounts, rows.shares)]
            columns = [np.full(len(chosen), place), rows.codes[chosen], *more, np.ones(len(chosen))]
            filled = [np.full(len(chosen), -1.0) if each is None else each for each in columns]
            units.append(np.stack(filled, 1))
        return Tally(totals, _summed(np.concatenate(units)))

    def __add__(self, other: Tally) -> Tally:
        both = np.concatenate([self.units, other.units])
        return Tally(self.totals + other.totals, _summed(both))

    @property
    def known(self) -> Floats:
        """``[slices, 2]``: labelled rows by decision."""
        found = np.zeros_like(self.totals)
        place, cell = self.units[:, 0].astype(int), self.units[:, 1].astype(int)
        np.add.at(found, (place, cell // 2), self.units[:, 4])
        return found

    @property
    def stated(self) -> bool:
        """Whether the shares of labels were told."""
        return bool((self.units[:, 3] > 0).any())

    @property
    def shares(self) -> Floats:
        """``[slices, 2]``: the share of labels by decision; 1 where there are no rows."""
        return np.where(self.totals > 0, self.known / np.maximum(self.totals, 1), 1.0)

    def lacks(self, decisions: Iterable[int]) -> list[int]:
        """Decisions of which there are rows and no label, in some slice."""
        return [a for a in decisions if (self.shares[:, a] == 0).any()]

    def complete(self, decisions: Iterable[int]) -> bool:
        """Whether all labels of the rows with these decisions are known."""
        return all((self.shares[:, a] == 1).all() for a in decisions)

    def shrunk(self) -> Tally:
        """Leave out rows that were carried too far; one row says which kind lacks labels.

        That row keeps the next labels of the other kind from counting by themselves.
        """
        missing = np.where(self.shares == 0, self.totals, 0.0)
        if missing.max() < _MOST_UNLABELLED and len(self.units) <= _MOST_UNITS:
            return self
        return Tally((missing > 0).astype(float), np.zeros((0, 5)))

    def state(self) -> list[Any]:
        """Plain numbers for JSON."""
        return [self.totals.tolist(), self.units.tolist()]

    @staticmethod
    def restore(state: list[Any]) -> Tally:
        """Read :meth:`state` back."""
        return Tally(np.array(state[0], float), np.array(state[1], float).reshape(-1, 5))


def _summed(units: Floats) -> Floats:
    """Rows of ``units`` that are alike, put together."""
    if not len(units):
        return units
    alike, which = np.unique(units[:, :4], axis=0, return_inverse=True)
    return np.column_stack([alike, np.bincount(which.reshape(-1), weights=units[:, 4])])


@dataclass
class Block:
    """Rows that came together and wait until they may count.

    Attributes:
        first: The number of its first block, if several were put together.
        period: Where it is noted.
        size: How many rows it has.
        last: The number of its last block.
        waiting: By decision, how many rows may still get a label.
        latest: By decision, the newest block at the time when a label last came.
        ranks: By decision, the sum of ranks of labelled rows (from 0 to 1), their number, and rows.
        tallies: By test, as long as it has not counted them.
    """

    first: int
    period: str
    size: int
    last: int
    waiting: list[int]
    latest: list[int]
    ranks: list[list[float]]
    tallies: dict[str, Tally]

    def absorb(self, other: Block) -> None:
        """Put the next block into this one."""
        self.period, self.size = other.period, self.size + other.size
        self.last = other.last
        self.waiting = [a + b for a, b in zip(self.waiting, other.waiting, strict=True)]
        self.latest = [max(a, b) for a, b in zip(self.latest, other.latest, strict=True)]
        self.ranks = (np.array(self.ranks) + np.array(other.ranks)).tolist()
        for name, tally in other.tallies.items():
            own = self.tallies.get(name)
            self.tallies[name] = tally if own is None else own + tally


@dataclass
class LabelSelection:
    """Blocks whose labels are not complete, and what is carried on for each test."""

    number: int = 0
    """Of blocks so far."""
    newest: list[int] = field(default_factory=lambda: [0, 0])
    """By decision, the newest block with a label."""
    blocks: list[Block] = field(default_factory=list)
    carried: dict[str, Tally] = field(default_factory=dict)
    by_score: list[list[float]] = field(default_factory=lambda: [[0.0, 0.0], [0.0, 0.0]])
    """By decision: excess of the ranks of labelled rows, and its variance."""

    @property
    def labels(self) -> int:
        """Labels of blocks that wait for others."""
        return int(sum(kind[1] for block in self.blocks for kind in block.ranks))

    def direct(self, test: LabelledTest, rows: IncomingRows, *, late: bool) -> bool:
        """Whether rows may count at once, in their order: nothing waits, and nothing is missing."""
        if any(test.name in block.tallies for block in self.blocks):
            return False
        if rows.shares is not None and not late:
            return True
        if rows.known.all() and test.name not in self.carried:
            return True
        return self._alone(test, Tally.of(rows, test.wheres))

    def _alone(self, test: LabelledTest, tally: Tally) -> bool:
        """Whether a tally is complete, and counts without what was carried on."""
        if not tally.complete(test.decisions):
            return False
        own = tally.totals[:, list(test.decisions)].sum(0)
        if test.name in self.carried and (own.sum() < _BLOCK_ROWS or not own.all()):
            return False
        self.carried.pop(test.name, None)
        return True

    def add(
        self, rows: IncomingRows, period: str, tests: Sequence[LabelledTest], *, late: bool
    ) -> int:
        """Keep the rows of a block for some tests; ``late``: labels may come later. Its number."""
        self.number += 1
        self._came(rows)
        if not tests and not (late and self.blocks):
            return self.number
        kinds = (~rows.alerts, rows.alerts)
        waiting = [int((kind & ~rows.known).sum()) if late else 0 for kind in kinds]
        block = Block(
            self.number,
            period,
            len(rows),
            self.number,
            waiting,
            [self.number, self.number],
            [_ranks(rows, kind) for kind in kinds],
            {test.name: Tally.of(rows, test.wheres) for test in tests},
        )
        last = self.blocks[-1] if self.blocks else None
        if last and (last.size + block.size <= _BLOCK_ROWS or not tests) and any(last.waiting):
            last.absorb(block)
        elif tests:
            self.blocks.append(block)
        if len(self.blocks) > _MOST_OPEN:
            for place in range(_MOST_OPEN // 2 - 2, -1, -2):
                self.blocks[place].absorb(self.blocks.pop(place + 1))
        return self.number

    def _came(self, rows: IncomingRows, number: int | None = None) -> None:
        """Note that labels of a block have come."""
        for kind, inside in enumerate((~rows.alerts, rows.alerts)):
            if (inside & rows.known).any():
                self.newest[kind] = max(self.newest[kind], number or self.number)

    def block_of(self, number: int) -> Block | None:
        """The block with this number, if it still waits."""
        place = bisect_right([block.first for block in self.blocks], number) - 1
        found = self.blocks[place] if place >= 0 else None
        return found if found is not None and number <= found.last else None

    def join(
        self, rows: IncomingRows, number: int, ranks: Floats, tests: Sequence[LabelledTest]
    ) -> None:
        """Labels that came later, of rows of one block."""
        self._came(rows, number)
        block = self.block_of(number)
        if block is None:
            return
        for kind, inside in enumerate((~rows.alerts, rows.alerts)):
            count = int(inside.sum())
            if count:
                block.waiting[kind] -= count
                block.latest[kind] = self.number
                block.ranks[kind][0] += float(ranks[inside].sum())
                block.ranks[kind][1] += count
        for test in tests:
            if test.name in block.tallies:
                block.tallies[test.name] += Tally.of(rows, test.wheres, new=False)

    def lose(self, number: int, decision: int) -> None:
        """A row of a block is no longer waited for."""
        block = self.block_of(number)
        if block is not None:
            block.waiting[decision] -= 1

    def release(self, tests: Sequence[Any]) -> Iterator[tuple[Any, str, Tally]]:
        """What may count now, the oldest first: test, period and tally."""
        stopped: set[str] = set()
        for block in self.blocks:
            done = [self._done(block, kind) for kind in (0, 1)]
            for test in tests:
                tally = block.tallies.get(test.name)
                if tally is None or test.name in stopped:
                    continue
                if not all(done[kind] for kind in test.decisions):
                    stopped.add(test.name)
                    continue
                del block.tallies[test.name]
                self._judge(block, test.decisions)
                found = self._finish(test, tally)
                if found is not None:
                    yield test, block.period, found
        self.blocks = [block for block in self.blocks if block.tallies]

    def _done(self, block: Block, kind: int) -> bool:
        """Whether no more labels of a kind are expected for a block.

        All have come; or none has for so long that rows which came later have got theirs.
        """
        late = self.newest[kind] >= block.latest[kind] + block.last - block.first + 1
        return block.waiting[kind] <= 0 or late

    def _finish(self, test: LabelledTest, tally: Tally) -> Tally | None:
        """What counts of rows whose labels are all there, or carry them on."""
        if tally.stated or self._alone(test, tally):
            return tally
        carried = self.carried.get(test.name)
        tally = tally if carried is None else carried + tally
        kinds = list(test.decisions)
        scarce = tally.shares[:, kinds] < test.least_share
        few = tally.known[:, kinds] < _TELLING_LABELS
        if tally.lacks(test.decisions) or (scarce & few).any():
            self.carried[test.name] = tally.shrunk()
            return None
        self.carried.pop(test.name, None)
        if scarce.any():
            test.adapt(tally)
            return None
        return None if self._selective(test.decisions) else tally

    def _judge(self, block: Block, decisions: Iterable[int]) -> None:
        """Compare the ranks of labelled rows with those of all, once for each block."""
        for kind in decisions:
            total, known, rows = block.ranks[kind]
            block.ranks[kind] = [0.0, 0.0, 0.0]
            if 0 < known < rows:
                excess, variance = self.by_score[kind]
                self.by_score[kind] = [
                    _FORGET * excess + total - known / 2,
                    _FORGET * variance + known * (1 - known / rows) / 12,
                ]

    def _selective(self, decisions: Iterable[int]) -> int | None:
        """A kind of rows among which labels go by the score, as kind + 1; None if there is none."""
        for kind in decisions:
            excess, variance = self.by_score[kind]
            if abs(excess) > _FAR * max(variance, 1.0) ** 0.5:
                return kind + 1
        return None

    def with_shares(self, rows: IncomingRows) -> IncomingRows | None:
        """Rows of clusters with the shares of labels that are known; None if a kind has none."""
        share = Tally.of(rows, ((),)).shares[0]
        if not share.all():
            return None
        return replace(rows, shares=np.where(rows.alerts, share[1], share[0]))

    def reason(self, test: LabelledTest) -> str | None:
        """Why a test does not count rows that wait; None if it does, or merely waits."""
        kind = self._selective(test.decisions)
        if kind is not None:
            return (
                f"labels are known of {_KINDS[kind - 1]} with other scores than those without a "
                "label: such a choice says nothing about rows that were not chosen. Label rows at "
                "random, or with known shares (label_shares)"
            )
        waiting = [block.tallies[test.name] for block in self.blocks if test.name in block.tallies]
        waiting += [self.carried[test.name]] if test.name in self.carried else []
        known = sum(tally.known.sum(0) for tally in waiting)
        totals = sum(tally.totals.sum(0) for tally in waiting)
        lacking = [kind for kind in test.decisions if waiting and totals[kind] > known[kind] == 0]
        if len(lacking) != 1 or len(test.decisions) == 1 or not self.newest[1 - lacking[0]]:
            return None
        some, none = _KINDS[1 - lacking[0]], _KINDS[lacking[0]]
        return (
            f"labels are known of {some} and of none of the {none}: "
            "such a choice says nothing about rows that were not chosen. Label some of both kinds, "
            "drawn at random"
        )

    def state(self) -> dict[str, Any]:
        """Plain numbers for JSON."""
        blocks = [
            {**vars(block), "tallies": {name: t.state() for name, t in block.tallies.items()}}
            for block in self.blocks
        ]
        carried = {name: tally.state() for name, tally in self.carried.items()}
        return {**vars(self), "blocks": blocks, "carried": carried}

    @staticmethod
    def restore(state: Mapping[str, Any]) -> LabelSelection:
        """Read :meth:`state` back."""
        blocks = [
            Block(**{**block, "tallies": _tallies(block["tallies"])}) for block in state["blocks"]
        ]
        carried = _tallies(state["carried"])
        return LabelSelection(**{**state, "blocks": blocks, "carried": carried})


def _tallies(state: Mapping[str, Any]) -> dict[str, Tally]:
    return {name: Tally.restore(tally) for name, tally in state.items()}


def ranks_of(rows: IncomingRows, kind: Bools) -> Floats:
    """The rank of each score among rows of a kind and of the same slices, from 0 to 1.

    Equal scores get the middle of theirs. Slices may have labels equally often or not, and other
    scores.
    """
    values, cells = rows.margins[kind], np.zeros(int(kind.sum()), np.uint64)
    for number, inside in zip(
        mixed(np.arange(len(rows.slices), dtype=np.uint64)), rows.slices.values(), strict=True
    ):
        cells[inside[kind]] += number
    found = np.zeros(len(values))
    for cell in np.unique(cells):
        own = values[cells == cell]
        order = np.sort(own)
        below = np.searchsorted(order, own, "left") + np.searchsorted(order, own, "right")
        found[cells == cell] = below / 2 / len(own)
    return found


def _ranks(rows: IncomingRows, kind: Bools) -> list[float]:
    known = rows.known[kind]
    partly = known.any() and not known.all()
    total = float(ranks_of(rows, kind)[known].sum()) if partly else 0.5 * float(known.sum())
    return [total, float(known.sum()), float(kind.sum())]
