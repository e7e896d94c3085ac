"""Thresholds of several binary outputs: each is certified, and all promises hold together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from setpoint._checks import share
from setpoint.axes.outputs import columns_of_outputs
from setpoint.certificates.certificate import Certificate
from setpoint.certificates.certification import certify
from setpoint.problems import Problem
from setpoint.rates import Bound


def certify_outputs(
    scores: Any,
    labels: Any,
    goal: Bound | Problem | str | list[Bound] | tuple[Bound, ...],
    *,
    outputs: Sequence[str],
    confidence: float = 0.95,
    candidates: int = 1,
) -> dict[str, Certificate]:
    """A certified threshold for each of several binary outputs.

    Each of ``c`` certificates is wrong with a probability of at most ``(1 - confidence) / c``, so
    all of them hold together with the confidence asked for (Bonferroni).

    Args:
        scores: ``[n, c]``.
        labels: ``[n, c]``, 0 or 1; NaN where an example was not labelled for an output.
        goal: What every output must keep.
        outputs: What the columns are called.
        confidence: That all promises hold.
        candidates: From how many models this one was chosen by looking at these rows.

    Returns:
        The certificates by name, certified or not.

    Examples:
        >>> import numpy as np
        >>> labels = np.stack([np.arange(2000) % 2, np.arange(2000) % 4 == 0], 1)
        >>> scores = labels + np.random.default_rng(0).normal(size=(2000, 2))
        >>> found = certify_outputs(scores, labels, "fpr <= 0.05", outputs=["spam", "threat"])
        >>> {name: (each.certified, each.confidence) for name, each in found.items()}
        {'spam': (True, 0.975), 'threat': (True, 0.975)}
    """
    each = 1 - (1 - share(confidence, "confidence", ends=False)) / len(outputs)
    return {
        name: certify(s, y, goal, confidence=each, candidates=candidates)
        for name, s, y, _ in columns_of_outputs(scores, labels, outputs)
    }
