"""Which rows propose and which prove: drawn by lot, the same way every time, in whatever order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint.certificates.fixed_thresholds import at, holds, proved_at
from setpoint.certificates.goals import Atom
from setpoint.certificates.sample import EVERYONE, PRIOR, Part, Sample, signs
from setpoint.certificates.selection import measure
from setpoint.certificates.tails import Floats

Words = NDArray[np.uint64]
SHARE = 0.25
"""The part of the rows that proposes."""


def split_rows(sample: Sample) -> tuple[Sample, Sample]:
    """The rows that propose, and those that prove."""
    rows = sample.in_order()
    chosen = lots(rows) < SHARE
    return rows.rows(chosen), rows.rows(~chosen)


def lots(sample: Sample) -> Floats:
    """A number between 0 and 1 for each row, of the scores, labels and slices, and nothing else.

    Rows are sorted; those alike in all of these are told apart by counting them. The numbers are
    a scrambling of the bits (splitmix64), as good as drawn by lot. All rows together seed it: were
    a row's lot its own, samples of the same few scores would be split alike, and the shares that
    such a split gets wrong would be wrong every time.
    """
    bits = (sample.scores.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    traits = [mask.astype(np.uint64) for mask in sample.traits]
    alike = np.zeros(len(bits), bool)
    alike[1:] = bits[1:] == bits[:-1]
    for trait in traits:
        alike[1:] &= trait[1:] == trait[:-1]
    key = _scramble(bits)
    for trait in (_places_in_runs(alike), *traits):
        key = _scramble(key ^ _scramble(trait + np.uint64(1)))
    seed = _scramble(np.add.reduce(key, keepdims=True))
    return _scramble(key ^ seed) / 2.0**64


def _places_in_runs(alike: NDArray[np.bool_]) -> Words:
    """0, 1, 2, ... within each run of rows that are like the one before."""
    place = np.arange(len(alike))
    return (place - np.maximum.accumulate(np.where(alike, 0, place))).astype(np.uint64)


def _scramble(x: Words) -> Words:
    """The finalizer of splitmix64."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


# Everything else (F scores, error, gaps): a quarter of the rows proposes, the others prove.
#
# These bounds do not move one way with the threshold, and no rank fixed in advance is as good as
# knowing where to look. So a pseudo-random quarter of the rows (the same ones every time, whatever
# their order) picks the threshold where the bound has most to spare, and for the other rows that
# threshold is fixed: one test, exact for F1, error and everything else that is about one share,
# through the region of the parts (:mod:`setpoint.certificates.regions`) for the rest. Several
# bounds must all pass at that one threshold; a false one passes with probability ``delta`` at most,
# so they do not share it.
#
# A gap has most to spare where hardly anybody is accepted, which no objective wants. So the walk
# goes on to thresholds that the pilot likes better and better, with less and less to spare (the
# front of the two), each tested at the full ``delta``, until a test fails: a fixed sequence (Pareto
# testing, Laufer-Goldshtein et al. 2022). All that passed are proved together, and the best of them
# is taken.
#
# Bonferroni's correction over 14 ranks on all rows, which needs no split, proves F1 only 3.5
# standard errors below the measured one, this 1.9.


Merit = Callable[[Sample, Floats], Floats]
"""How good thresholds are on some rows."""
PROPOSALS = 32
CAREFUL = 0.16
"""The pilot compares thresholds by bounds one standard error away."""


@dataclass(frozen=True)
class Trial:
    """A threshold, and what is proved there of each bound's expression."""

    threshold: float
    proved: tuple[float, ...]
    holds: bool


class Beside(NamedTuple):
    """Other bounds of the goal, and whether a threshold is proved to keep them.

    The proof looks at all rows, and so has no say in what is tested; what the pilot sees of the
    bounds has.
    """

    atoms: Sequence[Atom]
    proved: Callable[[float], bool]


def prove(
    atoms: list[Atom],
    sample: Sample,
    delta: float,
    prevalence: float | None,
    merit: Merit | None,
    beside: Beside,
) -> tuple[Trial | None, list[Trial]]:
    """The best threshold at which all ``atoms`` are proved, and what was tried.

    ``merit`` tells which thresholds are better on some rows, the greater the better; None:
    whichever is proved.
    """
    pilot, rest = split_rows(sample)
    thresholds = proposals(pilot, atoms, prevalence)
    thresholds = thresholds[_likely(beside.atoms, pilot, thresholds, prevalence)]
    if not len(thresholds):
        return None, []
    tests = [_try(atoms, pilot, t, CAREFUL, prevalence, True) for t in thresholds.tolist()]
    spare = np.array([_spare(trial, atoms) for trial in tests])
    order = np.argsort(-spare, kind="stable")
    if merit is not None:
        order = front(spare, merit(pilot, thresholds))
    tried: list[Trial] = []
    for i in order:
        tried.append(_try(atoms, rest, float(thresholds[i]), delta, prevalence))
        if not tried[-1].holds or (merit is None and beside.proved(tried[-1].threshold)):
            break
    passed = [trial for trial in tried if trial.holds and beside.proved(trial.threshold)]
    if merit is None or not passed:
        return (passed[0] if passed else None), tried
    found = merit(sample, np.array([trial.threshold for trial in passed]))
    return passed[int(np.flatnonzero(found == found.max())[-1])], tried


def front(spare: Floats, merit: Floats) -> NDArray[np.intp]:
    """From the most to spare to the most merit: each has more merit than all before."""
    order = np.lexsort((-merit, -spare))
    best = np.maximum.accumulate(merit[order])
    kept: NDArray[np.intp] = order[np.append(True, merit[order][1:] > best[:-1])]
    return kept


def proposals(pilot: Sample, atoms: Sequence[Atom], prevalence: float | None) -> Floats:
    """Thresholds to consider, from low to high: scores of the pilot, denser towards both ends."""
    parts = {p for a in atoms for p in signs(a.bound.expression, prevalence) if p.kind != PRIOR}
    shares = 1 / (1 + np.exp(np.linspace(-5, 5, PROPOSALS)))
    found = []
    for part in parts or {Part((), EVERYONE)}:
        scores = pilot.sorted(part)
        if len(scores):
            found.append(scores[(shares * (len(scores) - 1)).round().astype(int)].astype(float))
    return np.unique(np.concatenate(found)) if found else np.empty(0)


def _likely(
    others: Sequence[Atom], pilot: Sample, thresholds: Floats, prevalence: float | None
) -> NDArray[np.bool_]:
    """Where the other bounds hold on the pilot itself."""
    kept = np.ones(len(thresholds), bool)
    for atom in others:
        values = measure(atom.bound.expression, pilot, thresholds, prevalence)
        kept &= [holds(atom, value) for value in values.tolist()]
    return kept


def _try(
    atoms: list[Atom],
    sample: Sample,
    threshold: float,
    delta: float,
    prevalence: float | None,
    quick: bool = False,
) -> Trial:
    proved = tuple(proved_at(a, sample, at(threshold), delta, prevalence, quick) for a in atoms)
    return Trial(threshold, proved, all(map(holds, atoms, proved)))


def _spare(trial: Trial, atoms: list[Atom]) -> float:
    """By how much the bound with the least to spare holds."""
    gaps = []
    for atom, value in zip(atoms, trial.proved, strict=True):
        gap = atom.bound.level - value if atom.bound.sense == "<=" else value - atom.bound.level
        gaps.append(gap / (atom.bound.expression.scale or 1.0))
    return min(gaps) if not np.isnan(gaps).any() else -np.inf
