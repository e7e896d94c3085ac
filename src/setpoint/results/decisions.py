"""Which examples a threshold accepts, also when every group has its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint.results.described import Scored
from setpoint.results.run import Threshold


class Margins(NamedTuple):
    """Values to compare with one ``cut``: the scores, or how far each is above its threshold."""

    values: NDArray[Any]
    cut: float

    @property
    def accepted(self) -> NDArray[np.bool_]:
        """The decisions: strictly above."""
        return np.asarray(self.values > self.cut)


def margins(split: Scored, threshold: Threshold) -> Margins:
    """What ``threshold`` is compared with; without one nobody is accepted.

    Example:
        >>> part = Scored(np.array([0.5, 0.5]), np.array([1, 0]), np.array(["a", "b"]))
        >>> margins(part, {"a": 0.4, "b": 0.6}).accepted.tolist()
        [True, False]
    """
    if threshold is None:
        return Margins(split.scores, np.inf)
    if not isinstance(threshold, Mapping):
        return Margins(split.scores, float(threshold))
    if split.groups is None:
        raise ValueError("One threshold per group needs the groups of every split.")
    mine = np.empty_like(split.scores, dtype=np.result_type(split.scores, np.float32))
    known = {str(key): value for key, value in threshold.items()}
    for group in np.unique(split.groups):
        if str(group) not in known:
            raise ValueError(f"No threshold for group {str(group)!r}; add it to threshold=.")
        mine[split.groups == group] = known[str(group)]
    # s - t > 0 exactly where s > t: floats underflow gradually
    return Margins(split.scores - mine, 0.0)
