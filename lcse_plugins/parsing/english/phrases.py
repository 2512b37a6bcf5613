"""What a run of words shows or names, and what one of several says for all."""

from __future__ import annotations

from itertools import pairwise

from lcse_plugins.parsing.english.cuts import Cuts
from lcse_plugins.parsing.english.keywords import JOINTS
from lcse_plugins.parsing.english.lexicon import Lexicon
from lcse_plugins.parsing.english.words import Chunk

__all__ = ["Phrases"]

_FRAMES = frozenset({"frame", "frames"})


class Phrases(Cuts):
    """Questions about runs of words, answered from the tables."""

    def __init__(self, lexicon: Lexicon) -> None:
        super().__init__(lexicon)
        self._picture = self._image | self._depiction

    def depiction_split(self, host: Chunk, chunk: Chunk) -> int:
        """Where it is said what the picture in front shows: `(a photo without) people | of a lake`; 0 when it is not.

        `a cup of coffee` and `groups of people` are things by themselves.
        """
        if not host or host[-1].low not in self._picture:
            return 0
        start = len(chunk) - len(self.without_leading(chunk))
        ofs = [k for k in range(1, len(chunk) - 1) if chunk[k].low == "of"]
        of = next((k for k in ofs if chunk[k - 1].low in _FRAMES or k > start), 0)
        if not of or (self.picture_words(chunk[:of]) and chunk[of - 1].low not in _FRAMES):
            return 0
        new = self.starts_with_determiner(chunk[of + 1 :]) or chunk[of + 1].capital
        one = chunk[of - 1].low in self._mover or not (start or self.is_plural(chunk[of - 1].low))
        return of if new or one else 0

    def picture_split(self, chunk: Chunk) -> int:
        """Where a picture is named behind what it is like: `(not) blurry | photo of a cat`; 0 when it is not."""
        at = next((k for k, word in enumerate(chunk) if word.low in self._image), 0)
        like = self.content(chunk[:at])
        return at if like and self.find_governor(like) is None and self.starts_with_frame(chunk[at:]) else 0

    def moves(self, chunk: Chunk) -> bool:
        """Whether the thing that the chunk begins with acts by itself: `people at night`."""
        return self._noun(self.without_leading(chunk) or chunk) in self._mover

    def place_at_host(self, chunk: Chunk) -> int:
        """Where the chunk says that its thing is at the phrase in front: `books | on it`, `mud | on his face`; or 0."""
        low = [word.low for word in chunk]
        place = self.find_governor(chunk) or (len(low) - 1 if low[-1:] == ["nearby"] else 0)
        if not place or low[place] not in self._locative | {"nearby"}:
            return 0
        back = low[-1] in self._lexicon.words("at host") or not self._owner.isdisjoint(low[place:-1])
        return place if back else 0

    def split_possession(self, chunk: Chunk) -> tuple[Chunk, Chunk]:
        """A phrase of a thing, cut into what it is about and what it has: `a pizza with | a slice` (missing)."""
        for place in range(len(chunk) - 1, 0, -1):
            if chunk[place].low in ("with", "has", "have", "having", "where"):
                return chunk[:place], chunk[place + 1 :]
        return [], chunk

    def parts(self, chunk: Chunk) -> set[tuple[str, ...]]:
        """What the thing of the chunk has or is next to, one of each: `hat`, `bench` of `men with hats on a bench`."""
        breaks = self._preposition | self._verb | JOINTS | {","}
        ends = [k for k, word in enumerate(chunk) if word.low in breaks or self.says_action(chunk[k : k + 2])]
        pieces = (chunk[k + 1 : end] for k, end in pairwise([*ends, len(chunk)]))
        return {self.one_of(inner) for piece in pieces if (inner := self.content(piece))}

    def one_of(self, chunk: Chunk) -> tuple[str, ...]:
        """The words of one of the things that the chunk names: `red hat` of `red hats`."""
        return (*(word.low for word in chunk[:-1]), chunk[-1].low.removesuffix("s"))

    def names_some(self, chunk: Chunk, *, apart: bool) -> bool:
        """Whether the chunk ends by naming some of many: `two men one`, or `some of them` where that stands apart."""
        low = [word.low for word in self.without_dangling(chunk) if word.low not in ("of", "them", "the")]
        if not low or low[-1] not in self._lexicon.words("part"):
            return False
        return self.is_plural(low[-2]) if len(low) > 1 else apart

    def share(self, chunks: list[Chunk], *, marked: bool) -> tuple[list[Chunk], bool]:
        """Give each alternative what the first or the last says for all; and whether it could be read otherwise.

        `a red | blue car`, `a cat | a dog on a sofa`, `a man riding a horse | a bike`. Where `either` or the like marks
        the list, only attributes are shared.
        """
        first, last = chunks[0], chunks[-1]
        if given := self._with_nouns(chunks):
            return given, False
        if marked:
            return chunks, False
        if noun := self._noun_in_front(chunks):
            return [chunks[0], *([*noun, *chunk] for chunk in chunks[1:])], True
        if shared := self._stuff(chunks):
            return shared, True
        inner = self.content(last)
        tail = self.find_governor(inner)
        alike = all(self.starts_with_determiner(chunk) == self.starts_with_determiner(last) for chunk in chunks[:-1])
        if (
            tail
            and inner[tail].low != "with"
            and alike
            and all(self.is_thing(chunk) for chunk in chunks[:-1])
            and self.is_thing(inner[:tail])
        ):
            return [*[self.content(chunk) + inner[tail:] for chunk in chunks[:-1]], inner], True
        start = self.without_leading(first)
        stem = self._stem(start, chunks[1:])
        return ([start, *[start[:stem] + chunk for chunk in chunks[1:]]], True) if stem else (chunks, False)

    def _with_nouns(self, chunks: list[Chunk]) -> list[Chunk]:
        """The alternatives with the noun that some of them wait for: `red | blue car | dog`; none when none waits."""
        given = [self.without_leading(chunk) for chunk in chunks]
        changed = False
        for at in range(len(chunks) - 2, -1, -1):
            following = given[at + 1]
            noun = following[self.count_attributes(following) :]
            if noun and len(noun) < len(following) and self.takes_noun_of_next(chunks[at], chunks[at + 1]):
                given[at] = [*given[at], *noun]
                changed = True
        return given if changed else []

    def _noun_in_front(self, chunks: list[Chunk]) -> Chunk:
        """The noun of the first alternative, where the others are attributes of it too: `car` of `car red | blue`."""
        start = self.without_leading(chunks[0])
        noun = start[: next((k for k, word in enumerate(start) if k and self._is_attribute(word.low)), 0)]
        shade = " ".join(word.low for word in start) in self._lexicon.words("shade")
        told = bool(noun) and not shade and self.find_governor(start) is None and not self.is_only_attributes(noun)
        bare = all(self.is_only_attributes(chunk) and not self.starts_with_determiner(chunk) for chunk in chunks[1:])
        return noun if told and bare and self.is_only_attributes(start[len(noun) :]) else []

    def _stuff(self, chunks: list[Chunk]) -> list[Chunk]:
        """The alternatives with the noun of the last, where the others only say what it is made of; else none."""
        *others, last = [self.without_leading(chunk) for chunk in chunks]
        stuff = self._lexicon.words("stuff")
        if len(last) != 2 or last[0].low not in stuff or any(len(chunk) != 1 for chunk in others):
            return []
        return [*([*chunk, last[1]] for chunk in others), last] if all(c[0].low in stuff for c in others) else []

    def names_stuff(self, chunk: Chunk) -> bool:
        """Whether the chunk names what a thing is made of, or is itself such a thing: `cotton`, `orange`."""
        inner = self.without_leading(chunk)
        return len(inner) == 1 and (inner[0].low in self._material or inner[0].low in self._lexicon.words("stuff"))

    def says_sort(self, chunk: Chunk) -> bool:
        """Whether the chunk says no more than which sort of a thing is meant: `red`, `cotton`."""
        return self.is_only_attributes(chunk) or self.names_stuff(chunk)

    def _stem(self, start: Chunk, others: list[Chunk]) -> int:
        """How much of the first alternative is said of the others too; 0 for nothing."""
        if all(chunk and chunk[0].low.endswith("ing") and self._governs(start + chunk, len(start)) for chunk in others):
            return next((k for k in range(len(start) - 1, 0, -1) if start[k].low.endswith("ing")), 0)
        if not all(self.is_thing(chunk) for chunk in others):
            return 0
        of = all(len(chunk) == 1 for chunk in others)  # "a cup of tea or coffee"
        return next(
            (k + 1 for k in range(len(start) - 1, 0, -1) if self._governs(start, k) or (of and start[k].low == "of")), 0
        )
