"""Data of the fronts: a simulated regression, words of reviews and of newsgroups, and Adult.

Texts become TF-IDF features of the most frequent words, 2,000 training rows as in the paper; the
four classes of 20 newsgroups are its top levels comp, rec, sci and talk.
"""

from __future__ import annotations

import lzma
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from benchmarks.common.folder import path

WORDS, TRAIN_ROWS, TEST_ROWS = 300, 2000, 2000
TOP_LEVELS = ("comp", "rec", "sci", "talk")


class Data(NamedTuple):
    """Training and test part; ``classes`` is 1 for regression."""

    x: Tensor
    y: Tensor
    x_test: Tensor
    y_test: Tensor
    classes: int


def simulated(seed: int) -> Data:
    """Three directions of twenty matter, two of them through their sign: a little noise on top."""
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(1500, 20, generator=draw)
    weights = torch.randn(20, 3, generator=draw) * (torch.rand(20, 3, generator=draw) < 0.4)
    y = (x @ weights).sum(1) / 3 + 0.3 * torch.randn(1500, generator=draw)
    y = (y - y.mean()) / y.std()
    return Data(x[:500], y[:500], x[500:], y[500:], 1)


def texts(name: str, seed: int) -> Data:
    """``imdb`` (two classes) or ``newsgroups20`` (four)."""
    features, labels, training = _texts(name)
    draw = np.random.default_rng(seed)
    parts = []
    for part, most in ((training, TRAIN_ROWS), (~training, TEST_ROWS)):
        rows = draw.permutation(np.flatnonzero(part))[:most]
        parts += [torch.as_tensor(features[rows]), torch.as_tensor(labels[rows])]
    return Data(*parts, classes=int(labels.max()) + 1)


@lru_cache(maxsize=1)
def _texts(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    with lzma.open(path(f"{name}/{name}.csv.xz"), "rt", encoding="utf-8") as file:
        table = pd.read_csv(file, keep_default_na=False)
    if name == "imdb":
        labels = table["y"].to_numpy(np.int64)
        kept = np.random.default_rng(0).permutation(len(table))[:12_000]  # enough for the words
        table, labels = table.iloc[kept], labels[kept]
    else:
        top = table["group"].str.split(".").str[0]
        kept = top.isin(TOP_LEVELS).to_numpy()
        # the header names the newsgroup: only the body may be learned from
        table = table[kept].assign(text=lambda t: t["text"].str.split("\n\n", n=1).str[-1])
        labels = top[kept].map(TOP_LEVELS.index).to_numpy(np.int64)
    training = (table["split"] == "train").to_numpy()
    vectors = TfidfVectorizer(max_features=WORDS, stop_words="english", sublinear_tf=True)
    vectors.fit(table["text"][training])
    features = vectors.transform(table["text"]).toarray().astype(np.float32)
    return features * np.float32(5), labels, training  # entries of about one


class Adult(NamedTuple):
    """Features without sex, labels, and 1 for women; training and test part."""

    x: Tensor
    y: Tensor
    sex: Tensor
    x_test: Tensor
    y_test: Tensor
    sex_test: Tensor


def adult(seed: int, rows: int = 5000) -> Adult:
    """``rows`` of the official training part, drawn by the seed; all of the official test part."""
    with np.load(path("adult/adult.npz")) as z:
        names = [str(name) for name in z["feature_names"]]
        blind = [i for i, name in enumerate(names) if not name.lower().startswith("sex")]
        x = z["X"][:, blind].astype(np.float32)
        y, sex = z["y"].astype(np.float32), z["sex_female"].astype(np.float32)
        training = z["split"] == "train"
    drawn = np.random.default_rng(seed).permutation(np.flatnonzero(training))[:rows]
    mean, scale = x[drawn].mean(0), x[drawn].std(0)
    x = ((x - mean) / np.where(scale > 0, scale, 1)).clip(-10, 10)
    parts = [torch.as_tensor(a[r]) for r in (drawn, ~training) for a in (x, y, sex)]
    return Adult(*parts)
