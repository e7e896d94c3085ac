"""Read the smallest parts of a sentence: numbers, values, counts and rates made of them.

The grammar::

    rate       = "(" count ")" "/" "(" count ")"
    count      = ["-"] part {("+" | "-") part}
    part       = number | [number] ("TP" | "FP" | "FN" | "TN")
    value      = string | ["-"] number | "True" | "False"
    number     = digits ["%"]
"""

from __future__ import annotations

import json

from setpoint.problems.words import Word, Words
from setpoint.rates import FN, FP, ONE, TN, TP, Count, Rate, Value

COUNTS = {"TP": TP, "FP": FP, "FN": FN, "TN": TN}


class Atoms(Words):
    """Reads numbers, values, counts and rates."""

    def number(self) -> float:
        """A number or a percentage."""
        if self.word.kind != "number":
            self.stop("Expected a number, such as 0.01 or 1 %.")
        return self.build(self.at, _number, self.pop().text)

    def text(self) -> str:
        """A name, or a string in quotes."""
        return self.build(self.at, _text, self.pop())

    def value(self) -> Value:
        """What a column of a slice is equal to."""
        word = self.word
        if word.kind == "string":
            return self.text()
        if self.take("True") or self.take("False"):
            return word.text == "True"
        sign = -1 if self.take("-") else 1
        word = self.word
        if word.kind != "number" or word.text.endswith("%"):
            self.stop('A slice is picked by a quoted string or a number, as in group="a".')
        if word.text.isdecimal():
            return sign * self.build(self.at, int, self.pop().text)
        return sign * self.number()

    def counts_ahead(self) -> bool:
        """Whether the parenthesis that opens here holds counts (TP, FP, ...) and not rates."""
        ahead = [word for word in self.words[self.at : self.at + 4] if word.text != "-"]
        if not ahead or ahead[0].text != "(":
            return False
        rest = ahead[2:] if len(ahead) > 1 and ahead[1].kind == "number" else ahead[1:]
        return bool(rest) and rest[0].text in COUNTS

    def rate(self) -> Rate:
        """One count over another."""
        start, top = self.at, self.count()
        self.need("/")
        bottom = self.count()
        return self.build(start, Rate, top, bottom)

    def count(self) -> Count:
        """A weighted sum of TP, FP, FN, TN and the number one, in parentheses."""
        start = self.at
        self.need("(")
        total, minus = Count(), self.take("-")
        while True:
            total = self.build(start, Count.__sub__ if minus else Count.__add__, total, self.part())
            if self.take(")"):
                return total
            minus = self.take("-")
            if not minus:
                self.need("+")

    def part(self) -> Count:
        """One term of a count."""
        known = self.word.kind == "number"
        weight = self.number() if known else 1.0
        if self.word.text in COUNTS:
            return weight * COUNTS[self.pop().text]
        return weight * ONE if known else self.stop("Expected TP, FP, FN or TN.")


def _text(word: Word) -> str:
    return str(json.loads(word.text, strict=False)) if word.kind == "string" else word.text


def _number(text: str) -> float:
    """Read digits; 0.7 % is the float nearest to 0.007, as if it had been written so."""
    digits, _, exponent = text.removesuffix("%").rstrip().lower().partition("e")
    power = int(exponent or 0) - (2 if text.endswith("%") else 0)
    value = float(f"{digits}e{power}")
    if value == float("inf"):
        raise ValueError(f"{text} is too large a number.")
    return value
