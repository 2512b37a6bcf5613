"""What a run of words is: a thing or a description; and where it may be cut."""

from __future__ import annotations

from lcse_plugins.parsing.filler import Chunk, Filler
from lcse_plugins.parsing.lexicon import Lexicon

__all__ = ["Phrases"]


class Phrases(Filler):
    """Questions about runs of words, answered from the tables."""

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
        self._showing = lexicon.words("showing")
        self._relative = lexicon.words("relative")
        self._pointing = lexicon.words("pointing")
        self._mover = lexicon.words("mover")
        self._depiction = lexicon.words("depiction")
        self._attribute_ending = tuple(lexicon.words("attribute ending"))
        self._no_attribute = lexicon.words("no attribute")
        self._known = self._pointing | lexicon.words("known")

    # ------------------------------------------------------------------------------- what kind of phrase

    def determined(self, chunk: Chunk) -> bool:
        """Whether the chunk begins with an article, a number or another quantity."""
        return bool(chunk) and (chunk[0].low in self._quantity or chunk[0].low.isdigit())

    def governor(self, chunk: Chunk, *, last: bool = False) -> int | None:
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
            return not self._is_attribute(chunk[place - 1].low) and not self.determined(chunk[place - 1 : place])
        if place and place + 1 < len(chunk) and word.low.endswith("s") and self._does(word.low):
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

    def _does(self, low: str) -> bool:
        """Whether a word in -s, with something behind it, is a verb: `a cloud overshadows houses`."""
        return len(low) > 3 and not low.endswith(("ss", "us", "is", "'s")) and low not in self._s_noun

    def simple(self, chunk: Chunk) -> bool:
        """Whether the chunk names a thing: no verb, no preposition but `of`, one article at most."""
        inner = self.content(chunk)
        if not inner or len(inner) > 8 or self.governor(inner) is not None:
            return False
        if any(word.kind == "mark" for word in inner):
            return False
        after_of = False
        for place, word in enumerate(inner):
            if place and word.low in ("a", "an", "the", "some", "this", "these") and not after_of:
                return False
            after_of = word.low == "of"
        return True

    def adjectival(self, chunk: Chunk) -> bool:
        """Whether the chunk holds attributes only, and waits for its noun: `a red` (and white bus)."""
        inner = self.without_leading(chunk)
        if not inner or not self._is_attribute(inner[-1].low):
            return False
        return all(self._is_attribute(word.low) or word.low in self._quantity for word in inner)

    def waits(self, chunk: Chunk, follower: Chunk) -> bool:
        """Whether the noun of the chunk stands in the next one: `a large | and heavy truck`."""
        if not self.adjectival(chunk):
            return False
        if chunk[-1].low not in self._material:
            return True
        return not self.determined(follower) and (self.adjectival(follower) or self.described(follower))

    def described(self, chunk: Chunk) -> bool:
        """Whether the chunk begins with an attribute."""
        inner = self.without_leading(chunk)
        if len(inner) < 2 or not self._is_attribute(inner[0].low):
            return False
        return f"{inner[0].low} {inner[1].low}" not in self._lexicon.words("compound")

    def has_of(self, chunk: Chunk) -> bool:
        """Whether the thing has an `of` in it: `a bowl of oranges`."""
        return any(word.low == "of" for word in self.without_leading(chunk))

    def acts(self, chunk: Chunk) -> bool:
        """Whether the chunk ends in a verb that takes what follows: `a woman holding` (both a bag and a hat)."""
        return len(chunk) > 1 and chunk[-1].low.endswith("ing") and chunk[-1].low not in self._showing

    def verbal(self, chunk: Chunk) -> bool:
        """Whether the chunk says what someone does: `smiling`, `riding a bike`, `wearing gloves`."""
        low = [word.low for word in chunk[:2]]
        if not low or not low[0].endswith("ing") or len(low[0]) < 5:
            return False
        if len(low) == 1:
            return low[0] not in self._ing_noun or low[0] in self._action
        return low[1] in self._determiner or low[1] in self._preposition or low[0] in self._taking

    def maybe_verbal(self, chunk: Chunk) -> bool:
        """Whether the chunk could say what someone does, or what a thing is like: `chopping onions`, `jumping dogs`."""
        return len(chunk) > 1 and chunk[0].low.endswith("ing") and chunk[0].low not in self._ing_noun

    def universal(self, low: str) -> bool:
        """Whether a word means all there is: `all animals` (but dogs)."""
        return low in self._lexicon.words("universal")

    def excepts(self, low: str) -> bool:
        """Whether a word takes something out of what was said: `except`, `other than`."""
        return low in self._lexicon.words("exception")

    def places(self, chunk: Chunk) -> bool:
        """Whether the chunk begins by setting a scene: `at night`, `in a park`, `seated on a chair`."""
        if len(chunk) < 2:
            return False
        verb = chunk[0].low.endswith(("ing", "ed")) and len(chunk[0].low) > 4
        return chunk[0].low in self._locative or (verb and chunk[1].low in self._preposition)

    # ------------------------------------------------------------------------------- cutting and sharing

    def scope(self, chunk: Chunk) -> tuple[Chunk, Chunk]:
        """What a negation reaches in the chunk behind it, and what returns to the phrase in front.

        A verb, or a preposition with something new behind it, speaks about the phrase in front: `a man without a
        shirt | in a park`. With something known behind it stays: `a room without pictures on the wall`.
        """
        if chunk and chunk[0].instead is not None:  # "nobody sitting on a bench"
            return chunk, []
        for place in range(1, len(chunk)):
            worn = self._worn(chunk[place - 1].low)
            word, follower = chunk[place].low, chunk[place + 1].low if place + 1 < len(chunk) else None
            if follower is None:
                break
            clause = word in self._verb and word not in self._relative and chunk[place - 1].low not in self._relative
            if clause or (word == "with" and worn):
                return chunk[:place], chunk[place:]
            known = self._pointing if worn else self._known
            if word in self._locative and follower not in known:
                return chunk[:place], chunk[place:]
            if (
                word.endswith("ing")
                and (worn or self._governs(chunk, place))
                and chunk[place - 1].low not in self._mover
            ):
                return chunk[:place], chunk[place:]
        return chunk, []

    def said_of(self, chunk: Chunk) -> tuple[Chunk, Chunk]:
        """A phrase of a thing, cut into what it is about and what it has: `a pizza with | a slice` (missing)."""
        for place in range(len(chunk) - 1, 0, -1):
            if chunk[place].low in ("with", "has", "have", "having"):
                return chunk[:place], chunk[place + 1 :]
        return [], chunk

    def goes_on(self, chunk: Chunk) -> bool:
        """Whether the chunk begins with a verb or preposition, and so speaks about the phrase in front."""
        low = chunk[0].low if chunk else ""
        return low.endswith("ing") or low in self._locative or low in ("is", "are", "was", "were")

    def plain_description(self, chunk: Chunk) -> bool:
        """Whether nothing but `with` and `of` holds the chunk together."""
        inner = self.content(chunk)
        return all(inner[place].low == "with" for place in range(len(inner)) if self._governs(inner, place))

    def _worn(self, low: str) -> bool:
        """Whether a thing is worn or carried, so that what follows it speaks of the wearer."""
        return (
            low in self._clothing or low.removesuffix("s") in self._clothing or low.removesuffix("es") in self._clothing
        )

    def share(self, chunks: list[Chunk], *, marked: bool) -> tuple[list[Chunk], bool]:
        """Give each alternative what the first or the last says for all; and whether it could be read otherwise.

        `a red | blue car`, `a cat | a dog on a sofa`, `a man riding a horse | a bike`. Where `either` or the like marks
        the list, only attributes are shared.
        """
        first, last = chunks[0], chunks[-1]
        if all(self.waits(chunk, last) for chunk in chunks[:-1]) and not self.adjectival(last):
            inner = self.without_leading(last)
            head = next((k for k, word in enumerate(inner) if not self._is_attribute(word.low)), 0)
            if head:
                return [*[self.without_leading(chunk) + inner[head:] for chunk in chunks[:-1]], inner], False
        if marked:
            return chunks, False
        inner = self.content(last)
        tail = self.governor(inner)
        alike = all(self.determined(chunk) == self.determined(last) for chunk in chunks[:-1])
        if (
            tail
            and inner[tail].low != "with"
            and alike
            and all(self.simple(chunk) for chunk in chunks[:-1])
            and self.simple(inner[:tail])
        ):
            return [*[self.content(chunk) + inner[tail:] for chunk in chunks[:-1]], inner], True
        start = self.without_leading(first)
        stem = self._stem(start, chunks[1:])
        return ([start, *[start[:stem] + chunk for chunk in chunks[1:]]], True) if stem else (chunks, False)

    def _stem(self, start: Chunk, others: list[Chunk]) -> int:
        """How much of the first alternative is said of the others too; 0 for nothing."""
        if all(chunk and chunk[0].low.endswith("ing") and self._governs(start + chunk, len(start)) for chunk in others):
            return next((k for k in range(len(start) - 1, 0, -1) if start[k].low.endswith("ing")), 0)
        if not all(self.simple(chunk) for chunk in others):
            return 0
        of = all(len(chunk) == 1 for chunk in others)  # "a cup of tea or coffee"
        return next(
            (k + 1 for k in range(len(start) - 1, 0, -1) if self._governs(start, k) or (of and start[k].low == "of")), 0
        )
