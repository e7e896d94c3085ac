"""Read a sentence into a problem: the inverse of ``str(problem)``.

The grammar, in the words people use::

    problem    = ("minimize" | "maximize") sum
                 [ "subject to" target {"and" target} | "over" sum "in" "[" level "," level "]" ]
                 [ "with" (number ("threshold" | "thresholds") | "thresholds per group") ]
                 [ "per" column ]
    target     = sum ("<=" | ">=" | "at") level
    level      = ["-"] number

    sum        = ["-"] term {("+" | "-") term}
    term       = number | [number ["*"]] factor ["/" (factor | number)]
    factor     = (name | "f_score" "(" number ")" | rate | classes_of) ["of" classes] ["on" slice]
               | ("abs" | "max" | "min") "(" sum {"," sum} ")" | "(" sum ")"
    slice      = column "=" value {"&" column "=" value}
    classes    = class {"or" class}
    class      = string | digits
    classes_of = ("macro" | "lowest" | "highest") "(" sum ")" | "top_k" "(" digits ")"
               | "cost" "(" "[" row {"," row} "]" ")" | "auc_mu" | "one_vs_all_auc"
    row        = "[" level {"," level} "]"

    rate       = "(" count ")" "/" "(" count ")"
    count      = ["-"] part {("+" | "-") part}
    part       = number | [number] ("TP" | "FP" | "FN" | "TN")
    value      = string | ["-"] number | "True" | "False"
    number     = digits ["%"]
"""

from __future__ import annotations

import difflib
import json
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from setpoint.axes.specification import PER_GROUP, Specification
from setpoint.problems.validation import (
    check_objective,
    check_query,
    check_targets,
    count_thresholds,
    specified,
)
from setpoint.rates import (
    AREAS,
    CATALOGUE,
    FN,
    FP,
    ONE,
    TN,
    TP,
    Across,
    Bound,
    ClassArea,
    ClassName,
    Cost,
    Count,
    Expression,
    Fold,
    Range,
    Rate,
    Setpoint,
    Target,
    TopK,
    Value,
    f_score,
    maximum,
    minimum,
)

T = TypeVar("T")
_WORDS = re.compile(
    r"""(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:\s*%)?)
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<name>[^\W\d]\w*)
      | (?P<sign><=|>=|[-+*/(),=&\[\]])""",
    re.VERBOSE,
)
_HINTS = {
    '"': "This quote is never closed.",
    "'": "Strings stand in double quotes.",
    "<": "Bounds are written <= and >=.",
    ">": "Bounds are written <= and >=.",
    "%": "A percentage follows a number, as in 1 %.",
}
_COUNTS = {"TP": TP, "FP": FP, "FN": FN, "TN": TN}
_FOLDS: dict[str, Callable[..., Expression]] = {
    "abs": lambda *parts: Fold("abs", parts),
    "max": maximum,
    "min": minimum,
}
_OF_CLASSES = ("macro", "lowest", "highest", "top_k", "cost", *AREAS)
_NAMES = (*CATALOGUE, "f_score", *_FOLDS, *_OF_CLASSES)
_KEYWORDS = ("subject", "to", "over", "in", "at", "and", "with", "on", "per", "of", "or")
_REST = ("subject", "over", "and", "with", "per")
_DEEPEST = 100
"""How deep parentheses may be nested: twice what any expression needs."""


def parse(sentence: str) -> Specification:
    """The problem that ``sentence`` describes, or an error that points at the word it stops at."""
    if not isinstance(sentence, str):
        raise TypeError(f"Problem.parse reads a sentence; got {sentence!r}.")
    return _Sentence(sentence).problem()


@dataclass(frozen=True)
class _Word:
    """One word of the sentence and where it stands."""

    kind: str
    text: str
    start: int


class _Words:
    """A sentence read word by word."""

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence
        self.words = [*self._split(), _Word("end", "", len(sentence.rstrip()))]
        self.at = 0

    def _split(self) -> Iterable[_Word]:
        at = 0
        while at < len(self.sentence):
            if self.sentence[at].isspace():
                at += 1
                continue
            match = _WORDS.match(self.sentence, at)
            if match is None:
                found = self.sentence[at]
                why = _HINTS.get(found, "No sentence needs this character.")
                self.point(at, at + 1, f"Cannot read {found!r}. {why}")
            yield _Word(str(match.lastgroup), match.group(), at)
            at = match.end()

    @property
    def word(self) -> _Word:
        """The next word."""
        return self.words[self.at]

    def pop(self) -> _Word:
        """Take the next word, whatever it is."""
        word = self.word
        self.at += word.kind != "end"
        return word

    def next_is(self, *texts: str) -> bool:
        """Whether these words come next."""
        return [word.text for word in self.words[self.at : self.at + len(texts)]] == list(texts)

    def take(self, *texts: str) -> bool:
        """Take these words if they come next."""
        found = self.next_is(*texts)
        self.at += len(texts) if found else 0
        return found

    def need(self, *texts: str) -> None:
        """Take these words, or stop."""
        for text in texts:
            if not self.take(text):
                self.stop(f"Expected {text!r}.")

    def stop(self, why: str, *, among: Iterable[str] = ()) -> NoReturn:
        """Refuse the next word; if it looks like one of ``among``, say so instead of ``why``."""
        word = self.word
        close = difflib.get_close_matches(word.text.lower(), list(among), n=1)
        why = f"Did you mean {close[0]!r}?" if close else why
        found = f"Cannot read {word.text!r}." if word.text else "The sentence ends too early."
        self.point(word.start, word.start + len(word.text), f"{found} {why}")

    def build(self, start: int, make: Callable[..., T], *parts: Any) -> T:
        """Make something of the words from ``start`` on; if it is refused, point at them."""
        try:
            return make(*parts)
        except (ValueError, TypeError, ArithmeticError) as refused:
            first, last = self.words[start], self.words[max(self.at - 1, start)]
            self.point(first.start, last.start + len(last.text), str(refused))

    def point(self, start: int, end: int, why: str) -> NoReturn:
        """Raise an error with carets under the given part of the sentence."""
        line = re.sub(r"\s", " ", self.sentence)
        marks = " " * start + "^" * max(end - start, 1)
        raise ValueError(f"{why}\n  {line}\n  {marks}")


class _Sentence(_Words):
    """Reads a sentence by recursive descent, one method for each rule of the grammar."""

    depth = 0

    def problem(self) -> Specification:
        """The whole sentence."""
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
            alone = self.word.kind != "name" or self.word.text in _KEYWORDS
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
        if word.text in _OF_CLASSES:
            return self.sliced(self.about_classes())
        if word.text not in (*_FOLDS, "("):
            self.stop(f"Known rates: {', '.join(CATALOGUE)}.", among=_NAMES)
        return self.nested()

    def nested(self) -> Expression:
        """A fold, or a sum in parentheses."""
        start = self.at
        self.depth += 1
        if self.depth > _DEEPEST:
            self.stop("The sentence is nested too deeply.")
        kind = "" if self.next_is("(") else self.pop().text
        self.need("(")
        parts = [self.sum()]
        while kind and self.take(","):
            parts.append(self.sum())
        self.need(")")
        self.depth -= 1
        return self.build(start, _FOLDS[kind], *parts) if kind else parts[0]

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
                row.append(self.level())
            self.need("]")
            rows.append(tuple(row))
        self.need("]")
        return tuple(rows)

    def counts_ahead(self) -> bool:
        """Whether the parenthesis that opens here holds counts (TP, FP, ...) and not rates."""
        ahead = [word for word in self.words[self.at : self.at + 4] if word.text != "-"]
        if not ahead or ahead[0].text != "(":
            return False
        rest = ahead[2:] if len(ahead) > 1 and ahead[1].kind == "number" else ahead[1:]
        return bool(rest) and rest[0].text in _COUNTS

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
        if self.word.text in _COUNTS:
            return weight * _COUNTS[self.pop().text]
        return weight * ONE if known else self.stop("Expected TP, FP, FN or TN.")

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

    def text(self) -> str:
        """A name, or a string in quotes."""
        return self.build(self.at, _text, self.pop())

    def number(self) -> float:
        """A number or a percentage."""
        if self.word.kind != "number":
            self.stop("Expected a number, such as 0.01 or 1 %.")
        return self.build(self.at, _number, self.pop().text)


def _narrow(expression: Expression, column: str, value: Value) -> Expression:
    return expression.on(**{column: value})


def _text(word: _Word) -> str:
    return str(json.loads(word.text, strict=False)) if word.kind == "string" else word.text


def _number(text: str) -> float:
    """Read digits; 0.7 % is the float nearest to 0.007, as if it had been written so."""
    digits, _, exponent = text.removesuffix("%").rstrip().lower().partition("e")
    power = int(exponent or 0) - (2 if text.endswith("%") else 0)
    value = float(f"{digits}e{power}")
    if value == float("inf"):
        raise ValueError(f"{text} is too large a number.")
    return value
