"""Order statistics: the last threshold at which a bound that is monotone in it can be proved.

``fpr <= alpha``. The accepted share of the negatives falls as the threshold rises, so there is one
true limit: the bound holds from there on. Test the bound at every threshold, from the strictest on
downwards, each time with the exact binomial tail ``P(Bin(n, alpha) <= false alarms) <= delta``, and
stop where it fails. To end below the true limit, the test *at* the limit must have been passed,
which happens with probability at most ``delta``: one test counts, though all were made. The last
threshold that passes is an order statistic, the ``(m + 1)``-th largest negative score with ``m``
the largest count that passes; ``FPR(T) ~ Beta(m + 1, n - m)`` if scores are continuous, and less
with ties, since equal scores are rejected together.

The argument uses no more than one valid test for each fixed threshold, so it also covers monotone
bounds on several subsets (0.5 fpr on a + 0.5 fpr on b), and several bounds in the same direction at
once: the strictest limit decides, and only the test there counts. Bounds in two directions (fpr and
recall) share ``delta``.

On average (conformal risk control): the next negative exceeds the ``(m + 1)``-th largest of ``n``
with probability at most ``(m + 1) / (n + 1)``, so the false positive rate is ``alpha`` *on average*
over calibration samples; about every other one of them is above.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from setpoint.certificates.goals import Inequality
from setpoint.certificates.proofs import (
    Proof,
    ThresholdRange,
    ThresholdRule,
    Thresholds,
    gather,
    proved_at,
)
from setpoint.certificates.regions import signs, upper_bound
from setpoint.certificates.sample import (
    CalibrationSample,
    Subset,
    count_text,
)
from setpoint.certificates.tails import (
    allowed,
    allowed_on_average,
    lower,
    needed,
    needed_on_average,
    prob_at_most,
    upper,
)

_SAMPLE_FACTORS = tuple(1.25**i for i in range(1, 60))
"""How many times as many examples are tried, to say what a proof would take."""


@dataclass(frozen=True)
class OrderStatistic:
    """Bounds of one direction that are monotone in the threshold."""

    caps: bool
    """Whether they limit what is accepted (fpr, coverage), or what is rejected (recall)."""
    on_average: bool = False
    """Keep the rate on average over calibration samples, instead of with confidence."""
    joint: ClassVar[bool] = True

    def takes(self, inequality: Inequality) -> bool:
        """Whether it is monotone in the threshold, in this direction."""
        return inequality.caps is self.caps

    def prove(self, family: Sequence[Inequality], sample: CalibrationSample, delta: float) -> Proof:
        """All thresholds on one side of the strictest limit."""
        found = [self._prove_one(each, sample, delta) for each in family]
        proved = {each: known for proof in found for each, known in proof.proved.items()}
        missing = [note for proof in found if not proof.feasible for note in proof.notes]
        if missing:
            return Proof(proved, (), tuple(missing), feasible=False)
        ends = [proof.end for proof in found if proof.end is not None]
        end = (max if self.caps else min)(ends, key=lambda t: t.value(sample))
        end = end if len(ends) == 1 else replace(end, chosen=True)
        at = end.value(sample)
        low, high = (at, math.inf) if self.caps else (-math.inf, at)
        notes = tuple(
            f"`{each.source}` is proved {'from' if self.caps else 'up to'} "
            f"{sample.score_text(t.value(sample))}"
            for each, t in zip(family, ends, strict=True)
        )
        return Proof(proved, (ThresholdRange(low, high),), notes, end=end)

    def _prove_one(self, inequality: Inequality, sample: CalibrationSample, delta: float) -> Proof:
        """The last threshold at which one inequality can be proved."""
        share, mean = inequality.share, self.on_average
        if share is None or not share.subset.is_whole:
            if mean:
                raise ValueError(
                    f'`{inequality.source}`: guarantee="mean" is for bounds on one kind of '
                    "examples (fpr, recall, fnr, tnr, coverage)."
                )
            return _prove_by_bisection(inequality, sample, delta)
        n = sample.size(share.subset)
        m = allowed_on_average(n, share.risk) if mean else allowed(n, share.risk, delta)
        if m < 0:
            count = needed_on_average(share.risk) if mean else needed(share.risk, delta)
            note = shortage(inequality, share.subset, n, count)
            note += " (of each cluster one row counts)" if sample.clusters else ""
            return Proof({inequality: (None, note)}, (), (note,), feasible=False)
        scores = sample.sorted(share.subset)
        if share.at_most:
            end = ThresholdRule(float(scores[n - m - 1]), anchor=share.subset)
            reached = (m + 1) / (n + 1) if mean else float(upper(m, n, delta))
        else:
            end = ThresholdRule(float(scores[m]), inclusive=True, anchor=share.subset)
            reached = (n - m) / (n + 1) if mean else float(lower(n - m, n, delta))
        if sample.clusters and not mean:
            unused = delta - float(prob_at_most(m, n, share.risk))
            end = replace(end, score=sample.loosest(share, end.score, unused), chosen=True)
            note = f"from one row of each of {sample.clusters:,} clusters, and all clusters' means"
            return Proof({inequality: (inequality.bound.level, note)}, (), (), end=end)
        side = "above" if share.at_most else "at or below"
        note = f"at most {m:,} of {count_text(n, share.subset)} may lie {side} the threshold"
        return Proof({inequality: (share.value(reached), note)}, (), (), end=end)


def shortage(inequality: Inequality, subset: Subset, n: int, needs: int | None) -> str:
    """How many examples an inequality needs, and how many there are."""
    if needs is None:
        return f"no number of examples can prove `{inequality.source}`: bound it away from the end"
    return f"`{inequality.source}` needs {count_text(needs, subset)}, you have {n:,}"


def _prove_by_bisection(inequality: Inequality, sample: CalibrationSample, delta: float) -> Proof:
    """Over all scores of several subsets: the proof gets easier in one direction."""
    caps = bool(inequality.caps)
    subsets = [s for s in signs(inequality.bound.expression, sample.prevalence) if not s.is_prior]
    scores = np.unique(np.concatenate([sample.sorted(subset) for subset in subsets]))
    scores = scores if caps else scores[::-1]  # the last one is the easiest to prove

    def proved(i: int) -> float:
        threshold = ThresholdRule(float(scores[i]), inclusive=not caps)
        return proved_at(inequality, sample, Thresholds({(): threshold}), delta)

    low, high = -1, len(scores) - 1
    if not inequality.holds(proved(high)):
        note = _shortage_of_several(inequality, subsets, sample, delta)
        return Proof({inequality: (None, note)}, (), (note,), feasible=False)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if inequality.holds(proved(middle)) else (middle, high)
    counted = ", ".join(count_text(sample.size(subset), subset) for subset in subsets)
    threshold = ThresholdRule(float(scores[high]), inclusive=not caps, chosen=True)
    level = inequality.bound.level  # at a threshold that was chosen no smaller value is proved
    return Proof({inequality: (level, f"from {counted}")}, (), (), end=threshold)


def _shortage_of_several(
    inequality: Inequality, subsets: list[Subset], sample: CalibrationSample, delta: float
) -> str:
    """How many times as many examples could prove it, if all of them went right."""
    bound = inequality.bound
    sign = 1.0 if bound.sense == "<=" else -1.0
    expression = bound.expression if bound.sense == "<=" else -bound.expression
    end = Thresholds({(): ThresholdRule(math.inf if inequality.caps else -math.inf)})
    known, independent = gather(expression, sample, end)
    for factor in _SAMPLE_FACTORS:
        more = {
            subset: seen._replace(
                low=round(factor * seen.low),
                high=round(factor * seen.high),
                n=round(factor * seen.n),
            )
            for subset, seen in known.items()
        }
        most = upper_bound(expression, more, delta, sample.prevalence, independent)
        if most <= sign * bound.level:
            need = " and ".join(count_text(round(factor * sample.size(s)), s) for s in subsets)
            return f"`{inequality.source}` needs about {need}, {factor:.2g} times what you have"
    return f"`{inequality.source}` cannot be proved with any number of such examples"
