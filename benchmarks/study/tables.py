"""Nine tables that the default has never seen, in disjoint test folds, with noisy negatives."""

import json
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import images
from benchmarks.common.folder import path
from setpoint.datasets import DataSplit, Table

NAMES = (
    "brfss_diabetes",
    "give_me_some_credit",
    "unsw_nb15_82k",
    "weather_aus",
    "fraud_handbook_sim",
    "drebin215",
    "webpage_phishing",
    "annthyroid",
    "fashion_mnist",
)
FOLDS = 3
VALIDATION = 0.25  # of the rows that are not in the test fold
TAILS = (0.005, 0.995)  # of a column on the training rows: values beyond are clipped
RARE_ATTACKS = ("Worms", "Shellcode", "Backdoor", "Analysis")
COMMON = 20  # the most frequent categories of a column have a column each
SHIRT = 6


class Noise(NamedTuple):
    """Positives that are labelled negative in training and validation."""

    asked: float  # as a share of the negatives
    moved: int  # positives whose label was changed


@lru_cache(maxsize=1)
def load(name: str) -> Table:
    """A table by its name: numbers, one-hot categories, and a column for what is missing."""
    if name == "fashion_mnist":
        return _pixels()
    if name == "unsw_nb15_82k":
        return Table(read(name).x, _rare_attacks())
    return read(name)


def read(name: str) -> Table:
    """A stored table with its own labels."""
    with np.load(path(f"{name}/{name}.npz")) as stored:
        x, y = stored["X"].astype(np.float32), stored["y"].astype(np.int64)
        columns = [str(column) for column in stored["feature_names"]]
        categories = json.loads(str(stored["categories_json"]))
    parts = [
        _one_hot(x[:, place]) if column in categories else _numbers(x[:, place])
        for place, column in enumerate(columns)
    ]
    return Table(np.concatenate(parts, axis=1), y)


def fold(name: str, number: int, contaminated: float = 0.0) -> tuple[DataSplit, Noise]:
    """Test fold ``number`` of :data:`FOLDS`; the other rows are training and validation.

    Columns are clipped and standardised by the training rows. At most half of the positives
    outside the test fold are relabelled, so that rare classes do not vanish.
    """
    x, y = load(name)
    train, validation, test = dealt(len(y), number)
    rest = np.concatenate([validation, train])
    labels = y.copy()
    positives = rest[y[rest] > 0]
    moved = min(round(contaminated * (len(rest) - len(positives))), len(positives) // 2)
    labels[np.random.default_rng(100 + number).permutation(positives)[:moved]] = 0
    x = clipped(x, train)
    centre, deviation = x[train].mean(0, np.float64), x[train].std(0, np.float64)
    x = ((x - centre) / np.where(deviation > 0, deviation, 1.0)).clip(-20, 20).astype(np.float32)
    parts = (Table(x[rows], labels[rows]) for rows in (train, validation, test))
    return DataSplit(*parts), Noise(contaminated, moved)


def dealt(count: int, number: int) -> tuple[NDArray[np.int64], ...]:
    """The rows of ``count`` to train on, to validate by, and in test fold ``number``."""
    order = np.random.default_rng(0).permutation(count)
    test = order[number::FOLDS]
    rest = np.random.default_rng(1 + number).permutation(np.setdiff1d(order, test))
    validation, train = np.split(rest, [int(VALIDATION * len(rest))])
    return train, validation, test


def clipped(x: NDArray[np.float32], train: NDArray[np.int64]) -> NDArray[np.float32]:
    """All rows, with values beyond :data:`TAILS` of the training rows moved to these quantiles."""
    low, high = np.quantile(x[train], TAILS, axis=0).astype(np.float32)
    both = high > low  # a column that is rarely not 0 keeps its values
    return np.where(both, np.clip(x, low, high), x)


def _rare_attacks() -> NDArray[np.int64]:
    with np.load(path("unsw_nb15_82k/unsw_nb15_82k.npz")) as stored:
        names = [str(attack) for attack in stored["attack_cat_names"]]
        rare = [names.index(attack) for attack in RARE_ATTACKS]
        return np.isin(stored["attack_cat"], rare).astype(np.int64)


def _numbers(column: NDArray[np.float32]) -> NDArray[np.float32]:
    """The column with its median where it is missing, and where that is."""
    missing = np.isnan(column)
    if not missing.any():
        return column[:, None]
    filled = np.where(missing, np.nanmedian(column), column)
    return np.stack([filled, missing.astype(np.float32)], axis=1)


def _one_hot(column: NDArray[np.float32]) -> NDArray[np.float32]:
    """A column for each of the most frequent categories; all others are 0 everywhere."""
    values, counts = np.unique(column, return_counts=True)
    kept = values[np.argsort(-counts, kind="stable")[:COMMON]]
    return (column[:, None] == kept).astype(np.float32)


def _pixels() -> Table:
    """Shirts among clothes."""
    x, kinds = clothes()
    return Table(x, (kinds == SHIRT).astype(np.int64))


def clothes() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Pictures of clothes, 14 x 14 grey values, and their kinds."""
    found = images.load("fashion_mnist")
    x = np.concatenate([found.train.numpy(), found.test.numpy()])
    kinds = np.concatenate([found.labels.numpy(), found.test_labels.numpy()])
    small = x.reshape(len(x), 14, 2, 14, 2).mean((2, 4)).reshape(len(x), 196)
    return small.astype(np.float32), kinds
