"""A ranker trained for what it is judged by, with the calls of LightGBM's and XGBoost's rankers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted
from torch import nn

from setpoint._checks import share, whole
from setpoint.axes.arrays import check_unmasked
from setpoint.axes.query_data import Grouped, query_column
from setpoint.estimators.inputs import AnyArray, Examples, read_features
from setpoint.estimators.networks import (
    build,
    on_device,
    read_epochs,
    read_learning_rate,
    scores_of_rows,
)
from setpoint.problems import Problem, merit
from setpoint.solvers import Implicit
from setpoint.train import Validation, WholeQueries, fit, steps_for

_STEPS = 300
"""With ``epochs="auto"``: the fewest steps to train for."""


class Ranker(BaseEstimator):  # type: ignore[misc]
    """Rank documents within queries for a goal of every query, such as precision of the first ten.

    A fifth of the queries is kept to choose the best pass by. Features are standardised inside.

    Args:
        goal: A sentence or a :class:`setpoint.Problem`; one that is not per query is asked of
            every query.
        model: ``"linear"``, ``"mlp"`` (64 hidden units) or an ``nn.Module`` that gives one score
            per row; it is copied.
        epochs: Passes over the training queries; ``"auto"``: enough for 300 steps, at least 10.
        batch_size: Queries in a batch; they are never split.
        learning_rate: Of Adam; ``"auto"``: 0.03 for linear, 0.01 for mlp, 0.001 for a module.
        validation_fraction: The share of queries to choose the best pass by; 0: all of them.
        random_state: Decides split, initial weights and batches.
        device: Where to train.
        verbose: 1: show progress on stderr.

    Attributes:
        module_: The trained network, ``[n, d]`` raw features to scores ``[n]``.
        history_: One dict per pass: epoch, step, loss, validation, seconds, status.
        splits_: The rows of ``train`` and ``validation``.
        problem_: The goal, read.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> X, qid = rng.normal(size=(600, 3)), np.repeat(np.arange(30), 20)
        >>> y = X[:, 0] + rng.normal(size=600) > 1
        >>> ranker = Ranker("maximize precision subject to alerts at 3", random_state=0)
        >>> bool(ranker.fit(X, y, qid=qid).score(X, y, qid=qid) > 0.5)
        True
    """

    def __init__(
        self,
        goal: str | Problem = "maximize precision subject to alerts at 10 per query",
        *,
        model: str | nn.Module = "linear",
        epochs: int | str = "auto",
        batch_size: int = 64,
        learning_rate: float | str = "auto",
        validation_fraction: float = 0.2,
        random_state: Any = None,
        device: str = "cpu",
        verbose: int = 0,
    ) -> None:
        self.goal = goal
        self.model = model
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, qid: Any = None, group: Any = None
    ) -> Ranker:
        """Train on whole queries.

        Args:
            X: Features, numbers without gaps, ``[n, d]``.
            y: Relevance, numbers of at least 0: a document is relevant if it is above 0.
            sample_weight: Optional, one per document; weight 2 is two copies.
            qid: The query of each row, numbers or strings in any order (XGBoost's ``qid``), or
            group: the number of rows of each query, query after query (LightGBM's ``group``).
        """
        x, y = read_features(self, X, y)
        problem = self.goal if isinstance(self.goal, Problem) else Problem.parse(self.goal)
        self.problem_ = problem if problem.query is not None else problem.per("query")
        labels = read_relevance(y)
        queries = read_queries(qid, group, len(labels))
        weights = None
        if sample_weight is not None:
            check_unmasked(sample_weight, "sample_weight")
            weights = np.asarray(_check_sample_weight(sample_weight, x, ensure_non_negative=True))
        random = check_random_state(self.random_state)
        fraction = share(self.validation_fraction, "validation_fraction")
        self.splits_ = query_parts(queries, fraction, random)
        given = Examples(x, labels, weights, {str(self.problem_.query): queries})
        self._train(given, queries[self.splits_["train"]], random.randint(2**31 - 1))
        return self

    def _train(self, given: Examples, queries: AnyArray, seed: int) -> None:
        own, seen = (given.part(self.splits_[name]) for name in ("train", "validation"))
        x, y, weights, groups = on_device(own, self.device)
        sampler = WholeQueries(queries, whole(self.batch_size, "batch_size", least=1))
        steps = steps_for(len(y), sampler.size, read_epochs(self.epochs), fewest=_STEPS)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            fitted = fit(
                build(self.model, own.rows, own.weights).to(self.device),
                Implicit(self.problem_, steps=steps),
                x,
                y,
                steps=steps,
                batch_size=sampler.size,
                learning_rate=read_learning_rate(self.model, self.learning_rate),
                seed=seed,
                weights=weights,
                groups=groups,
                sampler=sampler,
                validation=Validation(self.problem_, *on_device(seen, self.device)),
                progress=int(self.verbose) > 0,
            )
        self.module_, self.history_ = fitted.model, fitted.history

    def predict(self, X: Any) -> AnyArray:
        """The score of each row: within a query, higher is more relevant."""
        check_is_fitted(self)
        x = read_features(self, X, reset=False)
        return scores_of_rows(self.module_, x, self.device)

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, qid: Any = None, group: Any = None
    ) -> float:
        """The goal on these data, greater is better: negated if it is minimized."""
        scores, labels = self.predict(X), read_relevance(y)
        queries = read_queries(qid, group, len(labels))
        return merit(self.problem_, scores, labels, weights=sample_weight, queries=queries)


def read_relevance(y: Any) -> NDArray[np.int64]:
    """1 for every relevant document (a grade above 0), else 0.

    Raises:
        ValueError: A grade is negative or not a number.
    """
    grades = np.asarray(y)
    if grades.dtype.kind not in "biuf":
        raise ValueError(f"Relevance must be numbers; got {grades.dtype}.")
    wrong = ~(grades >= 0)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"Relevance must be at least 0; got {grades[row]} in row {row}.")
    return (grades > 0).astype(np.int64)


def read_queries(qid: Any, group: Any, count: int) -> AnyArray:
    """The query of each row, from names or from sizes.

    Raises:
        ValueError: Both are given or none, or the sizes do not add up to ``count``.
    """
    if (qid is None) == (group is None):
        raise ValueError(
            "A ranker needs to know which rows belong together: pass qid=, the query of each row, "
            "or group=, the number of rows of each query."
        )
    if group is None:
        return query_column("query", qid, np.empty(count, dtype=bool))
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 0).any():
        raise ValueError(f"group must be whole numbers of rows, one per query; got {group!r:.60}.")
    if int(sizes.sum()) != count:
        raise ValueError(f"group adds up to {int(sizes.sum())} rows; there are {count}.")
    return np.repeat(np.arange(len(sizes)), sizes)


def query_parts(
    queries: AnyArray, fraction: float, random: np.random.RandomState
) -> dict[str, NDArray[np.int64]]:
    """Rows of the parts ``train`` and ``validation``, whole queries each.

    With fewer than two queries, or a fraction of 0, both are all rows.
    """
    grouped = Grouped.by(queries)
    held_out = round(fraction * len(grouped))
    everyone = np.arange(len(queries))
    if held_out == 0 or len(grouped) < 2:
        return {"train": everyone, "validation": everyone}
    if held_out == len(grouped):
        raise ValueError(
            f"validation_fraction {fraction:g} of {len(grouped)} queries leaves none to train on."
        )
    names = grouped.names[random.permutation(len(grouped))[:held_out]]
    kept = np.isin(queries, names)
    return {"train": everyone[~kept], "validation": everyone[kept]}
