"""The sentences of a certificate: what it assumes, and what would change the verdict."""

from __future__ import annotations

from collections.abc import Iterator

from scipy.special import ndtri

from setpoint._checks import plural
from setpoint.certify.families import Found
from setpoint.certify.forms import Atom
from setpoint.certify.parts import EVERYONE, NEGATIVES, POSITIVES, PRIOR, signs
from setpoint.certify.records import CERTIFIED, INFEASIBLE, Point
from setpoint.certify.samples import Sample, have

ROOMY = 0.8
"""The share of an allowed rate that a large sample should let one use."""


def assumptions(
    found: Found, sample: Sample, candidates: int, prevalence: float | None, mean: bool
) -> Iterator[str]:
    """What must be true for the promise to hold."""
    n = plural(len(sample.scores), "row")
    yield f"The {n} are independent draws from what the threshold will meet: no copies, no drift."
    if candidates == 1:
        yield "The model was neither trained nor chosen on these rows."
    else:
        yield (
            f"The model is one of {candidates} that were fixed before these rows were looked at; "
            "choosing among them is accounted for."
        )
    needs_mix = any(
        part.kind in (PRIOR, EVERYONE)
        for atom in found.proved
        for part in signs(atom.bound.expression, prevalence)
    )
    if prevalence is not None:
        yield f"The share of positives will be {prevalence:.4g}; within a class scores stay so."
    elif needs_mix:
        yield "The share of positives will be as in these rows."
    else:
        yield "The share of positives may change; scores within a class may not."
    yield f"Decisions are score > threshold, with scores in {sample.dtype}."
    if mean:
        yield "The rate holds on average over samples like this: about every other one exceeds it."


def advice(found: Found, sample: Sample, delta: float, mean: bool) -> Iterator[str]:
    """What would change the verdict."""
    if found.status == INFEASIBLE:
        yield "More examples of the kind that is missing, a looser bound, or a lower confidence."
        return
    if found.status != CERTIFIED:
        yield "More data, a looser bound, a lower confidence, or a better model."
        return
    for atom in found.proved:
        if atom.kind in (POSITIVES, NEGATIVES, EVERYONE) and not mean:
            yield from _room(atom, sample, delta)


def _room(atom: Atom, sample: Sample, delta: float) -> Iterator[str]:
    """How much data would let most of the allowed rate be used."""
    share = atom.share
    assert share is not None
    risk = share.limit if share.at_most else 1 - share.limit
    enough = float(ndtri(1 - delta)) ** 2 * (1 - risk) / risk / (1 - ROOMY) ** 2
    count = float(f"{enough:.2g}")
    if sample.size(share.part) < enough:
        share_used = f"{100 * ROOMY:.0f} % of what `{atom.source}` allows"
        yield f"About {have(count, share.part)} would let {share_used} be used."


def remarks(points: tuple[Point, ...]) -> Iterator[str]:
    """What a reader should notice about the thresholds."""
    for point in points:
        of = "" if point.group is None else f" of group {point.group!r}"
        if point.threshold is not None and point.alerts == 0:
            yield (
                f"The threshold accepts none of the rows{of}: too few examples, or too many equal "
                "scores at the top."
            )
        if point.threshold is not None and point.alerts == point.examples:
            yield f"The threshold accepts all of the rows{of}."
