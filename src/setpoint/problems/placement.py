"""Where thresholds sit once their cuts are chosen: on a score, or between two."""

from __future__ import annotations

from dataclasses import dataclass

from setpoint.problems.anycuts import AnyCuts
from setpoint.rates import Array


@dataclass(frozen=True)
class Placement:
    """Where the thresholds sit. All ``[c, m]``."""

    cut: Array  # how many scores are accepted
    threshold: Array  # what is reported, and what ``score > threshold`` decides by
    marginal: Array  # the score that training puts the threshold on
    holding: list[Array]  # which target the threshold is held by, at most one; else the coverage
    violation: Array  # by how much the targets are missed


def seat(
    cuts: AnyCuts, cut: Array, rejects: Array, holding: list[Array], violation: Array
) -> Placement:
    """The thresholds that make ``cut``: on the next score it rejects, or between two scores."""
    xp = cuts.xp
    accepted, rejected = cuts.score(cut - 1), cuts.score(cut)
    middle = accepted / 2 + rejected / 2
    middle = xp.where(middle < accepted, middle, rejected)  # adjacent floats have no middle
    threshold = xp.where(rejects | (cut == 0), rejected, middle)
    threshold = xp.where(cut >= cuts.present[:, None], -float("inf"), threshold)
    return Placement(cut, threshold, xp.where(rejects, rejected, accepted), holding, violation)
