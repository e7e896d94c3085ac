"""Read expressions: rates, and what arithmetic makes of them.

The grammar (:mod:`setpoint.problems.atoms` has the rest)::

    sum        = ["-"] term {("+" | "-") term}
    term       = number | [number ["*"]] factor ["/" (factor | number)]
    factor     = (name | "f_score" "(" number ")" | "(" count ")" "/" "(" count ")")
                 ["of" classes] ["on" slice]
               | ("abs" | "max" | "min") "(" sum {"," sum} ")" | "(" sum ")"
               | what :mod:`setpoint.problems.class_words` reads
    slice      = column "=" value {"&" column "=" value}
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from setpoint.problems.class_words import CLASS_WORDS, ClassWords
from setpoint.rates import CATALOGUE, Expression, Fold, Value, f_score, maximum, minimum

FOLDS: dict[str, Callable[..., Expression]] = {
    "abs": lambda *parts: Fold("abs", parts),
    "max": maximum,
    "min": minimum,
}
KEYWORDS = ("subject", "to", "over", "in", "at", "and", "with", "on", "per", "of", "or")
NAMES = (*CATALOGUE, "f_score", *FOLDS, *CLASS_WORDS)
DEEPEST = 100
"""How deep parentheses may be nested: twice what any expression needs."""


class Expressions(ClassWords):
    """Reads the expressions of a sentence."""

    depth = 0

    def sum(self) -> Expression:
        """Terms added and subtracted."""
        start = self.at
        total = -self.term() if self.take("-") else self.term()
        while self.next_is("+") or self.next_is("-"):
            combine = operator.sub if self.pop().text == "-" else operator.add
            total = self.build(start, combine, total, self.term())
        return maximum(total)

    def term(self) -> Expression | float:
        """A number, or a factor with a weight and what it is divided by."""
        start, weight = self.at, 1.0
        if self.word.kind == "number":
            weight = self.number()
            alone = self.word.kind != "name" or self.word.text in KEYWORDS
            if not self.take("*") and alone and not self.next_is("("):
                return weight
        value = self.factor()
        if self.take("/"):
            by = self.number() if self.word.kind == "number" else self.factor()
            value = self.build(start, operator.truediv, value, by)
        return value if weight == 1 else self.build(start, operator.mul, weight, value)

    def factor(self) -> Expression:
        """A rate, a fold, or a sum in parentheses."""
        start, word = self.at, self.word
        if self.counts_ahead():
            return self.sliced(self.rate())
        if self.take("f_score"):
            self.need("(")
            beta = self.number()
            self.need(")")
            return self.sliced(self.build(start, f_score, beta))
        if word.kind == "name" and word.text in CATALOGUE:
            self.pop()
            return self.sliced(CATALOGUE[word.text])
        if word.text in CLASS_WORDS:
            return self.sliced(self.about_classes())
        if word.text not in (*FOLDS, "("):
            self.stop(f"Known rates: {', '.join(CATALOGUE)}.", among=NAMES)
        return self.nested()

    def nested(self) -> Expression:
        """A fold, or a sum in parentheses."""
        start = self.at
        self.depth += 1
        if self.depth > DEEPEST:
            self.stop("The sentence is nested too deeply.")
        kind = "" if self.next_is("(") else self.pop().text
        self.need("(")
        parts = [self.sum()]
        while kind and self.take(","):
            parts.append(self.sum())
        self.need(")")
        self.depth -= 1
        return self.build(start, FOLDS[kind], *parts) if kind else parts[0]

    def sliced(self, expression: Expression) -> Expression:
        """``expression of class or ... on column=value & ...``."""
        expression = self.of_class(expression)
        more = self.take("on")
        while more:
            start, word = self.at, self.word
            if word.kind not in ("name", "string"):
                self.stop('A slice reads like: on group="a".')
            column = self.text()
            self.need("=")
            expression = self.build(start, _narrow, expression, column, self.value())
            more = self.take("&")
        return expression


def _narrow(expression: Expression, column: str, value: Value) -> Expression:
    return expression.on(**{column: value})
