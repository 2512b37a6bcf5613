"""From runs of words to concepts, with their places in the text and what is worth a note."""

from __future__ import annotations

from collections.abc import Set

from lcse_plugins.parsing.english.lexicon import Lexicon
from lcse_plugins.parsing.english.phrases import Phrases
from lcse_plugins.parsing.english.words import Chunk, Word, join, trimmed
from lcse_plugins.query import Concept

__all__ = ["ConceptMaker"]

_ROUNDS = 2  # punctuation may hide filler: `old bicycles, please?`


class ConceptMaker:
    """Makes the concepts of one text; `spans`, `unread` and `ambiguous` tell about those made so far."""

    def __init__(
        self, text: str, tables: Lexicon, phrases: Phrases, known: Set[Word] = frozenset(), *, ambiguous: bool = False
    ) -> None:
        self._text = text
        self._phrases = phrases
        self._cues = tables.words("unread")
        self._lexical = tables.words("lexical")
        self._known = known
        self.spans: dict[str, tuple[int, int]] = {}
        self.unread: dict[str, None] = {}
        self.ambiguous = ambiguous
        self._parts: dict[bool, set[tuple[str, ...]]] = {True: set(), False: set()}

    def concept(self, chunk: Chunk, *, absent: bool = False) -> Concept | None:
        """The thing that the chunk names, without article and filler; None when it names nothing."""
        words = self._content(chunk, absent=absent) or (self._phrases.picture_words(chunk) if absent else [])
        words = words or self._phrases.people_meant(chunk)
        if not words:
            return None
        self._note_parts(words, absent=absent)
        if len(words) == 1 and words[0].kind == "quoted" and words[0].low[1:-1].strip():
            return self._made(words, words[0].low[1:-1])
        return self._made(words, join(self._text, words))

    def concepts(self, chunks: list[Chunk], *, absent: bool = False, marked: bool = False) -> list[Concept | None]:
        """The things of a list, each with what is said of all of them."""
        if len(chunks) > 1:
            if absent:
                chunks = [self._phrases.without_closing(chunk, absent=True) for chunk in chunks]
            chunks, doubtful = self._phrases.share(chunks, marked=marked)
            self.ambiguous |= doubtful
        return [self.concept(chunk, absent=absent) for chunk in chunks]

    def description(self, chunk: Chunk) -> Concept | None:
        """All that the chunk says, request and article left out, as one concept."""
        words = self._content(chunk)
        return self._made(words, join(self._text, words)) if words else None

    def verbatim(self, start: int, end: int) -> Concept:
        """A part of the text as it stands."""
        concept = Concept(self._text[start:end])
        self.spans[concept.text] = (start, end)
        return concept

    def _content(self, chunk: Chunk, *, absent: bool = False) -> Chunk:
        words = trimmed(chunk)
        for _ in range(_ROUNDS):
            inner = self._phrases.content(words, absent=absent)
            words = trimmed(inner)
            if len(words) == len(inner) and not self._phrases.picture_words(
                words
            ):  # else "a filter" would be a request
                break
        return words

    def _note_parts(self, words: Chunk, *, absent: bool) -> None:
        """Doubt that a thing is absent from all that is shown, where one of them has it.

        `a man with a hat and a man without a hat`.
        """
        parts = {self._phrases.one_of(words)} if absent else self._phrases.parts(words)
        self.ambiguous |= not parts.isdisjoint(self._parts[not absent])
        self._parts[absent] |= parts

    def note_cues(self, words: Chunk) -> None:
        """Remember the cues among words that are not taken as logic."""
        for word in words:
            if word.kind == "word" and self._may_be_cue(word.low) and word not in self._known:
                self.unread[self._text[word.start : word.end]] = None

    def _may_be_cue(self, low: str) -> bool:
        """Whether a word may say that something is absent: `unless`, `treeless`, and not `wireless`."""
        stem = low.removesuffix("less")
        lacks = len(low) > len(stem) > 2 and stem.isalpha() and f"{stem}-less" not in self._lexical
        return lacks or low in self._cues

    def _made(self, words: Chunk, text: str) -> Concept:
        self.note_cues(words)
        concept = Concept(text)
        self.spans.setdefault(concept.text, _span(self._text, words))
        return concept


def _span(text: str, words: Chunk) -> tuple[int, int]:
    """Where the words stand, as far as they stand together."""
    start, end = words[0].start, words[0].end
    for word in words[1:]:
        if word.start < start or (word.start > end and not text[end : word.start].isspace()):
            break
        end = max(end, word.end)
    return start, end
