"""Where a row of keywords goes on behind what is absent: `beach no people | sunset`."""

from __future__ import annotations

from lcse_plugins.parsing.english.kinds import Kinds
from lcse_plugins.parsing.english.lexicon import Lexicon
from lcse_plugins.parsing.english.words import Chunk

__all__ = ["JOINTS", "Keywords"]

JOINTS = frozenset({"and", "or", "&", "n"})
"""Words that join, where they are part of a name: `no black and white dogs`."""


class Keywords(Kinds):
    """Questions about words in a row with no joint between the things they name."""

    def __init__(self, lexicon: Lexicon) -> None:
        super().__init__(lexicon)
        self._describing = lexicon.words("describing plural")
        self._spoken_of = lexicon.words("spoken of")

    def keyword_split(self, chunk: Chunk) -> int:
        """Where a row of keywords goes on behind what is absent: `(no) people | beach`; 0 when it does not.

        Many things, or something worn, have no noun behind them that they describe, and no noun an attribute:
        `(no) garage | red roof`.
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
            ends |= self._is_attribute(rest[0].low) and not self._is_of_noun(before, rest[0].low)
            if (
                ends
                and not (self._is_attribute(before) or before in JOINTS)
                and not self.starts_with_determiner(rest)
                and self._ends_in_noun(rest)
            ):
                return place
        return 0

    def offer_split(self, host: Chunk, chunk: Chunk) -> int:
        """Where a size is named behind what is absent: `(not) leather | size 10`, `(not) samsung | 55 inch`.

        0 where there is none, and where no goods are named in front.
        """
        named = self.content(self.without_dangling(host))
        if not named or self.starts_with_determiner(host) or named[-1].low in self._lexicon.words("place"):
            return 0
        pairs = ((k, chunk[k].low, chunk[k + 1].low) for k in range(1, len(chunk) - 1))
        return next((place for place, low, after in pairs if self._is_offered(low, after)), 0)

    def _is_offered(self, low: str, after: str) -> bool:
        if low == "size":
            return after[0].isdigit() or after in self._lexicon.words("size")
        return low[0].isdigit() and after in self._lexicon.words("unit")

    def may_go_on(self, chunk: Chunk) -> bool:
        """Whether more than one thing may be named without a joint: `(no) leash grass field`, `(no) roof red`."""
        low = [word.low for word in self.without_closing(chunk, absent=True)]
        if any(word in self._preposition or word in self._verb or word.endswith("ing") for word in low):
            return False
        told = len(low) > 1 and self._is_attribute(low[-1]) and low[-1] not in self._spoken_of
        if told and not self._is_attribute(low[-2]):
            return not self._is_of_noun(low[-2], low[-1])
        return sum(not self._is_attribute(word) for word in low) > 2

    def quality_end(self, chunk: Chunk) -> int:
        """Where a thing is named behind what only a picture is like: `(not) blurry | dog`; 0 when it is not."""
        like = bool(chunk) and chunk[0].low in self._lexicon.words("quality")
        return 1 if like and self.is_thing(chunk[1:]) and not self.picture_words(chunk) else 0

    def _is_of_noun(self, before: str, low: str) -> bool:
        """Whether an attribute belongs to the noun in front of it: `sky | blue`, `faux | leather`."""
        if low in self._material:
            return not (self._worn(before) or self.is_plural(before))
        return f"{before} {low}" in self._lexicon.words("shade")

    def _ends_in_noun(self, chunk: Chunk) -> bool:
        """Whether the chunk ends in a noun, as far as its form tells, and does not speak about what is in front."""
        low = chunk[-1].low
        spoken = low.endswith(("ing", "ed", "ly")) or (self._is_attribute(low) and low not in self._material)
        spoken |= low in self._spoken_of
        return not spoken and len(self.without_closing([*chunk[:1], *chunk], absent=True)) > len(chunk)

    def _worn(self, low: str) -> bool:
        """Whether a thing is worn or carried, so that what follows it speaks of the wearer."""
        return (
            low in self._clothing or low.removesuffix("s") in self._clothing or low.removesuffix("es") in self._clothing
        )
