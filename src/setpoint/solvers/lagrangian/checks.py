"""What multipliers can train for, and what to say of the rest."""

from __future__ import annotations

from setpoint.problems import PER_GROUP, Problem, refuse_classes, refuse_queries
from setpoint.steps import Hard, Step


def check(problem: object, step: object, regret: object, proxy: object) -> None:
    """Raise for what :class:`Lagrangian` cannot express."""
    check_shared(problem, "Lagrangian")
    if not isinstance(step, Step) or isinstance(step, Hard):
        raise TypeError(f"step must be a soft step such as Sigmoid(); got {step!r}.")
    if regret not in ("external", "swap"):
        raise ValueError(f"regret must be 'external' or 'swap'; got {regret!r}.")
    if regret == "swap" and not proxy:
        raise ValueError(
            'regret="swap" answers true counts: set proxy=True. With soft counts alone '
            "projected ascent is all that is needed."
        )


def check_shared(problem: object, who: str) -> Problem:
    """A problem whose thresholds are the same for everyone, or an error."""
    if not isinstance(problem, Problem):
        raise TypeError(
            f"{who} takes a Problem, such as Problem(minimize=fnr, subject_to=fpr <= 0.01); "
            f"got {problem!r}."
        )
    refuse_queries(problem.query, who)
    refuse_classes(problem, who)
    if problem.thresholds == PER_GROUP:
        raise NotImplementedError(
            f"{who} cuts everyone at the same threshold; `{problem}` has one per group. "
            "Implicit trains those; or bound the groups' rates at a shared threshold."
        )
    return problem
