"""Read a sentence back into a problem.

The grammar, in the words people use (:mod:`setpoint.problems.expressions` has the rest)::

    problem    = ("minimize" | "maximize") sum
                 [ "subject to" target {"and" target} | "over" sum "in" "[" level "," level "]" ]
                 [ "with" (number ("threshold" | "thresholds") | "thresholds per group") ]
                 [ "per" column ]
    target     = sum ("<=" | ">=" | "at") level
    level      = ["-"] number
"""

from __future__ import annotations

from setpoint.axes.specification import PER_GROUP, Specification
from setpoint.problems.expressions import Expressions
from setpoint.problems.validation import (
    check_objective,
    check_query,
    check_targets,
    count_thresholds,
    specified,
)
from setpoint.rates import Bound, Range, Setpoint, Target

_REST = ("subject", "over", "and", "with", "per")


def parse(sentence: str) -> Specification:
    """The problem that ``sentence`` describes, or an error that points at the word it stops at."""
    if not isinstance(sentence, str):
        raise TypeError(f"Problem.parse reads a sentence; got {sentence!r}.")
    return _Sentence(sentence).problem()


class _Sentence(Expressions):
    def problem(self) -> Specification:
        word = self.word.text
        if not (self.take("minimize") or self.take("maximize")):
            why = "A problem starts with 'minimize' or 'maximize'."
            self.stop(why, among=("minimize", "maximize"))
        start, objective = self.at, self.sum()
        self.build(start, check_objective, objective, word)
        targets = self.targets()
        thresholds = self.thresholds(targets)
        problem = self.per(specified(objective, word == "maximize", targets, thresholds))
        if self.word.kind != "end":
            self.stop(f"Expected one of {', '.join(_REST)}, an operator or the end.", among=_REST)
        return problem

    def per(self, problem: Specification) -> Specification:
        """The same problem in every query, if the sentence says so."""
        start = self.at
        if not self.take("per"):
            return problem
        if self.word.kind not in ("name", "string"):
            self.stop("Expected the name of a column of queries, as in 'per query'.")
        column = self.text()
        self.build(start, check_query, column, problem.query, problem.kind)
        if self.next_is("per"):
            self.stop("A problem is asked of one column of queries.")
        return problem.changed(query=column)

    def targets(self) -> tuple[Target, ...]:
        """What the objective is subject to."""
        if self.take("over"):
            return (self.range(),)
        if not self.next_is("subject"):
            return ()
        self.need("subject", "to")
        start, found = self.at, [self.target()]
        while self.take("and"):
            found.append(self.target())
        # One threshold per group may be announced only after the targets it makes possible.
        later = PER_GROUP if self.next_is("with", "thresholds", "per", "group") else None
        self.build(start, check_targets, tuple(found), later)
        return tuple(found)

    def target(self) -> Target:
        """A bound or a setpoint."""
        start, left = self.at, self.sum()
        if self.take("at"):
            return self.build(start, Setpoint, left, self.level())
        if self.next_is("<=") or self.next_is(">="):
            return self.build(start, Bound, left, self.pop().text, self.level())
        return self.stop("A target needs '<=', '>=' or 'at' and a number, as in 'fpr <= 0.01'.")

    def range(self) -> Range:
        """A rate and the range it is swept over."""
        start, swept = self.at, self.sum()
        self.need("in", "[")
        low = self.level()
        self.need(",")
        high = self.level()
        self.need("]")
        return self.build(start, Range, swept, low, high)

    def level(self) -> float:
        """A number, perhaps negative."""
        return -self.number() if self.take("-") else self.number()

    def thresholds(self, targets: tuple[Target, ...]) -> int | str | None:
        """How many thresholds there are, if the sentence says so."""
        start = self.at
        if not self.take("with"):
            return None
        given: float | str = PER_GROUP
        if self.word.kind == "number":
            given = self.number()
            if not self.take("threshold"):
                self.need("thresholds")
        else:
            self.need("thresholds", "per", "group")
        return self.build(start, count_thresholds, given, targets)
