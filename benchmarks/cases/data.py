"""The tables of the cases: rows to learn from, rows to certify on, later or other rows to judge."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks.common.folder import path
from benchmarks.study import tables

WORDS = 1000
SHARES = (0.5, 0.7)  # the first half trains, a fifth certifies, the rest judges


@dataclass(frozen=True)
class Rows:
    """Features and labels, what each row is worth, and what kind of row it is."""

    x: Any
    y: Any
    amounts: Any = None
    kind: Any = None

    def take(self, rows: Any) -> "Rows":
        """Some of them."""
        columns = (self.x, self.y, self.amounts, self.kind)
        return Rows(*(None if column is None else column[rows] for column in columns))


@dataclass(frozen=True)
class Case:
    """One use: its goal, its data, and what decisions are worth."""

    title: str
    goal: str
    read: Callable[[int], tuple[Rows, Rows, Rows]]
    review: float = 0.0
    """What looking at one alert costs, where amounts are known."""
    found: float = 0.0
    """What a positive that is found saves, where there are no amounts; an assumption."""
    alarm: float = 0.0
    """What a false alarm costs, likewise."""


def _shuffled(name: str, clip: bool = False) -> Callable[[int], tuple[Rows, Rows, Rows]]:
    def read(seed: int) -> tuple[Rows, Rows, Rows]:
        x, y = tables.read(name)
        order = np.random.default_rng(seed).permutation(len(y))
        if clip:
            x = tables.clipped(x, order[: _ends(order)[0]])
        return _cut(Rows(x, y), order)

    return read


def _cut(rows: Rows, order: Any) -> tuple[Rows, Rows, Rows]:
    train, calibration, test = (rows.take(part) for part in np.split(order, _ends(order)))
    return train, calibration, test


def _ends(order: Any) -> list[int]:
    """Where training rows end, and where those of the certificate do."""
    return [int(share * len(order)) for share in SHARES]


def _fraud(seed: int) -> tuple[Rows, Rows, Rows]:
    """In the order of time; a seed leaves out another tenth of the customers."""
    with np.load(path("fraud_handbook_sim/fraud_handbook_sim.npz")) as stored:
        x, y = stored["X"].astype(np.float32), stored["y"].astype(np.int64)
        customers = stored["customer_id"]
    kept = np.flatnonzero(customers % 10 != seed)
    return _cut(Rows(x, y, amounts=x[:, 0].astype(np.float64)), kept)


def _texts(file: str, kind: str | None = None) -> Callable[[int], tuple[Rows, Rows, Rows]]:
    def read(seed: int) -> tuple[Rows, Rows, Rows]:
        table = pd.read_csv(path(file), keep_default_na=False)
        table = table[~table.text.map(_letters).duplicated()]
        order = np.random.default_rng(seed).permutation(len(table))
        words = TfidfVectorizer(max_features=WORDS, sublinear_tf=True, ngram_range=(1, 2))
        words.fit(table.text.iloc[order[: _ends(order)[0]]])
        x = words.transform(table.text).toarray().astype(np.float32)
        kinds = None if kind is None else table[kind].to_numpy()
        return _cut(Rows(x, table.y.to_numpy(np.int64), kind=kinds), order)

    return read


def _letters(text: str) -> str:
    """What copies of a text have in common: the first of them is kept."""
    return "".join(filter(str.isalpha, text.casefold()))


CASES = {
    "scorecard": Case(
        "A scorecard for lending",
        "minimize fnr subject to fpr <= 0.05",
        _shuffled("give_me_some_credit", clip=True),
        found=3000.0,
        alarm=300.0,
    ),
    "fraud_queue": Case(
        "A fraud queue with a capacity",
        "maximize recall subject to coverage <= 0.005",
        _fraud,
        review=2.0,
    ),
    "intrusion": Case(
        "An intrusion detector at one false alarm in a thousand",
        "minimize fnr subject to fpr <= 0.001",
        _shuffled("unsw_nb15_82k"),
        found=100.0,
        alarm=20.0,
    ),
    "moderation": Case(
        "A moderation filter on words",
        "minimize fnr subject to fpr <= 0.01",
        _texts("davidson_hate/davidson_hate.csv.xz"),
        found=5.0,
        alarm=5.0,
    ),
    "guardrail": Case(
        "A guardrail for prompts",
        "minimize fnr subject to fpr <= 0.01",
        _texts("prompt_injection_mix/prompt_injection_mix.csv.xz", "category"),
        found=10.0,
        alarm=5.0,
    ),
    "screening": Case(
        "A screening test at recall 95 %",
        "minimize coverage subject to recall >= 0.95",
        _shuffled("brfss_diabetes"),
        found=480.0,
        alarm=20.0,
    ),
}
