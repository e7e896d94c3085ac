"""From who goes where to the shifts that make it so.

An example with class ``i`` asks that ``t_i - t_j <= s_i - s_j`` for every other class ``j``. The
shifts are reported from the middle of what all examples allow, as a threshold is half way between
two scores; in training they sit at an edge of it, where K - 1 examples are between two classes, so
that no slope is zero.
"""

from __future__ import annotations

import numpy as np

from setpoint.problems.classes.data import Floats, Whole
from setpoint.problems.classes.decide import traits


def settle(scores: Floats, held: Whole) -> tuple[Floats, Floats]:
    """The shifts in the middle and those at the edge, ``[K]`` each, that give every row ``held``.

    Where no shifts can (equal rows in different classes), the middle is as near as can be.
    """
    room = _room(scores, held)
    slack = _least_mean_cycle(room)
    middle = _farthest(room - slack).mean(1)  # no class is the one to start from
    root = int(np.lexsort((traits(scores), np.bincount(held, minlength=len(room))))[-1])
    edge = _farthest(room - min(slack, 0.0))[:, root]
    return _centred(middle), _centred(edge)


def _room(scores: Floats, held: Whole) -> Floats:
    """How much ``t_i - t_j`` may be at most, ``[K, K]``: the least ``s_i - s_j`` in class ``i``.

    A class that nobody has is treated as if it had one more example, out of the reach of all.
    """
    count = scores.shape[1]
    room = np.empty((count, count))
    reach = max(float(np.ptp(scores[:, [i]] - scores, axis=0).max()) for i in range(count)) or 1.0
    for i in range(count):
        own = scores[held == i]
        if len(own):
            room[i] = (own[:, [i]] - own).min(0)
        else:
            room[i] = (scores[:, [i]] - scores).max(0) + 0.1 * reach
    np.fill_diagonal(room, np.inf)
    return room


def _least_mean_cycle(room: Floats) -> float:
    """How much every difference can be from its limit at once: Karp's algorithm (1978)."""
    count = len(room)
    lengths = np.empty((count + 1, count))
    lengths[0] = 0.0
    for k in range(count):
        lengths[k + 1] = (lengths[k] + room).min(1)  # from j to i
    left = count - np.arange(count)[:, None]
    return float(((lengths[count] - lengths[:count]) / left).max(0).min())


def _farthest(room: Floats) -> Floats:
    """For each start ``j`` the largest shifts with ``t_j = 0``, ``[i, j]``: Floyd and Warshall."""
    paths = room.copy()
    np.fill_diagonal(paths, 0.0)
    for k in range(len(paths)):
        paths = np.minimum(paths, paths[:, [k]] + paths[[k]])
    return np.asarray(paths)


def _centred(shifts: Floats) -> Floats:
    return np.asarray(shifts - shifts.mean())
