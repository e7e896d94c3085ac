"""Who knows one threshold for everyone says so of other problems, with who can."""

from __future__ import annotations

from setpoint.problems.class_checks import refuse_classes
from setpoint.problems.problem import Problem
from setpoint.problems.validation import refuse_queries


def check_plain(problem: object, who: str, of_groups: str) -> None:
    """A problem without groups, classes or queries, or an error.

    Args:
        problem: What was given.
        who: Who refuses.
        of_groups: What to do instead with a problem that looks at groups.
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"{who} takes a Problem, such as fnr_at_fpr(0.01); got {problem!r}.")
    refuse_queries(problem.query, who)
    refuse_classes(problem, who)
    if any(problem.slices):
        raise NotImplementedError(
            f"{who} does not take groups, and `{problem}` looks at some. {of_groups}"
        )
