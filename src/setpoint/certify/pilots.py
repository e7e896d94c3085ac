"""Everything else (F scores, error, gaps): a quarter of the rows proposes, the others prove.

These bounds do not move one way with the threshold, and no rank fixed in advance is as good as
knowing where to look. So a pseudo-random quarter of the rows (the same ones every time, whatever
their order) picks the threshold where the bound has most to spare, and for the other rows that
threshold is fixed: one test, exact for F1, error and everything else that is about one share,
through the region of the parts (:mod:`setpoint.certify.regions`) for the rest. Several bounds must
all pass at that one threshold; a false one passes with probability ``delta`` at most, so they do
not share it. If lower (or higher) thresholds are better, the walk goes on to the next one that the
pilot scores propose, at the full ``delta``, until a test fails: a fixed sequence.

Bonferroni's correction over 14 ranks on all rows, which needs no split, proves F1 only 3.5 standard
errors below the measured one, this 1.9.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setpoint.certify.fixed import at, holds, proved_at
from setpoint.certify.forms import Atom
from setpoint.certify.parts import EVERYONE, PRIOR, Part, signs
from setpoint.certify.samples import Sample
from setpoint.certify.tails import Floats

Words = NDArray[np.uint64]
SHARE = 0.25
"""The part of the rows that proposes."""
PROPOSALS = 32
CAREFUL = 0.16
"""The pilot compares thresholds by bounds one standard error away."""


@dataclass(frozen=True)
class Trial:
    """A threshold, and what is proved there of each bound's expression."""

    threshold: float
    proved: tuple[float, ...]
    holds: bool


def prove(
    atoms: list[Atom],
    sample: Sample,
    delta: float,
    prevalence: float | None,
    inside: Callable[[float], bool],
    lower: bool | None,
) -> tuple[Trial | None, list[Trial]]:
    """The best threshold at which all ``atoms`` are proved, and what was tried.

    ``inside`` tells whether a threshold is admissible for other reasons, and ``lower`` whether
    lower thresholds are better (True), or higher ones (False); None: neither.
    """
    pilot, rest = split(sample)
    thresholds = [t for t in proposals(pilot, atoms, prevalence).tolist() if inside(t)]
    if not thresholds:
        return None, []
    spare = [_spare(_try(atoms, pilot, t, CAREFUL, prevalence, True), atoms) for t in thresholds]
    start = int(np.argmax(spare))
    order = range(start, start + 1)
    if lower is not None:
        order = range(start, -1, -1) if lower else range(start, len(thresholds))
    tried: list[Trial] = []
    for i in order:
        tried.append(_try(atoms, rest, thresholds[i], delta, prevalence))
        if not tried[-1].holds:
            break
    passed = [trial for trial in tried if trial.holds]
    return (passed[-1] if passed else None), tried


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


def split(sample: Sample) -> tuple[Sample, Sample]:
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
