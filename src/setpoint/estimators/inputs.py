"""What ``fit`` is given, read and checked: goal, labels, weights and groups."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight, validate_data

from setpoint.axes.arrays import check_unmasked
from setpoint.axes.group_cells import cells_of
from setpoint.certificates.copies import AnyArray as AnyArray
from setpoint.problems import GoalLike, Problem, about_classes, as_problem, refuse_queries
from setpoint.rates import ClassArea, accuracy, error

Labels = NDArray[np.int64]
GroupColumns = dict[str, AnyArray]
"""One value per row for every column of groups, by its name."""


class Examples(NamedTuple):
    """Features ``[n, d]`` or scores ``[n]`` (``[n, K]`` for K classes) with what is known of them.

    In the order in which training, validation and certificates take them.
    """

    rows: Any
    labels: Any
    weights: Any = None
    groups: GroupColumns | None = None
    clusters: Any = None
    times: Any = None

    def part(self, which: AnyArray) -> Examples:
        """Some of the examples, by position or by a mask."""
        groups = self.groups and {name: column[which] for name, column in self.groups.items()}
        others = (self.weights, self.clusters, self.times)
        weights, clusters, times = (None if known is None else known[which] for known in others)
        return Examples(self.rows[which], self.labels[which], weights, groups, clusters, times)


FEWEST_ROWS = 20
"""If a class has fewer rows than this, the rows are not split: all are needed to learn from."""
FEWEST_PER_CLASS = 5
"""The same for a goal about several classes."""
_UNSEEN = ("error", "highest", "lowest")
"""What may be done with a group that has no threshold."""

_SHOWN = 5  # labels in an error
_ENCODE = (
    "encode categories, as by sklearn.preprocessing.OneHotEncoder in a pipeline, or leave the "
    "column out."
)
_FLOATS = [np.float64, np.float32]


def read_features(estimator: Any, X: Any, *y: Any, reset: bool = True) -> Any:
    """Features as an array of floats, with ``y`` if it is given; scikit-learn checks the rest.

    Raises:
        TypeError: Entries are masked, which scikit-learn would not see, or a column holds dates.
        ValueError: They are no finite numbers, or not of the shape that ``fit`` saw.
    """
    for values, name in zip((X, *y), ("X", "y"), strict=False):
        check_unmasked(values, name)
    refuse_dates(X)
    for labels in map(np.asarray, y):
        if labels.dtype.kind == "f":
            _refuse_infinite(labels, "y")
        if labels.dtype.kind == "O" and labels.ndim:
            known = [0.0 if _is_known(label) else np.nan for label in labels.ravel()]
            _refuse_infinite(np.reshape(known, labels.shape), "y")
    kinds: dict[str, Any] = {"dtype": _FLOATS, "ensure_all_finite": False}
    try:
        found = validate_data(estimator, X, *y, reset=reset, **kinds)
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        raise ValueError(f"{_column_of_texts(X, error)}: {_ENCODE}") from None
    _refuse_infinite(found[0] if y else found, "X", getattr(X, "columns", None))
    return found


def _is_known(label: Any) -> bool:
    """Whether a label is there: not None, NaN or the NA of pandas."""
    try:
        return label is not None and bool(label == label)
    except (TypeError, ValueError):
        return False


def _column_of_texts(X: Any, error: ValueError) -> str:
    """The first column that is no column of numbers, with the value that is none."""
    value = str(error).rpartition(": ")[2]
    names = (name for name in getattr(X, "columns", ()) if not _are_numbers(X[name]))
    where = next((f"Column {name!r}" for name in names), "X")
    return f"{where} holds {value}, which is no number"


def _are_numbers(column: Any) -> bool:
    """Whether numpy makes numbers of a column."""
    try:
        np.asarray(column, dtype=float)
    except (ValueError, TypeError):
        return False
    return True


def _refuse_infinite(values: AnyArray, name: str, columns: Any = None) -> None:
    """ValueError with the row, and the column, of the first entry that is NaN or infinite."""
    strange = ~np.isfinite(values)
    if strange.any():
        row, *column = first = tuple(np.argwhere(strange)[0].tolist())
        found = "NaN" if np.isnan(values[first]) else str(values[first])
        where = "".join(f", column {i if columns is None else repr(columns[i])}" for i in column)
        fill = ", or fill features in, as by sklearn.impute.SimpleImputer" if column else ""
        raise ValueError(
            f"{name} has {found} in row {row}{where}, and {strange.sum():,} such entries in all: "
            f"leave those rows out{fill}."
        )


def refuse_dates(X: Any) -> None:
    """TypeError for a column of dates, times or durations, of numpy, pandas or polars."""
    single = [getattr(X, "dtype", "")]
    columns = zip(getattr(X, "columns", ["X"]), getattr(X, "dtypes", single), strict=False)
    for name, dtype in columns:
        if str(dtype).lower().startswith(("date", "time", "duration")):
            raise TypeError(
                f"Column {name!r} holds {dtype}: make a number of it, such as the days since a "
                "date, or leave it out."
            )


def read_decision_goal(goal: GoalLike, unseen: str, classes: int = 2) -> Problem:
    """The goal as a problem that decisions can be made for.

    Args:
        goal: What the user passed.
        unseen: What to do with a group that has no threshold.
        classes: How many there are; of more than two, accuracy alone is about all of them.

    Raises:
        ValueError: The goal is about queries, is an area, or wants a threshold per group without
            naming the groups; or ``unseen`` is not one of ``error``, ``highest`` and ``lowest``.
    """
    problem = as_problem(goal)
    if classes > 2:
        problem = about_classes(goal) or problem
    refuse_queries(problem.query, "A classifier")
    if problem.swept is not None:
        raise ValueError(
            f"`{problem}` is an area: it has no single threshold to decide with. Name the "
            "operating point, such as 'maximize precision subject to recall >= 0.95'."
        )
    if isinstance(problem.objective, ClassArea):
        raise ValueError(
            f"`{problem}` is an area: it has no decisions to predict with. Name what "
            "they are judged by, such as 'maximize macro(recall)'."
        )
    if unseen not in _UNSEEN:
        known = ", ".join(map(repr, _UNSEEN))
        raise ValueError(f"unseen must be one of {known}; got {unseen!r}.")
    if problem.kind == "groups" and not cells_of(problem):
        raise ValueError(
            f"`{problem}` names no group to find a threshold for. Name them, as in "
            'demographic_parity(0.02, sex=["f", "m"]).'
        )
    return problem


def read_classes(
    y: AnyArray, problem: Problem, pos_label: Any = None, *, against_rest: bool = False
) -> tuple[AnyArray, Labels]:
    """The classes in sorted order, and the number of each row's class.

    With two classes the number is 1 for the positive class: ``pos_label``, or the second.

    Args:
        y: Labels.
        problem: The goal.
        pos_label: The positive class.
        against_rest: Whether a goal of two classes may be about ``pos_label`` against all others.

    Raises:
        ValueError: There is one class only, or there are more than two and the goal is not about
            several classes; ``pos_label`` is not in ``y``, or the goal has no positive class.
    """
    classes, labels = np.unique(y, return_inverse=True)
    labels = labels.astype(np.int64)
    seen = ", ".join(repr(label) for label in classes.tolist()[:_SHOWN])
    seen += ", ..." if len(classes) > _SHOWN else ""
    if len(classes) < 2:
        found = f"all labels are {classes.tolist()[0]!r}" if len(classes) else "there are 0 samples"
        raise ValueError(
            "Classifier can't train when only one class is present: "
            f"{found} (rows whose sample_weight is 0 are absent)."
        )
    if problem.kind == "classes":
        if pos_label is not None:
            raise ValueError(
                f"pos_label={pos_label!r} is for two classes, and `{problem}` is about each of "
                "several; leave it out."
            )
        return classes, labels
    if len(classes) > 2 and not (against_rest and pos_label is not None):
        way = "; say which is the positive one (pos_label=...)" if against_rest else ""
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: "
            f"y has {len(classes)} classes ({seen}){way}, or write a goal about classes, such as "
            "'maximize macro(recall)'."
        )
    if pos_label is None:
        _warn_of_names(classes, problem)
        return classes, labels
    if not any(label == pos_label for label in classes.tolist()):
        raise ValueError(f"pos_label={pos_label!r} is not in y, whose labels are {seen}.")
    if len(classes) > 2:
        return classes, np.asarray(classes == pos_label, np.int64)[labels]
    return classes, labels if classes.tolist()[1] == pos_label else 1 - labels


def _warn_of_names(classes: AnyArray, problem: Problem) -> None:
    """Warn that of two names the second is taken for the positive class, if that matters."""
    if classes.dtype.kind not in "OUST" or all(e in (accuracy, error) for e in problem.expressions):
        return
    first, second = classes.tolist()
    warnings.warn(
        f"y has the labels {first!r} and {second!r}, and no pos_label says which is positive: "
        f"{second!r} is taken, the second in sorted order, as in scikit-learn. Pass "
        f"pos_label={first!r} or pos_label={second!r}.",
        UserWarning,
        stacklevel=4,
    )


def columns_of_labels(y: Any, classes: AnyArray) -> Labels:
    """The column of each label's class in ``classes``, which are sorted.

    Raises:
        ValueError: A label is not in ``classes``.
    """
    labels = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    strange = np.asarray(y) != classes[labels]
    if strange.any():
        raise ValueError(f"y has a class that was not there in fit: {np.asarray(y)[strange][0]!r}.")
    return np.asarray(labels, np.int64)


def read_weights(given: Any, x: AnyArray, labels: Labels) -> NDArray[np.float64] | None:
    """The weights, or None if all are the same.

    Weights that are all below 1 count no copies: they are shares, and their mean becomes 1. As
    they are, a table whose weights add up to 1 would be one row, and its probabilities 0.5.

    Raises:
        ValueError: A weight is negative, or only one class has a positive weight.
    """
    if given is None:
        return None
    check_unmasked(given, "sample_weight")
    weights = np.asarray(_check_sample_weight(given, x, ensure_non_negative=True), np.float64)
    if len(np.unique(labels[weights > 0])) < 2:
        raise ValueError("Only one class has rows with a positive sample_weight; both need some.")
    if np.all(weights == weights[0]) and weights[0] > 0:
        return None
    return weights if weights.max() >= 1 else weights / weights[weights > 0].mean()


def read_groups(groups: Any, problem: Problem, count: int) -> GroupColumns | None:
    """The group columns that a goal names, one value per row, or None if it names none.

    Raises:
        ValueError: A column that the goal names is missing or has not ``count`` values, or groups
            are given and the goal names none.
    """
    asked = problem.columns
    if not asked:
        if groups is not None:
            raise ValueError(
                f"groups= was given, and `{problem}` looks at no group. Name them in the goal, as "
                'in abs(tpr.on(sex="f") - tpr.on(sex="m")) <= 0.05, or leave groups= out.'
            )
        return None
    if groups is None:
        raise ValueError(f"`{problem}` needs groups: pass fit(X, y, groups={{{asked[0]!r}: ...}}).")
    named = groups if isinstance(groups, Mapping) else {asked[0]: groups}
    missing = [column for column in asked if column not in named]
    if missing:
        raise ValueError(f"`{problem}` needs the group column {missing[0]!r}; pass it in groups=.")
    columns = {name: _column(named[name]) for name in asked}
    for column in columns.values():
        if column.shape != (count,):
            shape = column.shape
            raise ValueError(f"groups must have one value per row, ({count},); got {shape}.")
    return columns


def _column(values: Any) -> AnyArray:
    """A column as an array; a tensor is read from wherever it lies."""
    check_unmasked(values, "groups")
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
