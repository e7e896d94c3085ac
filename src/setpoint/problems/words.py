"""The words of a sentence, taken one after the other, and errors that point at them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

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


@dataclass(frozen=True)
class Word:
    """One word of the sentence and where it stands."""

    kind: str
    text: str
    start: int


class Words:
    """A sentence read word by word."""

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence
        self.words = [*self._split(), Word("end", "", len(sentence.rstrip()))]
        self.at = 0

    def _split(self) -> Iterable[Word]:
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
            yield Word(str(match.lastgroup), match.group(), at)
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
