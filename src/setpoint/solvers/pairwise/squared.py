"""The squared hinge over all pairs of a positive and a negative, without the pairs.

``max(0, 1 - (f_i - f_j) / margin)^2`` is a square of the scores for the negatives that are not a
margin below the positive. Sorted, they are a stretch; running sums of one, score and score squared
give its sum. Sorting is all the work there is.
"""

from __future__ import annotations

from torch import Tensor

from setpoint.losses import Ranked, from_zero


def squared_hinge(ranked: Ranked, margin: float) -> tuple[Tensor, Tensor]:
    """The sum over pairs ``[c]``, and its gradient on the scores in the order of the batch."""
    p, n, x = ranked.positives, ranked.negatives, ranked.scores / margin
    first = ranked.after(ranked.scores - margin)  # from here on negatives are within the margin
    count, total, squares = (_from(n * x**k, first) for k in range(3))
    reach = 1 - x
    losses = (reach**2 * count + 2 * reach * total + squares).clamp(min=0)
    by_positive = -2 * (reach * count + total)
    # seen from the negatives: positives come in where their stretch begins
    seen, seen_at = (_arrived(p * x**k, first) for k in range(2))
    by_negative = 2 * ((1 + x) * seen - seen_at)
    gradient = (p * by_positive + n * by_negative) / margin
    return (p * losses).sum(-1), ranked.unsorted(gradient)


def _from(values: Tensor, first: Tensor) -> Tensor:
    """The sum of the values from each place to the end."""
    running = from_zero(values)
    return running[..., -1:] - running.gather(-1, first)


def _arrived(values: Tensor, first: Tensor) -> Tensor:
    """The sum, at each place, of the values whose stretch has begun."""
    steps = values.new_zeros(*values.shape[:-1], values.shape[-1] + 1)
    return steps.scatter_add_(-1, first, values).cumsum(-1)[..., :-1]
