"""Four tables with groups: Adult by sex and by race, COMPAS by race, Communities & Crime."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks.common.folder import path
from benchmarks.common.tabular import load

NAMES = ("crime by race", "compas by race", "adult by sex", "adult by race")
MOST, SHARE = 6_000, 0.6
"""Rows to train on: at most so many (some rivals refit dozens of times), at most this share."""


class Part(NamedTuple):
    """Features, labels and groups of some rows."""

    x: np.ndarray
    y: np.ndarray
    g: np.ndarray


@lru_cache
def table(name: str) -> Part:
    """All rows: every method sees the group among the features, too."""
    if name.startswith("adult"):
        x, y = load("adult")
        with np.load(path("adult/adult.npz")) as stored:
            g = stored["sex" if name.endswith("sex") else "race"].astype(str)
        return Part(x, y, g if name.endswith("sex") else _merged(g, ("White", "Black")))
    if name.startswith("compas"):
        x, y = load("compas")
        rows = pd.read_csv(path("compas/compas.csv.gz"))
        race = rows[rows.propublica_filter == 1].race.to_numpy().astype(str)
        return Part(x, y, _merged(race, ("African-American", "Caucasian")))
    x, y = load("crime")
    with np.load(path("communities_crime/communities_crime.npz")) as stored:
        black = stored["racepctblack"]
    return Part(x, y, np.where(black > np.quantile(black, 0.7), "more", "less"))


@lru_cache(maxsize=1)
def parts(name: str, seed: int) -> tuple[Part, Part]:
    """Rows to train on (and to choose thresholds on), and all others to test on, standardised."""
    x, y, g = table(name)
    order = np.random.default_rng(seed).permutation(len(y))
    cut = min(MOST, int(SHARE * len(order)))
    rows = order[:cut], order[cut:]
    mean, spread = x[rows[0]].mean(0), x[rows[0]].std(0)
    x = ((x - mean) / np.where(spread > 0, spread, 1)).clip(-20, 20)
    train, test = (Part(x[r].astype(np.float32), y[r], g[r]) for r in rows)
    return train, test


def _merged(groups: np.ndarray, named: tuple[str, ...]) -> np.ndarray:
    """The named groups, and all others as one."""
    return np.where(np.isin(groups, named), groups, "other")
