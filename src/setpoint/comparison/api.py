"""``compare``: one problem by several methods; its arguments are checked here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from torch import nn

from setpoint._checks import positive, whole
from setpoint.comparison.tables import Comparison
from setpoint.comparison.trials import ComparisonPlan, Members, run_cells
from setpoint.datasets import DataSplit, Table, split
from setpoint.distributed import Processes, check_processes
from setpoint.problems import GoalLike, as_problem, check_plain
from setpoint.solvers import Method, methods_named
from setpoint.train import LEARNING_RATES

USUAL = ("cross_entropy", "focal", "resampled", "implicit")
Data = tuple[Any, Any] | Table | Callable[[int], DataSplit]
_OWN = 'For one of your own pass {"mine": Method(lambda problem, steps: ...)}.'


def compare(
    problem: GoalLike,
    data: Data,
    methods: Iterable[str] | Mapping[str, Method] = USUAL,
    *,
    seeds: int | Sequence[int] = 5,
    model: str | Callable[[], nn.Module] = "linear",
    steps: int = 1000,
    batch_size: int = 512,
    learning_rates: float | Sequence[float] | None = None,
    processes: Processes = 1,
    on_trial: Callable[[Any], None] | None = None,
) -> Comparison:
    """Train for the same problem by several methods, and tell which one is best.

    Every method gets the same splits, initial weights and number of steps. Learning rate and pass
    are chosen on the validation part by the goal's own metric; the test part only judges.

    Args:
        problem: What is wanted.
        data: ``(x, y)``, split 50/25/25 anew for every seed; or a function from a seed to a
            :class:`setpoint.datasets.DataSplit`.
        methods: Names of :data:`setpoint.solvers.METHODS`, ``"auto"`` for the portfolio, or methods
            of your own by name. The others are compared with the first.
        seeds: How many splits, or which.
        model: ``"linear"``, ``"mlp"``, or a function that makes an untrained module.
        steps: Training steps of every run.
        batch_size: Examples in a batch.
        learning_rates: To choose from; the usual one of the model when None.
        processes: How many trials run at the same time on this machine, or ``"ray"`` for a Ray
            cluster (the extra ``ray``); the results are the same.
        on_trial: Called with every finished trial, for progress.

    Returns:
        The comparison: ``print`` it, or use its rows.

    Examples:
        >>> from setpoint import compare, fnr_at_fpr
        >>> from setpoint.datasets import letter
        >>> found = compare(fnr_at_fpr(0.01), letter(), ["focal", "implicit"], seeds=1, steps=20)
        >>> [row.method for row in found.rows]
        ['focal', 'implicit']
    """
    problem = as_problem(problem, "compare")
    check_plain(problem, "compare", "Use Classifier.fit(..., groups=...).")
    chosen, wanted = _check_methods(methods), _check_seeds(seeds)
    plan = ComparisonPlan(
        problem,
        _splitter(data),
        model,
        whole(steps, "steps", least=1),
        whole(batch_size, "batch_size", least=1),
        _learning_rates(learning_rates, model),
    )
    trials = []
    for trial in run_cells(plan, chosen, wanted, check_processes(processes)):
        trials.append(trial)
        if on_trial is not None:
            on_trial(trial)
    labels = {seed: plan.split(seed).test.y for seed in wanted}
    return Comparison(problem, tuple(trials), labels)


def _splitter(data: Data) -> Callable[[int], DataSplit]:
    if callable(data):
        return data
    try:
        x, y = data
    except (TypeError, ValueError):
        raise TypeError("data must be (x, y), or a function from a seed to a DataSplit.") from None
    features, labels = np.asarray(x, np.float32), np.asarray(y)
    if features.ndim != 2 or labels.shape != features.shape[:1]:
        raise ValueError(
            f"data must be features [n, d] and labels [n]; got {features.shape} and "
            f"{labels.shape}. For images pass a function from a seed to a DataSplit."
        )
    bad = np.argwhere(~np.isfinite(features))
    if len(bad):
        row, column = bad[0]
        raise ValueError(
            f"Features must be finite; got {features[row, column]} in row {row}, column {column}. "
            "Fill in or remove such rows first."
        )
    if not np.isin(labels, (0, 1)).all():
        raise ValueError("Labels must be 0 or 1.")
    return partial(split, Table(features, labels.astype(np.int64)))


def _learning_rates(given: float | Sequence[float] | None, model: object) -> list[float]:
    if given is None:
        return [LEARNING_RATES.get(model, 0.001) if isinstance(model, str) else 0.001]
    listed = [given] if isinstance(given, int | float) else list(given)
    if not listed:
        raise ValueError("learning_rates must name at least one rate.")
    return [positive(rate, "learning_rates") for rate in listed]


def _check_methods(methods: object) -> dict[str, Members]:
    """The methods by name; TypeError or ValueError for what is neither a name nor a Method."""
    chosen: dict[str, Members] = {}
    if isinstance(methods, Mapping):
        for name, method in methods.items():
            if not isinstance(name, str):
                raise TypeError(f"Methods have names, which are strings; got {name!r}.")
            if not isinstance(method, Method):
                raise TypeError(
                    f"The method {name!r} must be a Method; got {type(method).__name__}. Every "
                    f'split needs a new one: pass {{"{name}": Method(lambda problem, steps: ...)}}.'
                )
            chosen[name] = {name: method}
    elif isinstance(methods, Iterable):
        for name in [methods] if isinstance(methods, str) else methods:
            if not isinstance(name, str):
                raise TypeError(
                    f"A list of methods has names; got {_short_repr(name)} in it. {_OWN}"
                )
            methods_named(name)
            chosen[name] = name
    else:
        raise TypeError(
            'methods must be names, as in ["cross_entropy", "implicit"]; '
            f"got {_short_repr(methods)}. {_OWN}"
        )
    if not chosen:
        raise ValueError("compare needs at least one method.")
    return chosen


def _check_seeds(seeds: object) -> list[int]:
    """The seeds of so many splits, or those that are listed."""
    if isinstance(seeds, Integral):
        return list(range(whole(seeds, "seeds", least=1)))
    listed = list(seeds) if isinstance(seeds, Iterable) else [seeds]
    if not listed:
        raise ValueError("seeds must name at least one split; got an empty list.")
    if not isinstance(seeds, Iterable) or not all(isinstance(one, Integral) for one in listed):
        raise TypeError(f"seeds must be a whole number, or a list of them; got {seeds!r}.")
    return [whole(one, "seeds", least=0) for one in listed]


def _short_repr(value: object) -> str:
    return repr(value) if len(repr(value)) <= 60 else type(value).__name__
