"""The grammar of sentences about problems, and its reader: the inverse of ``str(problem)``.

It is in the words people use. Case does not matter; other words for the same thing are in
:mod:`setpoint.problems.vocabulary`::

    capacity   = "alerts" "<=" number "per" period "on" number "of" periods     (certificates)
    problem    = [("minimize" | "maximize")] (sum | goal [arguments])
                 [ ("subject to" | "with" | "at") targets
                 | "over" sum "in" "[" level "," level "]" ]
                 [ "with" (number ("threshold" | "thresholds") | "thresholds per group") ]
                 [ "per" column ]
    targets    = target {("and" | ",") target}
    target     = sum ("<=" | ">=" | "at" | "=") level | ["<=" | ">="] level factor
               | fairness arguments
    level      = ["-"] number
    arguments  = "(" argument {"," argument} ")"
    argument   = [column "="] (sum | value | "[" value {"," value} "]")

    sum        = ["-"] term {("+" | "-") term}
    term       = number | [number ["*"]] factor ["/" (factor | number)]
    factor     = (name | "f_score" "(" number ")" | rate | cost | classes_of)
                 ["of" classes] ["on" slice]
               | ("gap" | "ratio" | "largest" | "smallest") arguments
               | ("abs" | "max" | "min") "(" sum {"," sum} ")" | "(" sum ")"
    slice      = column "=" value {"&" column "=" value}
    classes    = class {"or" class}
    class      = string | digits
    classes_of = ("macro" | "lowest" | "highest") "(" sum ")" | "top_k" "(" digits ")"
               | "cost" "(" "[" row {"," row} "]" ")" | "auc_mu" | "one_vs_all_auc"
    row        = "[" level {"," level} "]"
    cost       = "cost" "(" "miss" "=" number "," "false_alarm" "=" number
                 ["," "amounts" "=" column] ")"

    rate       = "(" count ")" "/" "(" count ")"
    count      = ["-"] part {("+" | "-") part}
    part       = number | [number] ("TP" | "FP" | "FN" | "TN")
    value      = string | word | ["-"] number | "True" | "False"
    number     = digits ["%"]
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any

from setpoint.axes.specification import PER_GROUP, Specification
from setpoint.problems.capacity import BY_TIME, PERIOD_WORDS, Capacity
from setpoint.problems.validation import (
    check_objective,
    check_query,
    check_targets,
    count_thresholds,
    more_is_better,
    specified,
)
from setpoint.problems.vocabulary import EXPRESSIONS, FOLDS, GOALS, TARGETS
from setpoint.problems.words import Words
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
    Range,
    Rate,
    Setpoint,
    Target,
    TopK,
    Value,
    alerts,
    cost,
    f_score,
    maximum,
)

_COUNT_NAMES = {"tp": TP, "fp": FP, "fn": FN, "tn": TN}
_OF_CLASSES = ("macro", "lowest", "highest", "top_k", "cost", *AREAS)
_NAMES = (*CATALOGUE, "f_score", *FOLDS, *_OF_CLASSES, *EXPRESSIONS)
_KNOWN = f"Known rates: {', '.join(CATALOGUE)}."
_VERBS = {"minimize": False, "maximize": True}
_KEYWORDS = ("subject", "to", "over", "in", "at", "and", "with", "on", "per", "of", "or")
_REST = ("subject", "over", "with", "per")
_DEEPEST = 100
"""How deep parentheses may be nested: twice what any expression needs."""


class Sentence(Words):
    """Reads a sentence by recursive descent, one method for each rule of the grammar."""

    depth = 0

    def problem(self) -> Specification:
        """The whole sentence."""
        asked = self.verb()
        if self.word.key in GOALS:
            problem = self.goal(asked)
        else:
            if asked is None and self.word.kind == "end":
                self.stop("A problem starts with 'minimize' or 'maximize'.")
            start, objective = (
                self.at,
                self.sum(among=(*_VERBS, *GOALS) if asked is None else GOALS),
            )
            self.build(start, check_objective, objective, "maximize" if asked else "minimize")
            targets = self.targets()
            if asked is None:
                asked = self.usual_verb(start, objective, targets)
            problem = specified(objective, asked, targets, self.thresholds(targets))
        problem = self.per(problem)
        if self.word.kind != "end":
            rest = (*_REST, "and") if problem.subject_to else _REST
            self.stop(f"Expected one of {', '.join(rest)}, an operator or the end.", among=rest)
        return problem

    def verb_ahead(self) -> bool:
        """Whether the sentence goes on with what is to be done; "max recall" says it, too."""
        short = self.word.key in ("max", "min") and self.words[self.at + 1].key != "("
        return short or self.word.key in _VERBS

    def verb(self) -> bool | None:
        """Whether something is to be maximized; None if the sentence does not say."""
        return self.pop().key.startswith("max") if self.verb_ahead() else None

    def usual_verb(self, start: int, objective: Expression, targets: tuple[Target, ...]) -> bool:
        """Whether more of an objective without a verb is better.

        Refused if that depends, and for a rate alone that one threshold at the end makes perfect.
        """
        best = more_is_better(objective)
        if best is None or not (targets or objective.direction is None):
            first = self.words[start]
            why = f"Cannot read {first.text!r:.80}. A problem starts with 'minimize' or 'maximize'."
            self.point(first.start, first.start + len(first.text), why, _VERBS)
        return best

    def goal(self, maximize: bool | None) -> Specification:
        """A problem by its name."""
        start, name = self.at, self.pop().key
        args, named = self.arguments() if self.next_is("(") else ([], {})
        problem: Specification = self.build(start, GOALS[name], *args, **named)
        if maximize is not None and maximize != problem.maximize:
            verb = "maximized" if problem.maximize else "minimized"
            self.point(0, self.words[start].start, f"{name} is {verb}.", _VERBS)
        return problem

    def only_targets(self) -> tuple[Target, ...]:
        """A sentence of targets."""
        found = self.several_targets()
        if self.word.key == "with":
            if any(word.key == "confidence" for word in self.words[self.at :]):
                self.stop("The confidence is an option: confidence=0.95, or --confidence 0.95.")
            why = "Bounds alone say nothing of thresholds: write 'minimize error subject to' first."
            self.stop(why)
        if self.next_is("per") and found[-1].expression == alerts:
            self.stop("A capacity, for certificates, reads: alerts <= 200 per day on 95 % of days.")
        if self.word.kind != "end":
            self.stop("Expected 'and' or the end.", among=("and",))
        return found

    def capacity(self) -> Capacity:
        """``alerts <= 200 per day on 95 % of days``."""
        self.need("alerts", "<=")
        start, alerts = self.at, self.number()
        self.need("per")
        period = self.text()
        self.need("on")
        part = self.number()
        self.need("of")
        if self.word.key not in (period, f"{period}s"):
            self.stop(f"Expected '{period}s', as in 'on 95 % of {period}s'.")
        self.pop()
        if self.word.kind != "end":
            self.stop("A capacity stands alone: nothing follows it.")
        number = int(alerts) if alerts == int(alerts) else alerts
        return self.build(start, Capacity, number, period, part)

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        """``(0.02, sex=[f, m])``: what a function is called with."""
        args: list[Any] = []
        named: dict[str, Any] = {}
        self.need("(")
        while not self.take(")"):
            if args or named:
                self.need(",")
            if self.words[min(self.at + 1, len(self.words) - 1)].key == "=":
                name = self.text()
                self.need("=")
                named[name] = self.argument()
            elif self.word.kind == "number" or self.next_is("-"):
                args.append(self.level())
            else:
                args.append(self.sum())
        return args, named

    def argument(self) -> Any:
        """A value, or a list of values in brackets or parentheses."""
        opened = self.word.key
        if not (self.take("[") or self.take("(")):
            return self.item()
        items = [self.item()]
        while self.take(","):
            items.append(self.item())
        self.need("]" if opened == "[" else ")")
        return items

    def item(self) -> Value:
        """A number, perhaps a percentage, or a value of a column."""
        if self.word.kind == "number" and self.word.key.endswith("%"):
            return self.number()
        return self.value()

    def per(self, problem: Specification) -> Specification:
        """The same problem in every query, if the sentence says so."""
        start = self.at
        if not self.take("per"):
            return problem
        if self.word.kind not in ("name", "string"):
            self.stop("Expected the name of a column of queries, as in 'per query'.")
        by_time = any(word.key == "alerts" for word in self.words)
        if by_time and self.word.key in PERIOD_WORDS:
            self.stop(BY_TIME.format(period=self.word.key))
        column = self.text()
        self.build(start, check_query, column, problem.query, problem.kind)
        if self.next_is("per"):
            self.stop("A problem is asked of one column of queries.")
        return problem.changed(query=column)

    def targets(self) -> tuple[Target, ...]:
        """What the objective is subject to."""
        if self.take("over"):
            return (self.range(),)
        with_targets = self.next_is("with") and self.words[self.at + 1].key != "thresholds"
        if with_targets and self.words[self.at + 1].kind != "number":
            self.need("with")
        elif self.next_is("subject"):
            self.need("subject", "to")
        elif not self.take("at"):
            return ()
        elif self.word.kind == "number":
            return (self.level_first(),)
        return self.several_targets()

    def level_first(self) -> Target:
        """``1 % fpr``, behind "at": a bound on the side that is wanted; alerts have the number."""
        start, level, rate = self.at, self.level(), self.factor()
        best = more_is_better(rate)
        if best is None:
            return self.build(start, Setpoint, rate, level)
        return self.build(start, Bound, rate, ">=" if best else "<=", level)

    def several_targets(self) -> tuple[Target, ...]:
        """Targets joined by "and" or commas."""
        start, found = self.at, list(self.target())
        while self.take("and") or (self.comma() and (self.take("and") or True)):
            found.extend(self.target())
        # One threshold per group may be announced only after the targets it makes possible.
        later = PER_GROUP if self.next_is("with", "thresholds", "per", "group") else None
        self.build(start, check_targets, tuple(found), later)
        return tuple(found)

    def comma(self) -> bool:
        """Take a comma if one comes next; between two digits it is refused as a decimal mark."""
        if not self.next_is(","):
            return False
        before, mark, after = self.words[self.at - 1 : self.at + 2]
        if self.sentence[mark.start - 1 : mark.start + 2].replace(",", "0").isdecimal():
            why = f"Numbers are written with a decimal point: {before.text}.{after.text}."
            self.point(before.start, after.start + len(after.text), why)
        return self.take(",")

    def target(self) -> tuple[Target, ...]:
        """A bound, a setpoint, or what a function of fairness gives."""
        start = self.at
        if self.word.key in TARGETS:
            name = self.pop().key
            args, named = self.arguments()
            made = self.build(start, TARGETS[name], *args, **named)
            return made if isinstance(made, tuple) else (made,)
        if self.next_is("<=") or self.next_is(">="):
            sense, level = self.pop().key, self.level()
            return (self.build(start, Bound, self.factor(), sense, level),)
        left = self.sum(among=(*TARGETS, *_VERBS, *GOALS))
        if self.take(".", "at", "("):
            level = self.level()
            self.need(")")
            return (self.build(start, Setpoint, left, level),)
        if self.take("at") or self.take("="):
            return (self.build(start, Setpoint, left, self.level()),)
        if self.next_is("<=") or self.next_is(">="):
            sense = self.pop().key
            if left == alerts and self.word.key.endswith("%"):
                self.stop(f"Alerts are a number of rows; for a share write 'coverage {sense} 2 %'.")
            return (self.build(start, Bound, left, sense, self.level()),)
        why = "A target needs '<=', '>=' or 'at' and a number, as in 'fpr <= 0.01'."
        return self.stop(why, among=("<=", ">=", "at"))

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

    def sum(self, among: Iterable[str] = ()) -> Expression:
        """Terms added and subtracted; ``among``: what may stand here, too."""
        start = self.at
        if self.word.kind == "name" and self.word.key not in _NAMES:
            self.stop(_KNOWN, among=(*_NAMES, *among))
        terms = [-self.term() if self.take("-") else self.term()]
        while self.next_is("+") or self.next_is("-"):
            terms.append(-self.term() if self.pop().key == "-" else self.term())
        return maximum(self.build(start, _sum_by_halves, terms))

    def term(self) -> Expression | float:
        """A number, or a factor with a weight and what it is divided by."""
        start, weight = self.at, 1.0
        if self.word.kind == "number":
            weight = self.number()
            alone = self.word.kind != "name" or self.word.key in _KEYWORDS
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
        if word.kind == "name" and word.key in CATALOGUE:
            self.pop()
            return self.sliced(CATALOGUE[word.key])
        if word.key in EXPRESSIONS:
            self.pop()
            args, named = self.arguments()
            return self.build(start, EXPRESSIONS[word.key], *args, **named)
        if word.key in _OF_CLASSES:
            return self.sliced(self.about_classes())
        if word.key not in (*FOLDS, "("):
            self.stop(_KNOWN, among=_NAMES)
        return self.nested()

    def nested(self) -> Expression:
        """A fold, or a sum in parentheses."""
        start = self.at
        self.depth += 1
        if self.depth > _DEEPEST:
            self.stop("The sentence is nested too deeply.")
        kind = "" if self.next_is("(") else self.pop().key
        self.need("(")
        parts = [self.sum()]
        while kind and self.take(","):
            parts.append(self.sum())
        self.need(")")
        self.depth -= 1
        return self.build(start, FOLDS[kind], *parts) if kind else parts[0]

    def sliced(self, expression: Expression) -> Expression:
        """``expression of class or ... on column=value & ...``, or ``expression.on(...)``."""
        expression = self.of_class(expression)
        called = self.take(".", "on", "(")
        more = called or self.take("on")
        start, found = self.at, dict[str, Value]()
        while more:
            start, word = self.at, self.word
            if word.kind not in ("name", "string"):
                self.stop('A slice reads like: on group="a".')
            column = self.text()
            self.need("=")
            value = self.value()
            if found.setdefault(column, value) != value:  # a contradiction, told here
                self.build(
                    start, _narrow, expression.on(**{column: found[column]}), {column: value}
                )
            more = self.take("," if called else "&")
        if found:
            expression = self.build(start, _narrow, expression, found)
        if called:
            self.need(")")
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
        if not self.word.key.isdecimal():
            self.stop('A class is called by its name in quotes or its number, as in of "cat".')
        return self.build(self.at, int, self.pop().key)

    def about_classes(self) -> Expression:
        """A mean, lowest or highest over classes, a top-k share, a mean cost or an area."""
        start, word = self.at, self.pop().key
        if word in AREAS:
            return ClassArea(word)
        if word == "cost" and self.next_is("(") and self.words[self.at + 1].kind == "name":
            args, named = self.arguments()
            return self.build(start, cost, *args, **named)
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
        ahead = [word for word in self.words[self.at : self.at + 4] if word.key != "-"]
        if not ahead or ahead[0].key != "(":
            return False
        rest = ahead[2:] if len(ahead) > 1 and ahead[1].kind == "number" else ahead[1:]
        return bool(rest) and rest[0].key in _COUNT_NAMES

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
        if self.word.key in _COUNT_NAMES:
            return weight * _COUNT_NAMES[self.pop().key]
        return weight * ONE if known else self.stop("Expected TP, FP, FN or TN.")

    def value(self) -> Value:
        """What a column of a slice is equal to."""
        word = self.word
        if word.text in ("True", "False"):
            return self.pop().text == "True"
        if word.kind == "string" or (word.kind == "name" and word.key not in _KEYWORDS):
            return self.text()
        sign = -1 if self.take("-") else 1
        word = self.word
        if word.kind != "number" or word.key.endswith("%"):
            self.stop('A slice is picked by a string or a number, as in group="a".')
        if word.key.isdecimal():
            return sign * self.build(self.at, int, self.pop().key)
        return sign * self.number()

    def number(self) -> float:
        """A number or a percentage."""
        if self.word.kind != "number":
            self.stop("Expected a number, such as 0.01 or 1 %.")
        return self.build(self.at, _read_number, self.pop().key)


def _sum_by_halves(terms: list[Expression | float]) -> Expression | float:
    """The sum, by halves: a sum copies its terms, so adding one at a time would be quadratic."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return _sum_by_halves(terms[:half]) + _sum_by_halves(terms[half:])


def _narrow(expression: Expression, where: Mapping[str, Value]) -> Expression:
    return expression.on(**where)


def _read_number(text: str) -> float:
    """Read digits; 0.7 % is the float nearest to 0.007, as if it had been written so."""
    digits, _, exponent = text.removesuffix("%").rstrip().lower().partition("e")
    power = int(exponent or 0) - (2 if text.endswith("%") else 0)
    value = float(f"{digits}e{power}")
    if value == float("inf"):
        raise ValueError(f"{text} is too large a number.")
    return value
