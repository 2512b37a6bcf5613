"""How much of the words behind a negation speaks of what is absent, and how much of the phrase in front."""

from __future__ import annotations

from typing import NamedTuple

from lcse_plugins.parsing.english.keywords import Keywords
from lcse_plugins.parsing.english.lexicon import Lexicon
from lcse_plugins.parsing.english.senses import Answer
from lcse_plugins.parsing.english.words import Chunk

__all__ = ["Cut", "Cuts"]

_CLAUSES = frozenset({"who", "that", "which"})
_SINGULAR = frozenset({"is", "has", "was"})
_LIES = frozenset({"lying", "laying", "hanging", "drying"})
_PICTURED = frozenset({"background", "foreground", "distance", "left", "right", "side", "front", "back"})


class Cut(NamedTuple):
    """A chunk in two, and whether one may doubt that it is cut there."""

    reach: Chunk
    rest: Chunk
    doubtful: bool


class Cuts(Keywords):
    """Questions about the words behind a negation, answered from the tables."""

    def __init__(self, lexicon: Lexicon) -> None:
        super().__init__(lexicon)
        self._relative = lexicon.words("relative")
        self._pointing = lexicon.words("pointing")
        self._known = self._pointing | lexicon.words("known")
        self._mover = lexicon.words("mover")
        self._occasion = lexicon.words("occasion")
        self._setting = lexicon.words("setting")
        self._backdrop = lexicon.words("backdrop")
        self._place = lexicon.words("place")
        self._scenic = lexicon.words("scenic")
        self._participle = lexicon.words("participle")
        self._article = lexicon.words("article")
        self._body = lexicon.words("body")
        self._doing = lexicon.words("doing")
        self._spot = self._backdrop | self._body

    def split_reach(self, chunk: Chunk, host: Chunk) -> Cut:
        """What a negation reaches in the chunk behind it, and what returns to the `host`, the phrase in front.

        A verb, or a preposition with something new behind it, speaks about the phrase in front: `a man without a
        shirt | in a park`. With something known behind it stays: `a room without pictures on the wall`.
        """
        doubtful = False
        if chunk and chunk[0].instead is not None:  # "nobody sitting on a bench"
            return Cut(chunk, [], doubtful)
        for place in range(1, len(chunk) - 1):
            before, word, follower = (chunk[place + k].low for k in (-1, 0, 1))
            worn, mover = self._worn(before), before in self._mover
            moves = mover and word not in self._scenic
            if self._is_predicate(before, word) or (word == "with" and worn):
                return Cut(chunk[:place], chunk[place:], doubtful)
            if (done := self._done_by_host(host, before, word, follower)) != "no":
                return Cut(chunk[:place], chunk[place:], doubtful or done == "maybe")
            if word in _CLAUSES and not moves and place + 2 < len(chunk):
                if word == "who" or worn or (follower in _SINGULAR and self.is_plural(before)):
                    return Cut(chunk[:place], chunk[place:], doubtful or (worn and word != "who"))
                doubtful |= before not in self._pointer  # "a bottle without a label that is green"
            if word == "where" and before not in self._place:
                return Cut(chunk[:place], chunk[place:], doubtful)
            doubtful |= word == "with" and not moves  # "a house with no garage with a pool"
            if self._says_state(chunk, place):
                end = len(chunk) if moves else place  # "a hall without people dressed in red"
                return Cut(chunk[:end], chunk[end:], doubtful or not worn or word == "made")
            known = self._pointing if worn else self._known
            beside = follower == "to" and place + 3 == len(chunk) and chunk[-1].low in self._pointing  # "next to it"
            spot = follower in self._spot - known and self._ends_place(chunk, place + 2)
            if spot and word in self._locative:
                if self._is_at_spot(follower, host, before):
                    continue
                return Cut(chunk[:place], chunk[place:], doubtful or not worn)
            if word in self._locative and follower not in known and not beside:
                return Cut(chunk[:place], chunk[place:], doubtful)
            if word in self._locative and follower == "the" and place + 2 < len(chunk):
                where = self._noun(chunk[place + 2 :])
                if where in self._occasion or (where in self._setting and not moves):
                    return Cut(chunk[:place], chunk[place:], doubtful or where in self._setting)
                doubtful |= where not in self._backdrop and not self.says_action(chunk)
            stays = moves or before in self._article  # "a painting above the bed"
            stays |= self._may_hold(host) and self._is_found_there(chunk, place, worn=worn)
            if word.endswith("ing") and (worn or self._governs(chunk, place)) and not stays:
                return Cut(chunk[:place], chunk[place:], doubtful or mover)
        acts = len(chunk) > 1 and self._worn(chunk[-2].low) and self.says_action(chunk[-1:])  # "a hat | smiling"
        end = len(chunk) - (acts and not (chunk[-1].low in _LIES and self._may_hold(host)))
        return Cut(chunk[:end], chunk[end:], doubtful)

    def says_clause(self, chunk: Chunk) -> bool:
        """Whether something is said of the thing that the chunk begins with: `cars are parked`."""
        return any(self._is_predicate(chunk[k - 1].low, chunk[k].low) for k in range(1, len(chunk)))

    def _is_predicate(self, before: str, word: str) -> bool:
        return word in self._verb and word not in self._relative and before not in self._relative

    def _done_by_host(self, host: Chunk, before: str, word: str, follower: str) -> Answer:
        """Whether a finite verb stands here of which the host is the subject, as number and sense tell.

        `a boy without a shirt | jumps into a lake`, `a street with no people | leads to a church`; one may doubt `a car
        with no driver | crosses the bridge`.
        """
        one = word.endswith("s") and not {word[:-1], word[:-2]}.isdisjoint(self._doing)
        if not (one or word in self._doing) or one == self.is_plural(self._noun(self.content(host) or host)):
            return "no"
        if not one and not self.is_plural(before):  # "rooms without a hat stand"
            return "no"
        governs = follower in self._article or follower in self._preposition
        if self._worn(before):
            return "yes" if governs else "maybe"
        if one and governs and self.is_plural(before) and before not in self._describing:
            return "yes"
        return "maybe" if one and follower in self._article and not self._is_attribute(before) else "no"

    def _may_hold(self, host: Chunk) -> bool:
        """Whether things lie or hang at the host, which does so not itself: `a closet`, `a wall`."""
        return self._head(host) in self._place | self._backdrop

    def _is_found_there(self, chunk: Chunk, place: int, *, worn: bool) -> bool:
        """Whether a verb in -ing says that the thing is at its host: `shoes lying around`, `keys hanging on it`."""
        low = [word.low for word in chunk[place + 1 :]]
        back = len(low) > 1 and low[-1] in ("it", "them") and low[-2] in self._preposition
        return (back or low in (["around"], ["about"])) and (not worn or chunk[place].low in _LIES)

    def _ends_place(self, chunk: Chunk, end: int) -> bool:
        """Whether a place ends here: at the end, or where another begins."""
        return end == len(chunk) or chunk[end].low in self._locative

    def _is_at_spot(self, spot: str, host: Chunk, thing: str) -> bool:
        """Whether the absent `thing` would be at a spot without an article, and not the host.

        `a man without a ring on finger`, `a kitchen without dishes in sink`, unlike `a cake without candles on plate`,
        `a house without windows on street`, `a portrait without a hat on grass`.
        """
        if spot in self._body:
            return True
        whole, head = self._place if self._worn(thing) else self._place | self._depiction, self._head(host)
        if head not in whole or thing in self._mover:
            return head in whole
        return spot not in self._place | self._setting and (spot not in _PICTURED or head in self._depiction)

    def _head(self, host: Chunk) -> str:
        """The noun that the host names."""
        return self._noun(self.without_dangling(self.content(host)) or host)

    def _says_state(self, chunk: Chunk, place: int) -> bool:
        """Whether it is said here how something is: `chained to a fence`, `made of wood`, `painted blue`.

        With something known behind it the words stay together: `without dishes stacked in the sink`.
        """
        word, follower = chunk[place].low, chunk[place + 1].low
        if word not in self._participle and not (word.endswith("ed") and len(word) > 5 and word[-3:] != "eed"):
            return False
        if follower not in self._preposition or place + 2 == len(chunk):
            return follower == "of" or self._is_attribute(follower)
        if follower not in self._locative or chunk[place + 2].low not in self._known:
            return chunk[place + 2].low not in self._pointing
        return self._noun(chunk[place + 2 :]) in self._occasion | self._setting

    def _noun(self, chunk: Chunk) -> str:
        """The last word of the thing that the chunk begins with."""
        end = self.find_governor(chunk)
        return chunk[end - 1 if end else -1].low
