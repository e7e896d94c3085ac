"""What all integrations share: metrics of validation scores, certificates, scalars for loggers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from setpoint._checks import is_number
from setpoint._files import write_file
from setpoint.axes.choice import worst
from setpoint.axes.outputs import columns_of_outputs
from setpoint.certificates import CannotPromise, Certificate, certify
from setpoint.problems import Choice, GoalLike, Infeasible, Problem, as_problem

_FILE = "certificate.json"

_GOOD = ("held", "slack", "certified", "settled")
_UNUSUAL = re.compile(r"[^\w.\-/]+")
TRAIN, VALIDATION = "setpoint/train/", "setpoint/val/"
"""What keys start with, see docs/recipes/loggers.md: ``setpoint/<part>/<name>``."""


def scalars(stats: Mapping[str, Any], prefix: str = TRAIN) -> dict[str, float]:
    """Numbers by key, from ``criterion.stats()``, ``barrier.report()`` or any such dict.

    Lists become ``name/0``, ``name/1``; dicts ``name/key``; None, infinite values and texts are
    left out; a status becomes 1 if the goal is held, slack, certified or settled, else 0. Keys are
    made of letters, digits and ``_ . - /``, which every logger takes.

    Args:
        stats: Plain values.
        prefix: Put before every name.

    Examples:
        >>> scalars({"status": "held", "threshold": [0.5, None], "note": "words"})
        {'setpoint/train/status': 1.0, 'setpoint/train/threshold/0': 0.5}
    """
    found: dict[str, float] = {}
    for name, value in stats.items():
        key = prefix + _UNUSUAL.sub("_", str(name)).strip("_")
        if name == "status":
            found[key] = float(str(value).startswith(_GOOD))
        elif name == "statuses":
            good = {f"{prefix}status/{k}": str(v).startswith(_GOOD) for k, v in value.items()}
            found |= {key: float(each) for key, each in good.items()}
        elif isinstance(value, Mapping):
            found |= scalars(value, f"{key}/")
        elif isinstance(value, (list, tuple)):
            found |= scalars({str(i): each for i, each in enumerate(value)}, f"{key}/")
        elif isinstance(value, bool) or is_number(value):
            found[key] = float(value)
    return found


def goal_metrics(
    scores: Any,
    labels: Any,
    goal: GoalLike,
    *,
    outputs: Sequence[str] | None = None,
    prefix: str = VALIDATION,
) -> dict[str, float]:
    """The metrics of scored data by their keys, as all integrations log them.

    ``goal`` is the objective at the best threshold of these data, every rate of the goal stands
    under its own name, ``threshold`` is where, and ``status`` is 1 if the bounds can be met.

    Args:
        scores: One per example; ``[n, c]`` for ``outputs``.
        labels: 0 or 1, in the same shape.
        goal: A problem, a bound or a sentence.
        outputs: Names of binary outputs; keys then end in ``/name``.
        prefix: Put before every name.

    Examples:
        >>> goal_metrics([0.9, 0.8, 0.2, 0.1], [1, 0, 1, 0], "fpr <= 0.5")
        {'setpoint/val/goal': 1.0, 'setpoint/val/status': 1.0, 'setpoint/val/recall': 1.0,
         'setpoint/val/fpr': 0.5, 'setpoint/val/threshold': 0.1}
    """
    problem = as_problem(goal)
    if outputs is None:
        return scalars(_measured(*best_choice(problem, scores, labels)), prefix)
    found: dict[str, float] = {}
    for name, s, y, _ in columns_of_outputs(scores, labels, outputs):
        each = scalars(_measured(*best_choice(problem, s, y)), prefix)
        found |= {f"{key}/{name}": value for key, value in each.items()}
    return found


def _measured(choice: Choice, status: str) -> dict[str, Any]:
    at = choice.thresholds
    threshold = at[0] if len(at) == 1 else [*at]
    return {"goal": choice.value, "status": status, **choice.rates, "threshold": threshold}


def best_choice(problem: Problem, scores: Any, labels: Any) -> tuple[Choice, str]:
    """The best thresholds on these data with the rates they reach, and a status.

    Where no threshold reaches the targets, or a class is missing, the value is the worst value of
    the goal and the status says why: a training loop goes on. An area has a value and no threshold.

    Raises:
        ValueError: The goal cannot be measured, and it has no worst value.
    """
    lost = worst(problem)
    try:
        if problem.swept is None:
            return problem.choose(scores, labels), "held"
        value = problem.evaluate(scores, labels)
        return Choice((), value, {str(problem.objective): value}), "held"
    except ValueError as error:
        if lost != lost:  # NaN: only a share has a worst value
            raise
        word = "infeasible" if isinstance(error, Infeasible) else "undefined"
        return Choice((), lost, {}), f"{word}: {error}"


def try_certify(
    problem: Problem,
    scores: Any,
    labels: Any,
    confidence: float,
    candidates: int,
    outputs: Sequence[str] | None = None,
) -> tuple[Certificate | None, str]:
    """A certificate and its status, or None and the reason why the goal cannot have one.

    Args:
        problem: The goal; an area or an exact value cannot be certified.
        scores: Of calibration data.
        labels: Of calibration data.
        confidence: Of the certificate.
        candidates: From how many models this one was chosen by looking at these data.
        outputs: Names of several outputs.
    """
    if problem.swept is not None:
        return None, f"`{problem}` is an area: it has no single threshold to certify."
    try:
        options: dict[str, Any] = {"confidence": confidence, "candidates": candidates}
        found = certify(scores, labels, problem, outputs=outputs, **options)
    except CannotPromise as refused:
        return None, str(refused)
    return found, "; ".join([found.status, *found.notes])


def write_certificate(certificate: Certificate, folder: Path) -> Path:
    """Write the certificate to a folder, completely or not at all; returns the file."""
    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / _FILE, certificate.to_json().encode())
    return folder / _FILE
