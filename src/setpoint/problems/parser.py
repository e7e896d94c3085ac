r"""Read a sentence back into a problem.

The grammar, in the words people use::

    problem    = ("minimize" | "maximize") sum
                 [ "subject to" target {"and" target} | "over" sum "in" "[" number "," number "]" ]
                 [ "with" (number "thresholds" | "thresholds per group") ]
    target     = sum ("<=" | ">=" | "at") number
    sum        = ["-"] term {("+" | "-") term}
    term       = number | [number] factor ["/" (factor | number)]
    factor     = (name | "f_score" "(" number ")" | "(" count ")" "/" "(" count ")") ["on" slice]
               | ("abs" | "max" | "min") "(" sum {"," sum} ")" | "(" sum ")"
    count      = ["-"] [number] TP {("+" | "-") [number] (TP | FP | FN | TN)}
    slice      = column "=" value {"&" column "=" value}
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from setpoint.problems.problem import PER_GROUP, Problem
from setpoint.rates import CATALOGUE, FN, FP, ONE, TN, TP, f_score, maximum, minimum
from setpoint.rates import Count, Expression, Rate, Target, Value

COUNTS = {"TP": TP, "FP": FP, "FN": FN, "TN": TN}
FOLDS: dict[str, Callable[..., Expression]] = {"abs": abs, "max": maximum, "min": minimum}
_WORDS = re.compile(
    r"""(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s?%?)
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<name>[^\W\d]\w*)
      | (?P<sign><=|>=|[-+*/(),=&\[\]])""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Word:
    """One word of the sentence and where it stands."""

    kind: str
    text: str
    start: int


def parse(sentence: str) -> Problem:
    """The problem that ``sentence`` describes, or an error that points at the word it stops at."""
    if not isinstance(sentence, str):
        raise TypeError(f"Problem.parse reads a sentence; got {sentence!r}.")
    try:
        return _Reader(sentence).problem()
    except RecursionError:
        raise ValueError("The sentence is nested too deeply to read.") from None


def _split(sentence: str) -> list[Word]:
    words, at = [], 0
    while at < len(sentence):
        if sentence[at].isspace():
            at += 1
            continue
        match = _WORDS.match(sentence, at)
        if match is None:
            _stop(sentence, at, 1, f"I do not know the character {sentence[at]!r}.")
        words.append(Word(str(match.lastgroup), match.group().strip(), at))
        at = match.end()
    return [*words, Word("end", "", len(sentence))]


def _stop(sentence: str, start: int, length: int, why: str) -> NoReturn:
    marks = " " * start + "^" * max(length, 1)
    one_line = re.sub(r"\s", " ", sentence)
    raise ValueError(f"{why}\n  {one_line}\n  {marks}")


class _Reader:
    def __init__(self, sentence: str) -> None:
        self.sentence = sentence
        self.words = _split(sentence)
        self.at = 0

    # ---- words -------------------------------------------------------------------------------
    @property
    def word(self) -> Word:
        return self.words[self.at]

    def next_is(self, *texts: str) -> bool:
        """Whether these words come next (a quoted string is never one of them)."""
        ahead = self.words[self.at : self.at + len(texts)]
        return [w.text for w in ahead if w.kind != "string"] == list(texts)

    def take(self, *texts: str) -> bool:
        found = self.next_is(*texts)
        self.at += len(texts) if found else 0
        return found

    def need(self, *texts: str) -> None:
        if not self.take(*texts):
            self.stop(f"Expected {' '.join(texts)!r}.")

    def stop(self, why: str) -> NoReturn:
        word = self.word
        found = f"Cannot read {word.text!r}." if word.text else "The sentence ends too early."
        _stop(self.sentence, word.start, len(word.text), f"{found} {why}")

    def guarded(self, start: int, build: Callable[[], Any]) -> Any:
        """Build a value; if it is refused, point at the words it was made of."""
        try:
            return build()
        except (ValueError, TypeError, ZeroDivisionError) as refused:
            first, last = self.words[start], self.words[max(self.at - 1, start)]
            length = last.start + len(last.text) - first.start
            _stop(self.sentence, first.start, length, str(refused))

    # ---- the grammar -------------------------------------------------------------------------
    def problem(self) -> Problem:
        sense = self.word.text
        if not (self.take("minimize") or self.take("maximize")):
            self.stop("A problem starts with 'minimize' or 'maximize'.")
        objective = self.sum()
        targets: list[Target] = []
        if self.take("subject", "to"):
            targets.append(self.target())
            while self.take("and"):
                targets.append(self.target())
        elif self.take("over"):
            targets.append(self.range())
        thresholds = self.thresholds()
        if self.word.kind != "end":
            self.stop("Expected 'subject to', 'over', 'and', 'with', an operator, or the end.")
        return self.guarded(
            0,
            lambda: Problem(**{sense: objective}, subject_to=targets, thresholds=thresholds),
        )

    def target(self) -> Target:
        start, left = self.at, self.sum()
        for sign, make in (("<=", left.__le__), (">=", left.__ge__), ("at", left.at)):
            if self.take(sign):
                level = self.signed_number()
                return self.guarded(start, lambda make=make, level=level: make(level))
        self.stop("A target needs '<=', '>=' or 'at' and a number, as in 'fpr <= 0.01'.")

    def range(self) -> Target:
        start, swept = self.at, self.sum()
        self.need("in")
        self.need("[")
        low = self.signed_number()
        self.need(",")
        high = self.signed_number()
        self.need("]")
        return self.guarded(start, lambda: swept.over(low, high))

    def thresholds(self) -> int | str | None:
        if not self.take("with"):
            return None
        if self.take("thresholds", "per", "group"):
            return PER_GROUP
        count = self.number()
        self.need("thresholds")
        return count  # type: ignore[return-value]

    def sum(self) -> Expression:
        start = self.at
        total = -self.term() if self.take("-") else self.term()
        while self.next_is("+") or self.next_is("-"):
            minus = self.take("-") or not self.take("+")
            term = self.term()
            total = self.guarded(start, lambda t=total, m=minus, e=term: t - e if m else t + e)
        return total if isinstance(total, Expression) else maximum(total)

    def term(self) -> Any:
        start, weight = self.at, 1.0
        if self.word.kind == "number":
            weight = self.number()
            starred = self.take("*")
            if not (starred or self.word.kind == "name" or self.next_is("(")) or self.is_keyword():
                return weight
        value = self.factor()
        if self.take("/"):
            by = self.number() if self.word.kind == "number" else self.factor()
            value = self.guarded(start, lambda: value / by)
        return self.guarded(start, lambda: weight * value if weight != 1 else value)

    def is_keyword(self) -> bool:
        return self.word.text in {"subject", "over", "and", "at", "with", "in"}

    def factor(self) -> Expression:
        if self.counts_ahead():
            return self.sliced(self.rate())
        if self.take("("):
            inner = self.sum()
            self.need(")")
            return inner
        word = self.word
        if word.kind == "name" and word.text in FOLDS:
            return self.fold()
        if self.take("f_score"):
            self.need("(")
            start, beta = self.at, self.number()
            rate = self.guarded(start, lambda: f_score(beta))
            self.need(")")
            return self.sliced(rate)
        if word.kind == "name" and word.text in CATALOGUE:
            self.at += 1
            return self.sliced(CATALOGUE[word.text])
        names = [*CATALOGUE, "f_score", *FOLDS]
        close = difflib.get_close_matches(word.text, names, n=1)
        hint = f"Did you mean {close[0]!r}?" if close else f"Known rates: {', '.join(CATALOGUE)}."
        self.stop(hint)

    def fold(self) -> Expression:
        start = self.at
        kind = self.words[self.at].text
        self.at += 1
        self.need("(")
        parts = [self.sum()]
        while self.take(","):
            parts.append(self.sum())
        self.need(")")
        if kind == "abs" and len(parts) > 1:
            self.guarded(start, lambda: _refuse("abs takes one expression."))
        return FOLDS[kind](*parts)

    def sliced(self, expression: Expression) -> Expression:
        if not self.take("on"):
            return expression
        while True:
            start, word = self.at, self.word
            if word.kind not in ("name", "string"):
                self.stop('A slice reads like: on group="a".')
            self.at += 1
            column = self.guarded(start, lambda w=word: _text(w))
            self.need("=")
            value = self.value()
            expression = self.guarded(start, lambda e=expression, c=column, v=value: e.on(**{c: v}))
            if not self.take("&"):
                return expression

    def value(self) -> Value:
        start, word = self.at, self.word
        if word.kind == "string" or word.text in {"True", "False"}:
            self.at += 1
            return self.guarded(start, lambda: _text(word) if word.kind == "string" else word.text == "True")  # type: ignore[no-any-return]
        sign = -1 if self.take("-") else 1
        if self.word.kind != "number" or self.word.text.endswith("%"):
            self.stop('A slice is picked by a quoted string or a number, as in group="a".')
        text = self.word.text
        self.at += 1
        return sign * (int(text) if text.isdecimal() else float(text))

    # ---- counts and numbers ------------------------------------------------------------------
    def counts_ahead(self) -> bool:
        """Whether the parenthesis that opens here holds counts (TP, FP, ...) and not rates."""
        at = self.at + 1
        if self.word.text != "(":
            return False
        at += self.words[at].text == "-"
        at += self.words[at].kind == "number"
        return self.words[min(at, len(self.words) - 1)].text in COUNTS

    def rate(self) -> Rate:
        start, top = self.at, self.count()
        self.need("/")
        bottom = self.count()
        return self.guarded(start, lambda: Rate(top, bottom))  # type: ignore[no-any-return]

    def count(self) -> Count:
        self.need("(")
        total = Count()
        sign = -1.0 if self.take("-") else 1.0
        while True:
            weight, known = 1.0, self.word.kind == "number"
            if known:
                weight = self.number()
            if self.word.text in COUNTS:
                unit = COUNTS[self.word.text]
                self.at += 1
            elif known:
                unit = ONE
            else:
                self.stop("Expected TP, FP, FN or TN.")
            total = total + sign * weight * unit
            if self.take(")"):
                return total
            sign = -1.0 if self.take("-") else 1.0
            if sign > 0:
                self.need("+")

    def signed_number(self) -> float:
        return -self.number() if self.take("-") else self.number()

    def number(self) -> float:
        if self.word.kind != "number":
            self.stop("Expected a number, such as 0.01 or 1 %.")
        text = self.word.text
        self.at += 1
        return float(text.rstrip("% ")) / 100 if text.endswith("%") else float(text)


def _text(word: Word) -> str:
    return str(json.loads(word.text, strict=False)) if word.kind == "string" else word.text


def _refuse(why: str) -> NoReturn:
    raise ValueError(why)
