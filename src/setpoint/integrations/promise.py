"""What the validation scores of a training loop show, and what they allow to be promised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from setpoint.axes.areas import worst
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
    draft = folder / f"{FILE}.part"
    draft.write_text(certificate.to_json(), encoding="utf-8")
    return draft.replace(folder / FILE)
