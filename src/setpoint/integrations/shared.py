"""What all integrations share: metrics of validation scores, certificates, scalars for loggers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from setpoint._checks import is_number
from setpoint._files import write_file
from setpoint.axes.choice import worst
from setpoint.certificates import CannotPromise, Certificate, certify
from setpoint.problems import Choice, Infeasible, Problem

_FILE = "certificate.json"

_GOOD = ("held", "slack", "certified", "settled")


def scalars(stats: Mapping[str, Any], prefix: str = "setpoint/") -> dict[str, float]:
    """Numbers by name, from ``criterion.stats()``, ``barrier.report()`` or any such dict.

    Lists become ``name/0``, ``name/1``; None, infinite values and texts are left out; a status
    becomes 1 if the goal is held, slack, certified or settled, else 0.

    Args:
        stats: Plain values.
        prefix: Put before every name.

    Examples:
        >>> scalars({"status": "held", "threshold": [0.5, None], "note": "words"})
        {'setpoint/status': 1.0, 'setpoint/threshold/0': 0.5}
    """
    found: dict[str, float] = {}
    for name, value in stats.items():
        if name == "status":
            found[prefix + name] = float(str(value).startswith(_GOOD))
        elif isinstance(value, Mapping):
            found |= scalars(value, f"{prefix}{name}/")
        elif isinstance(value, (list, tuple)):
            found |= scalars({str(i): each for i, each in enumerate(value)}, f"{prefix}{name}/")
        elif isinstance(value, bool) or is_number(value):
            found[prefix + name] = float(value)
    return found


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
    problem: Problem, scores: Any, labels: Any, confidence: float, candidates: int
) -> tuple[Certificate | None, str]:
    """A certificate and its status, or None and the reason why the goal cannot have one.

    Args:
        problem: The goal; an area or an exact value cannot be certified.
        scores: Of calibration data.
        labels: Of calibration data.
        confidence: Of the certificate.
        candidates: From how many models this one was chosen by looking at these data.
    """
    if problem.swept is not None:
        return None, f"`{problem}` is an area: it has no single threshold to certify."
    try:
        found = certify(scores, labels, problem, confidence=confidence, candidates=candidates)
    except CannotPromise as refused:
        return None, str(refused)
    return found, "; ".join([found.status, *found.notes])


def write_certificate(certificate: Certificate, folder: Path) -> Path:
    """Write the certificate to a folder, completely or not at all; returns the file."""
    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / _FILE, certificate.to_json().encode())
    return folder / _FILE
