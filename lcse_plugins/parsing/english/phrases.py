"""Where a run of words may be cut, and what one of several says for all."""

from __future__ import annotations

from typing import NamedTuple

from lcse_plugins.parsing.english.kinds import Kinds
from lcse_plugins.parsing.english.lexicon import Lexicon
from lcse_plugins.parsing.english.words import Chunk

__all__ = ["Cut", "Phrases"]

_CLAUSES = frozenset({"who", "that", "which"})
_SINGULAR = frozenset({"is", "has", "was"})
_FRAMES = frozenset({"frame", "frames"})


class Cut(NamedTuple):
    """A chunk in two, and whether one may doubt that it is cut there."""

    reach: Chunk
    rest: Chunk
    doubtful: bool


class Phrases(Kinds):
    """Questions about runs of words, answered from the tables."""

    def __init__(self, lexicon: Lexicon) -> None:
        super().__init__(lexicon)
        self._relative = lexicon.words("relative")
        self._pointing = lexicon.words("pointing")
        self._known = self._pointing | lexicon.words("known")
        self._mover = lexicon.words("mover")
        self._describing = lexicon.words("describing plural")
        self._occasion = lexicon.words("occasion")
        self._setting = lexicon.words("setting")
        self._backdrop = lexicon.words("backdrop")
        self._place = lexicon.words("place")
        self._picture = self._image | self._depiction

    def split_reach(self, chunk: Chunk) -> Cut:
        """What a negation reaches in the chunk behind it, and what returns to the phrase in front.

        A verb, or a preposition with something new behind it, speaks about the phrase in front: `a man without a
        shirt | in a park`. With something known behind it stays: `a room without pictures on the wall`.
        """
        doubtful = False
        if chunk and chunk[0].instead is not None:  # "nobody sitting on a bench"
            return Cut(chunk, [], doubtful)
        for place in range(1, len(chunk) - 1):
            before, word, follower = (chunk[place + k].low for k in (-1, 0, 1))
            worn, moves = self._worn(before), before in self._mover
            clause = word in self._verb and word not in self._relative and before not in self._relative
            if clause or (word == "with" and worn):
                return Cut(chunk[:place], chunk[place:], doubtful)
            if word in _CLAUSES and not moves and place + 2 < len(chunk):
                if word == "who" or worn or (follower in _SINGULAR and self.is_plural(before)):
                    return Cut(chunk[:place], chunk[place:], doubtful or (worn and word != "who"))
                doubtful |= before not in self._pointer  # "a bottle without a label that is green"
            if word == "where" and before not in self._place:
                return Cut(chunk[:place], chunk[place:], doubtful)
            if word == "with" and not moves:
                doubtful |= not self.is_plural(before)  # "a house with no garage with a pool"
            known = self._pointing if worn else self._known
            if word in self._locative and follower not in known:
                return Cut(chunk[:place], chunk[place:], doubtful)
            if word in self._locative and follower == "the" and place + 2 < len(chunk):
                where = self._noun(chunk[place + 2 :])
                if where in self._occasion or (where in self._setting and not moves):
                    return Cut(chunk[:place], chunk[place:], doubtful or where in self._setting)
                doubtful |= where not in self._backdrop and not self.says_action(chunk)
            if word.endswith("ing") and (worn or self._governs(chunk, place)) and not moves:
                return Cut(chunk[:place], chunk[place:], doubtful)
        return Cut(chunk, [], doubtful)

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

    def _noun(self, chunk: Chunk) -> str:
        """The last word of the thing that the chunk begins with."""
        end = self.find_governor(chunk)
        return chunk[end - 1 if end else -1].low

    def keyword_split(self, chunk: Chunk) -> int:
        """Where a row of keywords goes on behind what is absent: `(no) people | beach`; 0 when it does not.

        Many things, or something worn, have no noun behind them that they describe.
        """
        signs = next((k for k, word in enumerate(chunk) if word.kind != "emoji"), 0)  # "🚫🐶 beach"
        if self.find_governor(chunk) is not None or any(word.kind != "word" or word.instead for word in chunk[signs:]):
            return 0
        if signs:
            return signs
        for place in range(1, len(chunk)):
            before, rest = chunk[place - 1].low, chunk[place:]
            if rest[0].low == "extra":
                return place
            many = self.is_plural(rest[-1].low)
            ends = (self._worn(before) if many else self.is_plural(before)) and before not in self._describing
            ends |= (self._worn(before) or self.is_plural(before)) and self._is_attribute(rest[0].low)
            if (
                ends
                and not self._is_attribute(before)
                and not self.starts_with_determiner(rest)
                and self._ends_in_noun(rest)
            ):
                return place
        return 0

    def _ends_in_noun(self, chunk: Chunk) -> bool:
        """Whether the chunk ends in a noun, as far as its form tells, and does not speak about what is in front."""
        low = chunk[-1].low
        spoken = low.endswith(("ing", "ed", "ly")) or self._is_attribute(low) or low in self._lexicon.words("spoken of")
        return not spoken and len(self.without_closing([*chunk[:1], *chunk], absent=True)) > len(chunk)

    def _worn(self, low: str) -> bool:
        """Whether a thing is worn or carried, so that what follows it speaks of the wearer."""
        return (
            low in self._clothing or low.removesuffix("s") in self._clothing or low.removesuffix("es") in self._clothing
        )

    def split_possession(self, chunk: Chunk) -> tuple[Chunk, Chunk]:
        """A phrase of a thing, cut into what it is about and what it has: `a pizza with | a slice` (missing)."""
        for place in range(len(chunk) - 1, 0, -1):
            if chunk[place].low in ("with", "has", "have", "having", "where"):
                return chunk[:place], chunk[place + 1 :]
        return [], chunk

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

    def _stuff(self, chunks: list[Chunk]) -> list[Chunk]:
        """The alternatives with the noun of the last, where the others only say what it is made of; else none."""
        *others, last = [self.without_leading(chunk) for chunk in chunks]
        stuff = self._lexicon.words("stuff")
        if len(last) != 2 or last[0].low not in stuff or any(len(chunk) != 1 for chunk in others):
            return []
        return [*([*chunk, last[1]] for chunk in others), last] if all(c[0].low in stuff for c in others) else []

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
