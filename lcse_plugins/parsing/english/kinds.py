"""What a run of words is: a thing, an attribute, a description, or what someone does."""

from __future__ import annotations

from itertools import groupby

from lcse_plugins.parsing.english.filler import Filler
from lcse_plugins.parsing.english.lexicon import Lexicon
from lcse_plugins.parsing.english.words import Chunk

__all__ = ["Kinds"]


class Kinds(Filler):
    """Tells runs of words apart, by the tables."""

    def __init__(self, lexicon: Lexicon) -> None:
        super().__init__(lexicon)
        self._s_noun = lexicon.words("s noun")
        self._determiner = lexicon.words("determiner")
        self._quantity = lexicon.words("quantity")
        self._preposition = lexicon.words("preposition")
        self._locative = lexicon.words("locative")
        self._verb = lexicon.words("verb")
        self._ing_noun = lexicon.words("ing noun")
        self._action = lexicon.words("action")
        self._taking = lexicon.words("taking")
        self._adjective = lexicon.words("adjective")
        self._material = lexicon.words("material")
        self._be = lexicon.words("be")
        self._showing = lexicon.words("showing")
        self._depiction = lexicon.words("depiction")
        self._attribute_ending = tuple(lexicon.words("attribute ending"))
        self._no_attribute = lexicon.words("no attribute")

    def starts_with_determiner(self, chunk: Chunk) -> bool:
        """Whether the chunk begins with an article, a number or another quantity."""
        low = [word.low for word in chunk[:2]]
        return bool(low) and (low[0] in self._quantity or low[0].isdigit() or low == ["at", "least"])

    def is_definite_plural(self, chunk: Chunk) -> bool:
        """Whether the chunk speaks of several known things: `the players`."""
        return len(chunk) > 1 and chunk[0].low in ("the", "these", "those") and self.is_plural(chunk[-1].low)

    def is_plural(self, low: str) -> bool:
        """Whether a noun has the form of a plural."""
        if low in ("people", "men", "women", "children"):
            return True
        return (
            len(low) > 3
            and low.endswith("s")
            and not low.endswith(("ss", "us", "is", "'s"))
            and low not in self._s_noun
        )

    def find_governor(self, chunk: Chunk, *, last: bool = False) -> int | None:
        """Where the first (or last) word stands that makes a sentence of the chunk: a verb or preposition."""
        places = [place for place in range(len(chunk)) if self._governs(chunk, place)]
        return (places[-1] if last else places[0]) if places else None

    def _governs(self, chunk: Chunk, place: int) -> bool:
        word = chunk[place]
        if word.kind != "word":
            return False
        if word.low in self._preposition:
            return True
        if word.low in self._verb:
            return place > 0
        if word.low == "of":
            return place > 0 and chunk[place - 1].low in self._depiction
        if place and place + 1 == len(chunk) and word.low.endswith("ed") and len(word.low) > 5:
            host = chunk[place - 1 : place]
            return not self._is_attribute(host[0].low) and not self.starts_with_determiner(host)
        if place and place + 1 < len(chunk) and word.low.endswith("s") and self.is_plural(word.low):
            # with something behind it, it may be a verb: "a cloud overshadows houses"
            return chunk[place + 1].low not in self._preposition or chunk[place + 1].low == "to"
        if not word.low.endswith("ing") or len(word.low) < 5 or place == 0:
            return False
        follower = chunk[place + 1].low if place + 1 < len(chunk) else None
        if follower is not None and (follower in self._determiner or follower in self._preposition):
            return True
        if word.low in self._ing_noun and (follower is not None or word.low not in self._action):
            return False
        before = chunk[place - 1].low
        return not self._is_attribute(before) and (before not in self._quantity or before in ("all", "both"))

    def _is_attribute(self, low: str) -> bool:
        if low in self._adjective:
            return True
        return len(low) > 6 and low.endswith(self._attribute_ending) and low not in self._no_attribute

    def is_thing(self, chunk: Chunk) -> bool:
        """Whether the chunk names a thing: no verb, no preposition but `of`, one article at most."""
        inner = self.content(chunk)
        if not inner or len(inner) > 8 or self.find_governor(inner) is not None:
            return False
        if any(word.kind == "mark" for word in inner):
            return False
        after_of = False
        for place, word in enumerate(inner):
            if place and word.low in ("a", "an", "the", "some", "this", "these") and not after_of:
                return False
            after_of = word.low == "of"
        return True

    def is_only_attributes(self, chunk: Chunk) -> bool:
        """Whether the chunk holds attributes only, and waits for its noun: `a red` (and white bus)."""
        inner = self.without_leading(chunk)
        if not inner or not self._is_attribute(inner[-1].low):
            return False
        return all(self._is_attribute(word.low) or word.low in self._quantity for word in inner)

    def takes_noun_of_next(self, chunk: Chunk, follower: Chunk) -> bool:
        """Whether the noun of the chunk stands in the next one: `a large | and heavy truck`."""
        if not self.is_only_attributes(chunk):
            return False
        if chunk[-1].low not in self._material:
            return True
        if self.starts_with_determiner(follower):
            return False
        return self.is_only_attributes(follower) or self.starts_with_attribute(follower)

    def last_thing(self, chunk: Chunk) -> Chunk:
        """What stands behind the last verb or preposition, if that is no `is`: `a red` of `a man in a red`."""
        place = self.find_governor(chunk, last=True)
        return chunk if place is None or chunk[place].low in self._be else chunk[place + 1 :]

    def split_sorts(self, chunk: Chunk) -> list[Chunk]:
        """The sorts of a thing that an `and` tells apart in the chunk: `red | white flowers`; else the chunk alone."""
        if not any(word.kind == "joint" and word.low != "," for word in chunk):
            return [chunk]
        return [list(words) for joint, words in groupby(chunk, lambda word: word.kind == "joint") if not joint]

    def starts_with_attribute(self, chunk: Chunk) -> bool:
        """Whether the chunk begins with an attribute."""
        inner = self.without_leading(chunk)
        if len(inner) < 2 or not self._is_attribute(inner[0].low):
            return False
        return f"{inner[0].low} {inner[1].low}" not in self._lexicon.words("compound")

    def count_attributes(self, chunk: Chunk) -> int:
        """How many attributes the chunk begins with."""
        places = (k for k, word in enumerate(chunk) if word.kind != "joint" and not self._is_attribute(word.low))
        return next(places, len(chunk))

    def has_of(self, chunk: Chunk) -> bool:
        """Whether the thing has an `of` in it: `a bowl of oranges`."""
        return any(word.low == "of" for word in self.without_leading(chunk))

    def ends_in_verb(self, chunk: Chunk) -> bool:
        """Whether the chunk ends in a verb that takes what follows: `a woman holding` (both a bag and a hat)."""
        return len(chunk) > 1 and chunk[-1].low.endswith("ing") and chunk[-1].low not in self._showing

    def says_action(self, chunk: Chunk) -> bool:
        """Whether the chunk says what someone does: `smiling`, `riding a bike`, `wearing gloves`."""
        low = [word.low for word in chunk[:2]]
        if not low or not low[0].endswith("ing") or len(low[0]) < 5:
            return False
        if len(low) == 1:
            return low[0] not in self._ing_noun or low[0] in self._action
        return low[1] in self._determiner or low[1] in self._preposition or low[0] in self._taking

    def may_say_action(self, chunk: Chunk) -> bool:
        """Whether the chunk could say what someone does, or what a thing is like: `chopping onions`, `jumping dogs`."""
        return len(chunk) > 1 and chunk[0].low.endswith("ing") and chunk[0].low not in self._ing_noun

    def means_all(self, low: str) -> bool:
        """Whether a word means all there is: `all animals` (but dogs)."""
        return low in self._lexicon.words("universal")

    def means_except(self, low: str) -> bool:
        """Whether a word takes something out of what was said: `except`, `other than`."""
        return low in self._lexicon.words("exception")

    def says_empty(self, chunk: Chunk) -> bool:
        """Whether the chunk says that nothing is there: `an empty room`."""
        return any(word.low in self._lexicon.words("bare") for word in chunk)

    def may_lack(self, host: Chunk, cue: Chunk, thing: Chunk) -> bool:
        """Whether a negation may speak about less than the host, or take the thing out of what the host is like.

        `a woman with eyes | not | closed`, `a white room | except for | a red chair`.
        """
        if cue[-1].low == "not":
            return self.is_only_attributes(thing) and any(word.low == "with" for word in host)
        return [word.low for word in cue] == ["except", "for"] and host[0].low == thing[0].low == "a"

    def sets_scene(self, chunk: Chunk) -> bool:
        """Whether the chunk begins by setting a scene: `at night`, `in a park`, `seated on a chair`."""
        if len(chunk) < 2:
            return False
        verb = chunk[0].low.endswith(("ing", "ed")) and len(chunk[0].low) > 4
        return chunk[0].low in self._locative or (verb and chunk[1].low in self._preposition)

    def starts_with_predicate(self, chunk: Chunk) -> bool:
        """Whether the chunk begins with a verb or preposition, and so speaks about the phrase in front."""
        low = chunk[0].low if chunk else ""
        return low.endswith("ing") or low in self._locative or low in self._be

    def is_plain_description(self, chunk: Chunk) -> bool:
        """Whether nothing but `with` and `of` holds the chunk together."""
        inner = self.content(chunk)
        return all(inner[place].low == "with" for place in range(len(inner)) if self._governs(inner, place))
