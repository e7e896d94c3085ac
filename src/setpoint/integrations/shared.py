"""What the validation scores of a training loop show, and what they allow to be promised."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from setpoint._checks import is_number
from setpoint._files import write_file
from setpoint.axes.choice import worst
from setpoint.certificates import CannotPromise, Certificate, certify
from setpoint.problems import Choice, Infeasible, Problem

FILE = "certificate.json"


def judged(problem: Problem, scores: Any, labels: Any) -> tuple[Choice, str]:
    """The thresholds that are best on these data with what they reach, and a status.

    Where nothing reaches the targets, or a class is missing, the value is the worst share there is:
    a training loop goes on. An area has a value and no threshold.
    """
    lost = worst(problem)
    try:
        if problem.swept is None:
            return problem.choose(scores, labels), "held"
        value = problem.evaluate(scores, labels)
        return Choice((), value, {str(problem.objective): value}), "held"
    except ValueError as error:
        if lost != lost:  # the worst of a goal that is no share is not known
            raise
        word = "infeasible" if isinstance(error, Infeasible) else "undefined"
        return Choice((), lost, {}), f"{word}: {error}"


def promised(
    problem: Problem, scores: Any, labels: Any, confidence: float, candidates: int
) -> tuple[Certificate | None, str]:
    """A certificate, or None and the reason: some goals (an area, an exact value) have none."""
    if problem.swept is not None:
        return None, f"`{problem}` is an area: it has no single threshold to promise."
    try:
        found = certify(scores, labels, problem, confidence=confidence, candidates=candidates)
    except CannotPromise as refused:
        return None, str(refused)
    return found, "; ".join([found.status, *found.notes])


def write(certificate: Certificate, folder: Path) -> Path:
    """Write the certificate completely or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / FILE, certificate.to_json().encode())
    return folder / FILE


# ------------------------------------------------------------------------------------------------
# The plain dict of a criterion as scalars, for TensorBoard and every other logger.


GOOD = ("held", "slack", "certified", "settled")


def scalars(stats: Mapping[str, Any], prefix: str = "setpoint/") -> dict[str, float]:
    """Numbers by name, from ``criterion.stats()``, ``barrier.report()`` or any such dict.

    Lists become ``name/0``, ``name/1``; what is None or infinite is left out; a status becomes
    ``status``: 1 if all is well, else 0. Words other than a status are left out.

    Args:
        stats: Plain values.
        prefix: Before every name.

    Example:
        >>> scalars({"status": "held", "threshold": [0.5, None], "note": "words"})
        {'setpoint/status': 1.0, 'setpoint/threshold/0': 0.5}
    """
    found: dict[str, float] = {}
    for name, value in stats.items():
        if name == "status":
            found[prefix + name] = float(str(value).startswith(GOOD))
        elif isinstance(value, Mapping):
            found |= scalars(value, f"{prefix}{name}/")
        elif isinstance(value, (list, tuple)):
            found |= scalars({str(i): each for i, each in enumerate(value)}, f"{prefix}{name}/")
        elif isinstance(value, bool) or is_number(value):
            found[prefix + name] = float(value)
    return found
