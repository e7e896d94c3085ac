"""Read a sentence into a problem, targets or a capacity.

The words are those of :mod:`setpoint.problems.grammar`. An error points at the word that cannot be
read, and names the nearest sentence that can.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from setpoint.axes.specification import Specification
from setpoint.problems.capacity import PERIOD_WORDS, Capacity
from setpoint.problems.grammar import Sentence
from setpoint.problems.words import T, Unreadable, pointing, repairs
from setpoint.rates import Target

_BEFORE_A_PERIOD = ("per", "a", "an", "each", "every", "/")
_OFFERED = 200
"""Characters of a sentence to which an error offers the nearest one that can be read."""
_REPAIRED = 20
"""Repaired sentences that are repaired once more in search of one that can be read."""
_LONGEST_SENTENCE = 100_000
"""Characters of a sentence that are read at all."""


def parse(sentence: str) -> Specification:
    """The problem that a sentence describes.

    Raises:
        TypeError: It is no text.
        ValueError: It cannot be read; the error points at the word, and names a sentence that can.
    """
    return _read_sentence(sentence, _read_problem)


def _read_problem(text: str) -> Specification:
    try:
        return Sentence(text).problem()
    except Unreadable as refused:
        raise _bound_alone(text) or refused from None


def _bound_alone(text: str) -> Unreadable | None:
    """What to say of a sentence that has targets and nothing else; None if it has more."""
    try:
        Sentence(text).only_targets()
    except Unreadable:
        return None
    bound = " ".join(text.split())
    why = f"A bound alone is no problem: write 'maximize recall subject to {bound:.80}', say."
    return Unreadable(why, text, 0, len(text.rstrip()), [])


def parse_goal(sentence: str) -> Specification | tuple[Target, ...]:
    """The problem that a sentence describes, or the targets if it is about these alone.

    Raises:
        TypeError: It is no text.
        ValueError: It cannot be read, as for :func:`parse`.

    Examples:
        >>> [str(target) for target in parse_goal("fpr <= 1 % and recall at least 50 %")]
        ['fpr <= 0.01', 'recall >= 0.5']
    """
    return _read_sentence(sentence, _read_goal)


def _read_goal(text: str) -> Specification | tuple[Target, ...]:
    if Sentence(text).verb_ahead():
        return Sentence(text).problem()
    try:
        return Sentence(text).only_targets()
    except Unreadable as as_targets:
        try:
            return Sentence(text).problem()
        except Unreadable as as_problem:  # the reading that came further tells what is wrong
            further = max(as_targets, as_problem, key=lambda error: (error.end, -error.start))
            raise further from None


def parse_capacity(sentence: object) -> Capacity | None:
    """The capacity that a sentence is about, such as ``alerts <= 200 per day on 95 % of days``.

    None if it is about something else.

    Raises:
        ValueError: It has no such number, period or share.
    """
    if not isinstance(sentence, str) or not _is_capacity(sentence):
        return None
    return _read_sentence(sentence, lambda text: Sentence(text).capacity())


def _is_capacity(sentence: str) -> bool:
    try:
        keys = [word.key for word in Sentence(sentence).words]
    except Unreadable:
        return False
    return keys[:2] == ["alerts", "<="] and "per" in keys and "on" in keys


def names_alerts_per_period(sentence: str) -> str | None:
    """The period of a sentence about alerts per day, or in any hour: a capacity, whole or not.

    A column of that name in quotes is none: ``alerts <= 50 per "day"`` asks it of every query.

    Examples:
        >>> names_alerts_per_period("at most 50 alerts a day")
        'day'
    """
    try:
        words = Sentence(sentence[:_LONGEST_SENTENCE]).words
    except Unreadable:
        return None
    found = (
        b.key for a, b in pairwise(words) if a.key in _BEFORE_A_PERIOD and b.key in PERIOD_WORDS
    )
    return next(found, None) if any(word.key == "alerts" for word in words) else None


def _read_sentence(sentence: str, read: Callable[[str], T]) -> T:
    """Read a sentence; an error names the nearest sentence that works, if one is near."""
    if not isinstance(sentence, str):
        raise TypeError(f"Problem.parse reads a sentence; got {sentence!r:.100}.")
    if len(sentence) > _LONGEST_SENTENCE:
        raise ValueError(
            f"The sentence has {len(sentence):,} characters; at most {_LONGEST_SENTENCE:,} "
            "are read."
        )
    try:
        return read(sentence)
    except Unreadable as error:
        found = None if len(sentence) > _OFFERED else _nearest(sentence, error, read)
        told = error.why if error.why.endswith((".", "?")) else f"{error.why}."
        why = told if found is None else f"{told} This can be read: {found}"
        raise ValueError(pointing(why, sentence, error.start, error.end)) from None


def _nearest(sentence: str, error: Unreadable, read: Callable[[str], Any]) -> str | None:
    """A sentence near the one that was refused and that can be read, by as few repairs as can be.

    Breadth first: repairs of repaired sentences are tried where no single one suffices.
    """
    refused, seen = [(sentence, error)], {sentence}
    for text, why in refused:
        for repaired in repairs(text, why):
            if repaired in seen:
                continue
            seen.add(repaired)
            try:
                Sentence(repaired).capacity() if _is_capacity(repaired) else read(repaired)
            except Unreadable as again:
                if len(refused) < _REPAIRED:
                    refused.append((repaired, again))
                continue
            return " ".join(repaired.split())
    return None
