"""Read what a sentence says about classes.

The grammar::

    classes    = class {"or" class}
    class      = string | digits
    about      = ("macro" | "lowest" | "highest") "(" sum ")" | "top_k" "(" digits ")"
               | "cost" "(" "[" row {"," row} "]" ")" | "auc_mu" | "one_vs_all_auc"
    row        = "[" ["-"] number {"," ["-"] number} "]"
"""

from __future__ import annotations

from setpoint.problems.atoms import Atoms
from setpoint.rates import AREAS, Across, ClassArea, ClassName, Cost, Expression, TopK

ACROSS = ("macro", "lowest", "highest")
CLASS_WORDS = (*ACROSS, "top_k", "cost", *AREAS)


class ClassWords(Atoms):
    """Reads classes, and expressions that are about all of them."""

    def sum(self) -> Expression:
        """What stands in parentheses; expressions know how to read it."""
        raise NotImplementedError

    def of_class(self, expression: Expression) -> Expression:
        """``expression of class or ...``."""
        start = self.at
        if not self.take("of"):
            return expression
        classes = [self.class_name()]
        while self.take("or"):
            classes.append(self.class_name())
        made: Expression = self.build(start, expression.of, *classes)
        return made

    def class_name(self) -> ClassName:
        """A class by its name in quotes, or by its number."""
        if self.word.kind == "string":
            return self.text()
        if not self.word.text.isdecimal():
            self.stop('A class is called by its name in quotes or its number, as in of "cat".')
        return self.build(self.at, int, self.pop().text)

    def about_classes(self) -> Expression:
        """A mean, lowest or highest over classes, a top-k share, a mean cost or an area."""
        start, word = self.at, self.pop().text
        if word in AREAS:
            return ClassArea(word)
        self.need("(")
        if word == "top_k":
            made: Expression = self.build(start, TopK, self.number())
        elif word == "cost":
            made = self.build(start, Cost, self.rows())
        else:
            made = self.build(start, Across, word, self.sum())
        self.need(")")
        return made

    def rows(self) -> tuple[tuple[float, ...], ...]:
        """``[[0, 1], [5, 0]]``."""
        rows: list[tuple[float, ...]] = []
        self.need("[")
        while not rows or self.take(","):
            self.need("[")
            row: list[float] = []
            while not row or self.take(","):
                row.append(-self.number() if self.take("-") else self.number())
            self.need("]")
            rows.append(tuple(row))
        self.need("]")
        return tuple(rows)
