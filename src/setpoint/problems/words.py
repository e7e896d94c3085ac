"""A sentence as words: split, put into the words of the grammar, and pointed at in errors."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn, TypeVar

from setpoint.problems.vocabulary import NEARLY, PHRASES

T = TypeVar("T")
_TOKEN = re.compile(
    r"""(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:\s*(?:%|(?i:per[ ]?cent)\b))?)
      | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<name>[sS]\.[tT]\.|[^\W\d]\w*)
      | (?P<sign><=|>=|==|=<|=>|[-+*/(),=&.\[\]≤≥])""",
    re.VERBOSE,
)
_HINTS = {
    '"': "This quote is never closed.",
    "'": "This quote is never closed.",
    "<": "Bounds are written <= and >=.",
    ">": "Bounds are written <= and >=.",
    "%": "A percentage follows a number, as in 1 %.",
}
_LESS_IS_BETTER = ("cost", "error", "fnr", "fpr", "false", "miss", "balanced_error", "coverage")
"""Sentences that begin like this want less of it."""
_A_RANGE = re.compile(r"\bon \w+ ?[<>]", re.IGNORECASE)
_ALIKE = 0.6
"""How alike two words are of which one may be meant for the other; 1 is the same."""
_COUNTS = ("TP", "FP", "FN", "TN")
_BEFORE_A_NAME = ("on", "&", "per", "=")
"""After these a word is the name of a column or a value, never a phrase."""
_LONGEST_PHRASE = max(2 * len(phrase.split()) for phrase in PHRASES)
"""Words of a phrase, with hyphens between them."""
_FIRST_OF_PHRASES = frozenset(phrase.partition(" ")[0] for phrase in PHRASES)


class Unreadable(ValueError):
    """A sentence that is no goal; knows the part of it that was refused."""

    def __init__(self, why: str, sentence: str, start: int, end: int, among: list[str]) -> None:
        self.why, self.start, self.end, self.among = why, start, end, among
        super().__init__(pointing(why, sentence, start, end))


SHOWN = 120
"""Characters of a sentence that an error shows."""


def pointing(why: str, sentence: str, start: int, end: int) -> str:
    """An error with carets under the given part of the sentence.

    Of a long sentence only the surroundings are shown, of a long reason its two ends.
    """
    if len(why) > 2 * SHOWN:
        why = f"{why[:SHOWN]} … {why[-SHOWN:]}"
    first = max(0, min(start - SHOWN // 3, len(sentence) - SHOWN))
    line = re.sub(r"\s", " ", sentence[first : first + SHOWN])
    start, end = start - first, min(end - first, SHOWN)
    marks = " " * start + "^" * max(end - start, 1)
    if first:
        line, marks = "… " + line, "  " + marks
    if first + SHOWN < len(sentence):
        line += " …"
    return f"{why}\n  {line}\n  {marks}"


@dataclass(frozen=True)
class Word:
    """One word.

    Attributes:
        kind: ``number``, ``string``, ``name``, ``sign`` or ``end``.
        key: What the grammar compares: in lower case, and in the words of the grammar.
        text: What was written.
        start: Where it stands.
    """

    kind: str
    key: str
    text: str
    start: int


class Words:
    """A sentence read word by word."""

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence
        split = list(self._split(sentence))
        self.words = [*_translated(split), Word("end", "", "", len(sentence.rstrip()))]
        self.at = 0

    def _split(self, sentence: str) -> Iterator[Word]:
        at = 0
        while at < len(sentence):
            if sentence[at].isspace():
                at += 1
                continue
            match = _TOKEN.match(sentence, at)
            if match is None:
                found = sentence[at]
                why = _HINTS.get(found, "No sentence needs this character.")
                self.point(at, at + 1, f"Cannot read {found!r}. {why}", ("<=", ">="))
            text = match.group()
            key = text.lower() if match.lastgroup == "name" else text
            if match.lastgroup == "number" and key.lower().endswith("cent"):
                key = f"{key.lower().split('per')[0].rstrip()}%"
            yield Word(str(match.lastgroup), key, text, at)
            at = match.end()

    @property
    def word(self) -> Word:
        """The next word."""
        return self.words[self.at]

    def pop(self) -> Word:
        """Take the next word, whatever it is."""
        word = self.word
        self.at += word.kind != "end"
        return word

    def next_is(self, *keys: str) -> bool:
        """Whether these words come next."""
        return [word.key for word in self.words[self.at : self.at + len(keys)]] == list(keys)

    def take(self, *keys: str) -> bool:
        """Take these words if they come next."""
        found = self.next_is(*keys)
        self.at += len(keys) if found else 0
        return found

    def need(self, *keys: str) -> None:
        """Take these words, or stop."""
        for key in keys:
            if not self.take(key):
                self.stop(f"Expected {key!r}.", among=[key])

    def stop(self, why: str, *, among: Iterable[str] = ()) -> NoReturn:
        """Refuse the next word; if it looks like one of ``among``, say so instead of ``why``."""
        word, known = self.word, list(among)
        meant = [each for each in known if each != word.key] if word.kind == "name" else []
        close = _alike(word.key, meant, 1)
        why = f"Did you mean {close[0]!r}?" if close else why
        found = f"Cannot read {word.text!r:.80}." if word.text else "The sentence ends too early."
        self.point(word.start, word.start + len(word.text), f"{found} {why}", known)

    def build(self, start: int, make: Callable[..., T], *parts: Any, **named: Any) -> T:
        """Make something of the words from ``start`` on; if it is refused, point at them."""
        try:
            return make(*parts, **named)
        except (ValueError, TypeError, ArithmeticError) as refused:
            first, last = self.words[start], self.words[max(self.at - 1, start)]
            self.point(first.start, last.start + len(last.text), str(refused))

    def point(self, start: int, end: int, why: str, among: Iterable[str] = ()) -> NoReturn:
        """Refuse a part of the sentence."""
        raise Unreadable(why, self.sentence, start, end, list(among))

    def text(self) -> str:
        """A name as it was written, or a string without its quotes."""
        return self.build(self.at, _unquoted, self.pop())


def _translated(words: list[Word]) -> Iterator[Word]:
    """The words with every phrase of :data:`PHRASES` replaced; each replacement keeps its place."""
    at, brackets = 0, 0
    while at < len(words):
        word, before = words[at], words[at - 1].key if at else ""
        brackets += {"[": 1, "]": -1}.get(word.key, 0)
        ahead = words[at + 1].key if at + 1 < len(words) else ""
        is_name = brackets > 0 or before in _BEFORE_A_NAME
        is_name = is_name or (before in ("(", ",") and ahead == "=")
        length = 0 if is_name else _phrase_length(words, at)
        if not length:
            yield word
            at += 1
            continue
        last = words[at + length - 1]
        text = " ".join(each.text for each in words[at : at + length])
        text = text if length == 1 else text.ljust(last.start + len(last.text) - word.start)
        phrase = PHRASES[_phrase(words[at : at + length])]
        for kind, key in _canonical(phrase):
            yield Word(kind, key, text, word.start)
        at += length


def _phrase_length(words: list[Word], at: int) -> int:
    """How many words from ``at`` on are a phrase; the longest counts."""
    if words[at].key.replace("_", " ").partition(" ")[0] not in _FIRST_OF_PHRASES:
        return 0
    for length in range(min(_LONGEST_PHRASE, len(words) - at), 0, -1):
        if _phrase(words[at : at + length]) in PHRASES:
            return length
    return 0


def _phrase(words: list[Word]) -> str:
    """Words as one phrase, however they are joined; "f1_score" is "f1"."""
    text = " ".join(word.key for word in words).replace("_", " ").replace(" - ", " ")
    return text.removesuffix(" score")


@cache
def _canonical(phrase: str) -> tuple[tuple[str, str], ...]:
    return tuple((str(m.lastgroup), m.group()) for m in _TOKEN.finditer(phrase))


def _unquoted(word: Word) -> str:
    if word.kind != "string":
        return word.text
    text = word.text
    if text[0] == "'":
        text = '"' + text[1:-1].replace("\\'", "'").replace('"', '\\"') + '"'
    return str(json.loads(text, strict=False))


def _alike(word: str, known: list[str], most: int) -> list[str]:
    """Known words that are spelled nearly like this one, which may be a word of its own."""
    cutoff = 0.9 if "_at_" in word or word in _COUNTS else _ALIKE
    return difflib.get_close_matches(word.lower(), known, most, cutoff)


def repairs(sentence: str, error: Unreadable) -> Iterator[str]:
    """Sentences near the one that was refused, the likeliest first."""
    before, wrong = sentence[: error.start], sentence[error.start : error.end]
    after = sentence[error.end :]
    if _A_RANGE.search(sentence):
        return  # a slice is one value: whatever is read is another one
    for pattern, meant in NEARLY:
        repaired = re.sub(pattern, meant, sentence.strip(), flags=re.IGNORECASE)
        yield re.sub(r" {2,}", " ", repaired).strip()
    for word in _alike(wrong, error.among, 3):
        yield f"{before}{word}{after}"
    yield f"{before}subject to {sentence[error.start :]}"
    yield f"{before} subject to {after}"
    less = sentence.strip().lower().startswith(_LESS_IS_BETTER)
    yield f"minimize {sentence}" if less else f"maximize {sentence}"
    if not wrong.strip().isalnum():
        yield f"{before} and {after}"
