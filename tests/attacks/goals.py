"""Attacks on the language: sentences that come back, sentences that are spoilt, long ones."""

from __future__ import annotations

import string
from random import Random

from attacks.refusals import Refused, attempt
from problems.test_choose import agrees, data
from problems.test_parse import VOCABULARY
from strategies import problem as any_problem

from setpoint import Problem


def reads_back(random: Random) -> None:
    """Every problem is the problem that its sentence says."""
    problem = any_problem(random, size=random.randrange(5))
    assert Problem.parse(str(problem)) == problem


def spoilt(random: Random) -> None:
    """A sentence with some characters changed is read, and reads back, or is refused."""
    sentence = str(any_problem(random))
    for _ in range(random.randrange(1, 6)):
        at = random.randrange(len(sentence) + 1)
        until = at + random.randrange(6)
        new = random.choice(
            [
                "",
                random.choice(VOCABULARY),
                random.choice(string.printable),
                chr(random.randrange(0x110000)),
                sentence[at:until] * random.randrange(4),
            ]
        )
        sentence = sentence[:at] + new + sentence[until:]
    found = attempt(lambda: Problem.parse(sentence), seconds=2)
    if not isinstance(found, Refused):
        assert Problem.parse(str(found)) == found


LINKS = [" + ", " - ", " and fpr <= 0.1 and ", " & ", ", ", " on g=1 & h=", "(", "0."]
LEAVES = ["fpr", "0.5 fnr", "max(fpr, fnr)", 'fpr on c{}="a"', "f_score(2)", "abs(fpr - fnr)", "3"]


def long(random: Random) -> None:
    """Hundreds of terms are read, or refused, in less than a second."""
    link, leaf = random.choice(LINKS), random.choice(LEAVES)
    count = 2 ** random.randrange(4, 10)
    body = link.join(leaf.format(i) for i in range(count))
    begin = random.choice(["minimize ", "minimize fnr subject to ", "maximize recall of "])
    end = random.choice(["", " <= 0.1", " at 0.5", " per query", " with thresholds per group"])
    found = attempt(lambda: Problem.parse(begin + body + end), seconds=1)
    if not isinstance(found, Refused):
        assert Problem.parse(str(found)) == found


def choice(random: Random) -> None:
    """The chosen threshold is the one that trying all thresholds in exact arithmetic finds."""
    kinds = ("free", "bounds", "setpoint")
    agrees(any_problem(random, tame=True, size=2, kinds=kinds), *data(random))
