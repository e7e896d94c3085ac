"""Data that other processes can import."""

import numpy as np

from setpoint.datasets import Table, split


def parts(seed):
    r = np.random.default_rng(0)
    y = (r.random(300) < 0.3).astype(np.int64)
    x = (r.normal(size=(300, 3)) + y[:, None]).astype(np.float32)
    return split(Table(x, y), seed)
