"""Seven tables as ``Table(x, y)``: numbers and one-hot columns, not yet standardised."""

from functools import lru_cache

import numpy as np
import pandas as pd

from benchmarks.common import paper_tables
from benchmarks.common.folder import path
from setpoint.datasets import DataSplit, Table, letter, split

NAMES = ("letter", "ijcnn1", "adult", "spambase", "crime", "compas", "heart")
FARTHEST = 20.0  # deviations: beyond, a standardised value is an error of measurement
CHARGES = 20  # the most frequent charges of COMPAS get a column each


@lru_cache
def load(name: str) -> Table:
    """A table by its name."""
    return _READERS[name]()


def parts(name: str, seed: int) -> DataSplit:
    """50/25/25, standardised on the training part, far values clipped."""
    found = split(load(name), seed)
    return DataSplit(*(Table(part.x.clip(-FARTHEST, FARTHEST), part.y) for part in found))


def _npz(file: str) -> Table:
    with np.load(path(file)) as stored:
        return Table(stored["X"].astype(np.float32), stored["y"].astype(np.int64))


def _compas() -> Table:
    rows = pd.read_csv(path("compas/compas.csv.gz"))
    rows = rows[rows.propublica_filter == 1]
    common = rows.c_charge_desc.value_counts().index[:CHARGES]
    rows["charge"] = rows.c_charge_desc.where(rows.c_charge_desc.isin(common), "other")
    numbers = ["age", "priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count"]
    return _one_hot(rows, numbers, ["sex", "race", "c_charge_degree", "charge"], "two_year_recid")


def _heart() -> Table:
    rows = pd.read_csv(path("heart_cleveland/heart_cleveland.csv.gz"))
    target = "diameter narrowing"
    features = rows.drop(columns=target)
    words = [name for name in features if not pd.api.types.is_numeric_dtype(features[name])]
    numbers = [name for name in features if name not in words]
    return _one_hot(rows, numbers, words, target)


def _one_hot(rows: pd.DataFrame, numbers: list[str], words: list[str], target: str) -> Table:
    known = rows[numbers].fillna(rows[numbers].median())
    x = pd.concat([known, pd.get_dummies(rows[words], dtype=float)], axis=1)
    return Table(x.to_numpy(np.float32), rows[target].to_numpy(np.int64))


_READERS = {
    "letter": letter,
    "ijcnn1": lambda: _npz("ijcnn1/ijcnn1.npz"),
    "adult": lambda: _npz("adult/adult.npz"),
    "spambase": lambda: _npz("spambase/spambase.npz"),
    "crime": lambda: _npz("communities_crime/communities_crime.npz"),
    "adult122": paper_tables.adult,
    "crime145": paper_tables.crime,
    "compas": _compas,
    "heart": _heart,
}
