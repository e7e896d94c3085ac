"""How far scores spread within each query: the unit of the width of its steps."""

from __future__ import annotations

from setpoint.axes.query_cuts import QueryCuts
from setpoint.rates import Array
from setpoint.thresholds.width import QUANTILES


def spread_within(cuts: QueryCuts) -> Array:
    """The deviation of the scores in every query, ``[q]``, as :func:`setpoint.thresholds.spread`.

    What other queries score does not matter, nor what is added to all scores of one.
    """
    xp, queries, scores = cuts.xp, cuts.examples, cuts.scores
    running = sum(cuts.accepted[()])
    total = queries.total(cuts.weights)
    total = total + (total == 0)
    shares = running / cuts.cuts.each(total)
    ranks = (cuts.cuts.total((shares < share) * 1)[:, None] - 1 for share in QUANTILES)
    low, high = (cuts.score(rank) for rank in ranks)
    reach = high - low
    reach = xp.where(reach > 0, reach, float("inf"))  # almost all tied: no fence
    bottom, top = cuts.score(cuts.present[:, None] - 1), cuts.score(cuts.present[:, None] * 0)
    bottom, top = xp.maximum(low - reach, bottom)[:, 0], xp.minimum(high + reach, top)[:, 0]
    clipped = xp.minimum(xp.maximum(scores, queries.each(bottom)), queries.each(top))
    weights = cuts.weights / queries.each(total)
    centre = queries.total(weights * clipped)
    variance = queries.total(weights * (clipped - queries.each(centre)) ** 2)
    noise = 1e-26 * xp.maximum(top**2, bottom**2)
    return xp.sqrt(variance * (variance > noise))
