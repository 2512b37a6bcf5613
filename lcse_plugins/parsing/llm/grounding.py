"""Whether a model's reply can be believed, judged by the query's own words.

    objections('a dog without a leash', reply)  → () or the reasons not to believe it

Four checks, none of which needs a grammar; the words they know are in `cues.txt`:
1. Words: a concept is made of the query's words, inflection apart, and no word that matters is left out.
2. Cues: every negation cue of the query is used: it excludes something, is part of a concept, or is cancelled.
3. Signs: what stands next to a cue is excluded, and nothing is excluded that no cue leads to.
4. Operators: "or" between two concepts is not read as "and", nor the other way round.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from importlib.resources import files
from itertools import pairwise, takewhile
from typing import NamedTuple

from lcse_plugins.errors import QueryTooComplex
from lcse_plugins.parsing.llm.schema import Reply, reply_of
from lcse_plugins.query import Query, concepts, excludes

__all__ = ["doubts", "objections"]


def _load() -> dict[str, frozenset[str]]:
    """The sets of words in `cues.txt`, by their headings."""
    text = files("lcse_plugins.parsing.llm").joinpath("cues.txt").read_text(encoding="utf-8")
    blocks = re.split(r"^\[(\w+)\].*\n", text, flags=re.MULTILINE)[1:]
    return {name: frozenset(words.split()) for name, words in zip(blocks[::2], blocks[1::2], strict=True)}


def _any_of(phrases: Iterable[str], then: str = "") -> re.Pattern[str]:
    longest = sorted((phrase.replace("_", " ") for phrase in phrases), key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(longest)})\b{then}")


_SETS = _load()
_CANCELLED, _EXCLUSIVE = _any_of(_SETS.pop("cancelled")), _any_of(_SETS.pop("exclusive"))
_OPEN = _any_of(_SETS.pop("open"), then=r".*?(?=[,;.]|\b(?:but|and|or)\b|$)")  # to the end of the clause
_JOINED = _any_of(word for words in _SETS.values() for word in words if "_" in word)
_BEFORE, _BEHIND, _OPTIONAL, _EXCEPT = (_SETS[name] for name in ("before", "behind", "optional", "except"))
_LIGHT, _LISTING, _AND, _OR, _CONDITION = (_SETS[name] for name in ("light", "listing", "and", "or", "condition"))
_CUES = _BEFORE | _BEHIND
_KNOWN = _LIGHT | _CUES | _OPTIONAL | _AND | _OR
_PASSED = _LIGHT - _SETS["turns"] - _CONDITION | {"(", ":"}
_ARTICLES, _JOINS, _NOBODY = map(frozenset, (("a", "an", "the"), ("and", "or", "nor"), ("nobody", "no_one")))
_PLACES = frozenset(("in", "on", "at", "with", "of"))
_IRREGULAR = dict(pair.split(":") for pair in _SETS["irregular"])
_TOKEN = re.compile(r"-(?:free|less)\b|(?<![\w-])[-−!](?=\w)|[^\W_]+(?:_[^\W_]+)*(?:'[^\W_]+)?|[,;.:()/&+|?]")
_UNSPACED = re.compile(r"[぀-ヿ㐀-鿿가-힯฀-๿]")
_NEGATES = re.compile(
    r"(?:^|[,;] |\b(?:y|e|pero|ma|hay|que) )no\b|\b(?:an?|the|of|with|and|or|not|in|on|at|is|are|but|for|from|by|to|"
    r"any|that|just|only|dogs?|cats?|cars?|portrait|person|people|man|woman|selfie|text|logo)\b|"
    r"(?:ing|ed|ness|ful|less|ish|wn)\b|ee|oo|th|sh|ck|wh|ght"
)
"""Signs that a bare "no" is a negation: where it stands, or English words around it."""


def objections(text: str, reply: Reply) -> tuple[str, ...]:
    """Why `reply` cannot be what `text` says; empty when it can."""
    if _UNSPACED.search(text):
        logic = len(reply) > 1 or any(len(one.must) != 1 or len(one.must[0]) > 1 or one.must_not for one in reply)
        return ("it has logic, which cannot be checked in this script",) if logic else ()
    return tuple(dict.fromkeys(_Check(text, reply).run()))


def doubts(text: str, query: Query) -> tuple[str, ...]:
    """Why a reading by rules may negate the wrong thing: it has swallowed a cue, or fails the check of replies."""
    cues = _CUES - _OPTIONAL | {"if"}
    if cues.isdisjoint(_words(text)[0]) and not excludes(query):
        return ()
    named = {word for concept in concepts(query) for word in _words(concept)[0]}
    swallowed = sorted(cues & named)
    try:
        return (*(f"{cue!r} is part of a concept" for cue in swallowed), *objections(text, reply_of(query)))
    except QueryTooComplex:
        return ()


class _Mention(NamedTuple):
    """A concept of the reply, and the places in the query where its words stand."""

    text: str
    negated: bool
    alternative: int
    entry: int
    places: tuple[tuple[int, ...], ...]

    @property
    def at(self) -> tuple[int, ...]:
        return self.places[0]


class _Check:
    """One reply against one query."""

    def __init__(self, text: str, reply: Reply) -> None:
        self.words, self.open = _words(text)
        self.reply = reply
        self.exclusive = bool(_EXCLUSIVE.search(_plain(text)))
        self.missing: list[str] = []
        self.mentions = list(self._mentions())

    def run(self) -> Iterator[str]:
        if self.missing:
            yield from (f"{concept!r} is not made of the query's words" for concept in self.missing)
            return
        covered = self.open.union(i for mention in self.mentions for place in mention.places for i in place)
        for i, word in enumerate(self.words):
            if word not in _KNOWN and word[0].isalnum() and i not in covered:
                yield f"{word!r} is left out"
        in_turn = self._in_turn() if self.exclusive else frozenset[str]()
        if self.exclusive and not in_turn:
            yield "one of several is asked for, which the alternatives do not say"
        for mention in self.mentions:
            if mention.text not in in_turn:
                yield from self._sign(mention)
        yield from self._unused_cues(bool(in_turn))
        if not self.exclusive:
            yield from self._operators()

    def _mentions(self) -> Iterator[_Mention]:
        for number, one in enumerate(self.reply):
            listed = [(text, False, entry) for entry, choices in enumerate(one.must) for text in choices]
            listed += [(text, True, -1 - entry) for entry, text in enumerate(one.must_not)]
            for text, negated, entry in listed:
                if places := self._places(text):
                    right = [at for at in places if self._has_cue(at) == negated]
                    yield _Mention(text, negated, number, entry, tuple(right or places[:1]))
                else:
                    self.missing.append(text)

    def _places(self, concept: str) -> list[tuple[int, ...]]:
        """Where the words of a concept stand, in order and close together if they do anywhere."""
        wanted, _ = _words(concept)
        heavy = [word for word in wanted if word not in _LIGHT and word.isalnum()] or wanted
        spots = [[i for i, word in enumerate(self.words) if _same(word, one)] for one in heavy]
        if not spots or not all(spots):
            return []
        places = []
        for start in spots[0]:
            at = [start]
            for options in spots[1:]:
                at.append(next((i for i in options if i > at[-1]), min(options, key=lambda i: abs(i - start))))
            places.append(tuple(sorted(set(at))))
        return places

    @cached_property
    def _inside(self) -> frozenset[int]:
        """Cues that are words of a concept themselves, such as the "no" of "no smoking sign"."""
        found: set[int] = set()
        for mention in self.mentions:
            kept, _ = _words(mention.text)
            span = range(mention.at[0], mention.at[-1] + 1)
            if all(any(_same(self.words[i], word) for word in kept) for i in span):
                found.update(span)
        return frozenset(found)

    def _before(self, start: int) -> int:
        """The nearest word before `start` that is not light, or that ends an exclusion; -1 if there is none."""
        i = start - 1
        while i >= 0 and self.words[i] in _PASSED:
            i -= 1
        return i

    def _follows(self, mention: _Mention, *words: str) -> bool:
        return (i := self._before(mention.at[0])) >= 0 and self.words[i] in words

    def _cue_before(self, start: int) -> int | None:
        """The cue that leads to the concept at `start` with nothing but light words between."""
        return i if (i := self._before(start)) >= 0 and self.words[i] in _BEFORE else None

    def _cue_behind(self, end: int) -> int | None:
        """The cue that denies what stands before it: "dog-free", "people are absent", "dogs not allowed"."""
        i = end + 1
        while i < len(self.words) and self.words[i] in _SETS["auxiliary"]:
            i += 1
        word = self.words[i] if i < len(self.words) else ""
        if word in ("not", "never"):
            clause = takewhile(lambda word: word not in (",", ";", ".", "and", "but", "or"), self.words[i + 1 :])
            return i if _LIGHT.issuperset(clause) else None
        return i if word in _BEHIND or (word == "free" and i == end + 1) else None

    def _has_cue(self, at: tuple[int, ...]) -> bool:
        return self._cue_before(at[0]) is not None or self._cue_behind(at[-1]) is not None

    def _between(self, one: _Mention, other: _Mention) -> list[str]:
        """The words between two concepts, the second of which begins later; they may share their last words."""
        last = max((i for i in one.at if i < other.at[0]), default=other.at[0])
        return self.words[last + 1 : other.at[0]]

    def _continues(self, one: _Mention, other: _Mention) -> bool:
        """Whether a list that excludes `one` may go on to `other`: "no A or B", "no A, B and C"."""
        between = self._between(one, other)
        start = other.at[0]
        if not between or not set(between) <= _LISTING:
            return False
        if between == ["and"]:  # a verb begins there: "has no hat and holds a kite", "without a hat and smiling"
            turns = self.words[start].endswith("ing") and not self.words[one.at[0]].endswith("ing")
            return not turns and not set(self.words[start + 1 : start + 2]) & (_ARTICLES | {"by", "his", "her"})
        if between[0] == "," and not _JOINS.isdisjoint(between):
            return not self._has_cue(one.at)  # "no A, or B" turns to B; "no A, B, or C" is one list
        return between[0] != "," or _ARTICLES.isdisjoint(between) or not _JOINS.isdisjoint(self.words[start:])

    def _led_to(self, mention: _Mention) -> bool:
        """Whether a cue leads to an excluded concept, by itself or through the list it stands in."""
        inside = any(_is_less(self.words[i], mention.text) or self.words[i] in _NOBODY for i in mention.at)
        if inside or self._has_cue(mention.at) or (len(self.reply) > 1 and self._follows(mention, "if", "when")):
            return True
        earlier = {other.at: other for other in self.mentions if other.negated and other.at < mention.at}
        return any(self._continues(other, mention) and self._led_to(other) for other in earlier.values())

    def _sign(self, mention: _Mention) -> Iterator[str]:
        """Why a concept should have the other sign."""
        conditional = len(self.reply) > 1
        if mention.at[0] in self.open:
            yield f"{mention.text!r} is left open by the query"
        elif mention.negated:
            if not self._led_to(mention):
                yield f"nothing excludes {mention.text!r}"
            elif conditional and self._follows(mention, "unless"):
                yield f"{mention.text!r} is excluded, behind 'unless' and a choice"
        else:
            before, behind = self._cue_before(mention.at[0]), self._cue_behind(mention.at[-1])
            if before is not None and self._binds(before):
                yield f"{mention.text!r} is wanted, behind {self.words[before]!r}"
            if behind is not None and behind not in self._inside:
                yield f"{mention.text!r} is wanted, before {self.words[behind]!r}"
            if any(self.words[i] in _NOBODY for i in mention.at):
                yield f"{mention.text!r} is wanted, and the query says nobody"
            for other in self.mentions:
                if other.negated and other.text != mention.text and self._goes_on(other, mention):
                    yield f"{mention.text!r} is wanted, in the list of what {other.text!r} begins"

    def _binds(self, i: int) -> bool:
        """Whether the cue must exclude something here: it is no word of a concept, no condition and no exception."""
        word = self.words[i]
        if i in self._inside or (word == "unless" and len(self.reply) > 1):
            return False
        if word in _EXCEPT and {"no", "nothing", "none", "without", "not"} & set(self.words[:i]):
            return False  # "no animals except dogs"
        return word not in _OPTIONAL or (word in _BEFORE and (not i or self.words[i - 1] in ",;."))

    def _goes_on(self, excluded: _Mention, mention: _Mention) -> bool:
        """Whether what follows an excluded concept must be excluded with it."""
        between = set(self._between(excluded, mention))
        if _JOINS & between and self._continues(excluded, mention):
            return not _ARTICLES & between and self._led_to(excluded)
        return bool(between & _PLACES) and between <= _PLACES | _ARTICLES and self._led_to(excluded)

    def _in_turn(self) -> frozenset[str]:
        """The concepts of which one is asked for, if each alternative wants another and excludes the rest."""
        if len(self.reply) < 2 or any(len(entry) > 1 for one in self.reply for entry in one.must):
            return frozenset()
        numbers = range(len(self.reply))
        signed = [frozenset((m.text, m.negated) for m in self.mentions if m.alternative == i) for i in numbers]
        own = [concepts - frozenset.intersection(*signed) for concepts in signed]
        names = frozenset(text for concepts in own for text, _ in concepts)
        wanted = {text for concepts in own for text, negated in concepts if not negated}
        if wanted == names and set(own) == {frozenset((text, text != name) for text in names) for name in names}:
            return names
        either = not wanted and len(names) == len(own) and {len(concepts) for concepts in own} == {1}
        return names if either and not {"or", "one"} & set(self.words) else frozenset()

    def _unused_cues(self, in_turn: bool) -> Iterator[str]:
        used: set[int | None] = set()
        for at in (at for mention in self.mentions if mention.negated for at in mention.places):
            used.update((self._cue_before(at[0]), self._cue_behind(at[-1]), *at))
        for i, word in enumerate(self.words):
            if word in _CUES and self._binds(i) and i not in used and not (in_turn and word in ("not", "never")):
                yield f"{word!r} is not used"

    def _operators(self) -> Iterator[str]:
        words = set(self.words)
        first = self.reply[0]
        choice = len(self.reply) > 1 or any(len(entry) > 1 for entry in first.must)
        if not words & _AND and len(self.reply) == 1 and len(first.must) > 1 and not first.must_not:
            yield "nothing in the query joins its concepts"
        if choice and not words & (_OR | _CONDITION):
            yield "nothing in the query offers a choice"
        order = sorted({mention.at: mention for mention in self.mentions}.values(), key=lambda mention: mention.at)
        for one, other in pairwise(order):
            yield from self._joined_as(one, other, set(self._between(one, other)))

    def _joined_as(self, one: _Mention, other: _Mention, between: set[str]) -> Iterator[str]:
        here = [m for m in self.mentions if m.text == one.text]
        there = [m for m in self.mentions if m.text == other.text]
        pairs = [(a, b) for a in here for b in there if a.alternative == b.alternative]
        met = any(a.entry != b.entry for a, b in pairs)
        choices = any(a.entry == b.entry for a, b in pairs)
        apart = choices or {m.alternative for m in here} != {m.alternative for m in there}
        own_cue = bool(between & _BEFORE - {"nor"})
        if "or" in between and not (one.negated and other.negated and not own_cue) and met and not apart:
            yield f'"or" between {one.text!r} and {other.text!r} is read as "and"'
        if not one.negated and not other.negated and "or" not in between:
            if ("and" in between and not met) or (choices and between & _AND - {","}):
                yield f"{one.text!r} and {other.text!r} are joined, not a choice"
        if one.negated and other.negated and not met and not own_cue:
            yield f"{one.text!r} and {other.text!r} are excluded together, not in turn"


def _plain(text: str) -> str:
    """Lower case, one kind of apostrophe, contractions and typos of cues spelled out."""
    text = re.sub("[’ʼ‘]", "'", unicodedata.normalize("NFKC", text).casefold())
    text = re.sub(r"\bcan(?:'t|not)\b|\bcant\b", "can not", text).replace("won't", "will not")
    text = re.sub(r"\b(there|it|that|who|he|she|where|what)'s\b", r"\1 is", text)
    text = re.sub(r"\b(is|are|was|were|do|does|did|has|have|had|should|would|could|must)(?:n't|nt)\b", r"\1 not", text)
    text = re.sub(r"\bw/o(?:ut)?\b|\bwit?h?out\b|\bwi(?:ht|tho)ut\b|\bwithou\b", "without", text)
    return " ".join(text.split())


@lru_cache(maxsize=512)
def _words(text: str) -> tuple[list[str], frozenset[int]]:
    """The words of a text, with cues of several words as one, and which of them the text leaves open."""
    plain = _JOINED.sub(lambda match: match[0].replace(" ", "_"), _plain(text))
    opened = {i for match in _OPEN.finditer(plain) for i in range(*match.span())}
    cancelled = opened.union(i for match in _CANCELLED.finditer(plain) for i in range(*match.span()))
    # one "no" between two words that are not English is Portuguese or Japanese for "in" or "of"
    particle = re.findall(r"\bno\b", plain) == ["no"] and not _NEGATES.search(plain)
    words: list[str] = []
    left_open: set[int] = set()
    for match in _TOKEN.finditer(plain):
        word, at = match[0].replace("−", "-"), match.start()
        if at in opened:
            left_open.add(len(words))
        idle = (at in cancelled and word in _CUES) or (word == "no" and particle)
        words.append("a" if idle else word)
    return words, frozenset(left_open)


def _same(word: str, other: str) -> bool:
    """Whether two words are one, inflection apart."""
    return _stem(word) == _stem(other) or (word in _NOBODY and other in _SETS["people"]) or _is_less(word, other)


def _is_less(word: str, concept: str) -> bool:
    """Whether a word in -less denies the concept: "cloudless" and "clouds"."""
    base = word.removesuffix("less")
    denies = base != word and len(base) > 2 and word not in _SETS["lexical"]
    return denies and _stem(base) == _stem(concept.split()[-1].casefold())


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    word = word.removesuffix("'s")
    word = _IRREGULAR.get(word, word)
    if not word.isascii() or len(word) < 4:
        return word
    for ending, instead in (("ies", "y"), ("ves", "f"), ("sses", "ss"), ("shes", "sh"), ("ches", "ch"), ("xes", "x")):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            return word[: -len(ending)] + instead
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            word = re.sub(r"([^sl])\1$", r"\1", word.removesuffix(ending))
            break
    return word.removesuffix("e")
