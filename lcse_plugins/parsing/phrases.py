"""What a run of words is: a thing, a description, an empty phrase; and where it may be cut."""

from __future__ import annotations

from collections.abc import Sequence

from lcse_plugins.parsing.lexicon import Lexicon
from lcse_plugins.parsing.words import Word

__all__ = ["Phrases"]

Chunk = list[Word]


class Phrases:
    """Questions about runs of words, answered from the tables."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._image = lexicon.words("image")
        self._request_word = lexicon.words("request word")
        self._pointer = lexicon.words("pointer")
        self._s_noun = lexicon.words("s noun")
        self._determiner = lexicon.words("determiner")
        self._quantity = lexicon.words("quantity")
        self._preposition = lexicon.words("preposition")
        self._locative = lexicon.words("locative")
        self._verb = lexicon.words("verb")
        self._ing_noun = lexicon.words("ing noun")
        self._adjective = lexicon.words("adjective")
        self._material = lexicon.words("material")
        self._clothing = lexicon.words("clothing")

    # ------------------------------------------------------------------------------- leaving words out

    def content(self, chunk: Chunk, *, absent: bool = False) -> Chunk:
        """The chunk without request, article and filler around it; may be empty."""
        chunk = self.without_leading(chunk)
        if absent and len(chunk) > 1 and chunk[0].low in _OWNER:
            chunk = chunk[1:]
        return self.without_closing(chunk, absent=absent)

    def without_leading(self, chunk: Chunk) -> Chunk:
        """The chunk without request frames, existential openings and articles in front."""
        low = [word.low for word in chunk]
        at = self._request(low)
        while at < len(low):
            length = self._image_frame(low, at) or self._leading(low, at)
            if not length:
                break
            at += length
        return chunk[at:] if not all(word in self._pointer for word in low[at:]) else []

    def _request(self, low: Sequence[str]) -> int:
        """Where a request such as `I was hoping to find some photos of` ends; 0 when there is none."""
        for at, word in enumerate(low[:16]):
            if word in self._image and (length := self._image_frame(low, at)) > 1:
                return at + length
            if word not in self._request_word:
                return 0
        return 0

    def unrequested(self, chunk: Chunk) -> Chunk:
        """The chunk without request frames in front, its article kept."""
        low = [word.low for word in chunk]
        at = 0
        while at < len(low) and (length := self._image_frame(low, at) or self._lexicon.framing.match(low, at)[0]):
            at += length
        return chunk[at:]

    def _image_frame(self, low: Sequence[str], at: int) -> int:
        if low[at] not in self._image:
            return 0
        if at + 1 == len(low):
            return 1
        length, _ = self._lexicon.link.match(low, at + 1)
        return 1 + length if length else 0

    def _leading(self, low: Sequence[str], at: int) -> int:
        length, tag = self._lexicon.leading.match(low, at)
        if low[at + length - 1] == "a" and low[at + length : at + length + 1] and low[at + length] in _COUNTED:
            length -= 1  # "a few"
        if tag == "request" and length == 1:
            if at + 1 < len(low) and low[at + 1].endswith("ing"):
                return 0  # "show jumping"
            if at and low[at - 1] in ("a", "an", "the"):
                return 0  # "a display of fruit"
        return length

    def without_closing(self, chunk: Chunk, *, absent: bool = False) -> Chunk:
        """The chunk without what is said after a thing: `please`, `in the picture`, `is present`."""
        table = self._lexicon.closing_absent if absent else self._lexicon.closing
        while len(chunk) > 1:
            low = [word.low for word in chunk]
            length, _ = table.match(low[::-1])
            if not length or length >= len(chunk):
                if low[-1] == "on" and low[-2] in self._clothing:
                    length = 1
                else:
                    break
            chunk = chunk[:-length]
        return chunk

    def without_dangling(self, chunk: Chunk) -> Chunk:
        """The chunk without the words that only led up to a negation: `that has`, `with`, `where there are`."""
        while chunk:
            length, _ = self._lexicon.dangling.match([word.low for word in reversed(chunk)])
            if not length:
                break
            chunk = chunk[:-length]
        return chunk

    # ------------------------------------------------------------------------------- what kind of phrase

    def framed(self, chunk: Chunk) -> bool:
        """Whether the chunk begins like a request or with `there is`."""
        low = [word.low for word in chunk]
        return bool(low) and bool(
            self._request(low) or self._lexicon.framing.match(low)[0] or self._image_frame(low, 0) > 1
        )

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
        if place and place + 1 < len(chunk) and word.low.endswith("s") and self._does(word.low):
            return chunk[place + 1].low not in self._preposition or chunk[place + 1].low == "to"
        if not word.low.endswith("ing") or len(word.low) < 5 or place == 0:
            return False
        follower = chunk[place + 1].low if place + 1 < len(chunk) else None
        if follower is not None and (follower in self._determiner or follower in self._preposition):
            return True
        if word.low in self._ing_noun:
            return (
                follower is None
                and word.low not in ("building", "painting", "ring", "king", "clothing")
                and (chunk[place - 1].low not in self._adjective and chunk[place - 1].low not in self._quantity)
                and word.low in _ACTIONS
            )
        return chunk[place - 1].low not in self._adjective and chunk[place - 1].low not in self._quantity

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
            if place and word.low in ("a", "an", "the", "some") and not after_of:
                return False
            after_of = word.low == "of"
        return True

    def adjectival(self, chunk: Chunk) -> bool:
        """Whether the chunk holds attributes only, and waits for its noun: `a red` (and white bus)."""
        inner = self.without_leading(chunk)
        return bool(inner) and all(word.low in self._adjective for word in inner)

    def waits(self, chunk: Chunk, follower: Chunk) -> bool:
        """Whether the noun of the chunk stands in the next one: `a large | and heavy truck`, not `an orange | and a cat`."""
        if not self.adjectival(chunk) or not (self.adjectival(follower) or self.described(follower)):
            return False
        return not (self.determined(follower) and chunk[-1].low in self._material)

    def described(self, chunk: Chunk) -> bool:
        """Whether the chunk begins with an attribute."""
        inner = self.without_leading(chunk)
        if len(inner) < 2 or inner[0].low not in self._adjective:
            return False
        return f"{inner[0].low} {inner[1].low}" not in self._lexicon.words("compound")

    def has_of(self, chunk: Chunk) -> bool:
        """Whether the thing has an `of` in it: `a bowl of oranges`."""
        return any(word.low == "of" for word in self.without_leading(chunk))

    def stated(self, chunk: Chunk) -> bool:
        """Whether the chunk already says of its thing that it is there."""
        return len(self.without_closing(chunk)) < len(chunk)

    def acts(self, chunk: Chunk) -> bool:
        """Whether the chunk ends in a verb that takes what follows: `a woman holding` (both a bag and a hat)."""
        return len(chunk) > 1 and chunk[-1].low.endswith("ing") and chunk[-1].low not in _SHOWING

    def universal(self, low: str) -> bool:
        """Whether a word means all there is: `all animals` (but dogs)."""
        return low in self._lexicon.words("universal")

    def excepts(self, low: str) -> bool:
        """Whether a word takes something out of what was said: `except`, `other than`."""
        return low in self._lexicon.words("exception")

    def places(self, chunk: Chunk) -> bool:
        """Whether the chunk begins by setting a scene: `at night`, `in a park`."""
        return len(chunk) > 1 and chunk[0].low in self._locative

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
            if ((word == "with" and worn) or (word in self._verb and word not in _RELATIVE)) and follower is not None:
                return chunk[:place], chunk[place:]
            known = _POINTING if worn else _KNOWN
            if word in self._locative and follower is not None and follower not in known:
                return chunk[:place], chunk[place:]
            if word.endswith("ing") and worn:
                return chunk[:place], chunk[place:]
        return chunk, []

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
            head = next((k for k, word in enumerate(inner) if word.low not in self._adjective), 0)
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
        stem = self.governor(start, last=True)
        if stem and all(self.simple(chunk) for chunk in chunks[1:]):
            return [start, *[start[: stem + 1] + chunk for chunk in chunks[1:]]], True
        return chunks, False


_OWNER = frozenset("their its his her my your our".split())
_COUNTED = frozenset("few lot couple bunch number dozen pair hundred thousand group".split())
_RELATIVE = frozenset("that which who whose where when its their his her it there".split())
_SHOWING = frozenset("having containing showing including featuring depicting displaying".split())
_POINTING = frozenset("it its him his her them their my your our is are was were".split())
_KNOWN = _POINTING | frozenset("the this that these those front top".split())
_ACTIONS = frozenset(
    "walking running sleeping swimming smiling dancing sitting standing flying riding driving hiking fishing surfing "
    "skiing skateboarding snowboarding reading writing cooking shopping climbing falling burning hanging".split()
)
