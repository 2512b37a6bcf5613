"""From words to a row of operands and operators: which words are logic, which are only words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from lcse_plugins.parsing.english.absences import absence_length, is_free, left_out_length, may_be_outside, put_absent
from lcse_plugins.parsing.english.items import NEGATIONS, Item, Tag, is_words, tag_at
from lcse_plugins.parsing.english.lexicon import Lexicon
from lcse_plugins.parsing.english.names import is_title, is_written, may_be_name, name_length, sign_length
from lcse_plugins.parsing.english.orders import may_end_thing
from lcse_plugins.parsing.english.senses import means_it
from lcse_plugins.parsing.english.turns import (
    asks_anew,
    is_after_negation,
    is_after_order,
    may_begin,
    orders_absence,
)
from lcse_plugins.parsing.english.words import Word

__all__ = ["tag_cues"]

_STOPS = frozenset(".!?;")
_LISTS: frozenset[Tag] = frozenset({"both", "either", "exactly one", "neither", "not both"})
_PARENTHESES: dict[str, Tag] = {"(": "open", ")": "close"}
_WHOLE = ("fixed", "emphatic")


def tag_cues(words: Sequence[Word], lexicon: Lexicon) -> tuple[list[Item], set[Word]]:
    """The items of a query, and the words that look like a cue but are known to be none."""
    return _Tagger(words, lexicon).run()


class _Tagger:
    """Goes over the words once, by rules.

    A rule looks at a place, where `_found` is the longest cue, and says how many words it took: 0 when it has no say.
    """

    def __init__(self, words: Sequence[Word], lexicon: Lexicon) -> None:
        self._words = words
        self._low = [word.low for word in words]
        self._lexicon = lexicon
        self._items: list[Item] = []
        self._known: set[Word] = set()
        self._listing = False
        self._found = 0, ""
        self._mark_rules = (
            self._quotation, self._stop, self._colon, self._mark, self._example, self._cue, self._word,
        )  # fmt: skip
        self._word_rules = (
            self._inscription, self._sign, self._absence, self._order, self._fixed, self._example, self._turn,
            self._cue, self._hyphenated, self._free, self._non, self._word,
        )  # fmt: skip

    def run(self) -> tuple[list[Item], set[Word]]:
        at = 0
        while at < len(self._words):
            self._found = self._lexicon.cues.match(self._low, at)
            rules = self._word_rules if self._words[at].kind == "word" else self._mark_rules
            at += next(filter(None, (rule(at) for rule in rules)))
        return self._items, self._known

    # ------------------------------------------------------------------------------------ rules for marks

    def _quotation(self, at: int) -> int:
        """A quoted text, a smiley, the full stop of `No. 5`."""
        word = self._words[at]
        number = word.low == "." and self._low[at - 1] == "no" and self._low[at + 1 : at + 2]
        if word.kind in ("quoted", "smiley") or (number and number[0].isdigit()):
            return self._keep(at, 1)
        return 0

    def _stop(self, at: int) -> int:
        """The end of a sentence, or a dash; not that of `excl. dogs`."""
        if at and self._low[at] == "." and _is_short(self._words[at - 1]):
            return 1
        if self._words[at].kind != "dash" and self._low[at] not in _STOPS:
            return 0
        self._listing = False
        return self._put("stop", at, 1)

    def _colon(self, at: int) -> int:
        """`none of these: dogs`, `exclude: dogs`, `no people: beach`."""
        if self._low[at] != ":" or not self._items:
            return 0
        last = self._items[-1]
        if last.tag in _LISTS:
            return 1
        if last.tag in NEGATIONS:
            last.tag = "neither"
            return 1
        return self._put("stop", at, 1) if is_after_negation(self._items, self._lexicon) else 0

    def _mark(self, at: int) -> int:
        """A comma, a parenthesis, the sign of `🚫 no dogs`."""
        low = self._low[at]
        if low == ",":
            return self._keep(at, 1) if self._listing else self._put("comma", at, 1)
        if low in _PARENTHESES:
            return self._put(_PARENTHESES[low], at, 1)
        sign = self._words[at].kind == "emoji" and self._found[0]
        return 1 if sign and self._negates(at + 1) else 0

    # ------------------------------------------------------------------------------------ rules for words

    def _sign(self, at: int) -> int:
        """The name of a sign: `no smoking sign`; where a query begins one may doubt that of `no war banner`."""
        if length := sign_length(self._words, self._low, at, self._lexicon):
            return self._keep(at, length)
        length = name_length(self._low, at, self._lexicon)
        return self._doubt(at, length) if length else 0

    def _inscription(self, at: int) -> int:
        """What is written on a thing, up to the end of the clause: `a sign that says | no more war`."""
        if not self._negates(at) or not is_written(self._low, at, self._lexicon):
            return 0
        end = next((k for k in range(at, len(self._low)) if self._words[k].kind in ("mark", "dash")), len(self._low))
        again = any(self._lexicon.cues.match(self._low, k)[0] for k in range(at + self._found[0], end))
        return self._doubt(at, end - at) if again else self._keep(at, end - at)

    def _absence(self, at: int) -> int:
        """What says that the thing in front is absent: `cats | are missing`, `leave the cats | out`."""
        if tag_at(self._items, len(self._items) - 1) != "words":
            return 0
        if self._low[at] == "out":
            operand = self._items[-1].words
            length = left_out_length(self._words, self._low, at, operand, self._lexicon)
        elif self._low[at : at + 2] == ["not", "in"] and not may_be_outside(self._items, self._lexicon):
            length = 0
        else:
            length = absence_length(self._words, self._low, at, self._lexicon)
        if length:
            self._put("absent", at, length)
            *_, verb, place = self._low[: at + length]
            self._items[-1].doubtful = verb in ("missing", "absent") and place != "from"  # "label missing on | bottle"
        return length

    def _order(self, at: int) -> int:
        """A verb that asks for the absence of what follows, or the beginning of a name: `drop tower ride`."""
        length, _ = self._lexicon.imperative.match(self._low, at)
        if not length:
            return 0
        cue, tag = self._found
        meant = length > cue and tag != "nobody"
        answer = orders_absence(self._items, self._words, at, length, self._lexicon) if meant else "no"
        if answer != "yes":
            return self._doubt(at, length) if answer == "maybe" else 0
        self._put("without", at, length)
        self._items[-1].order = True
        return length

    def _fixed(self, at: int) -> int:
        """A phrase with a cue in it that is none: `salt and pepper`, `is | not missing`, `not only`."""
        length, tag = self._found
        if tag == "leeway":
            return self._keep(at, length, known=False)
        if tag in _WHOLE:
            self._listing |= self._low[at : at + length] == ["such", "as"]
            return self._keep(at, length)
        if tag in NEGATIONS and length > 1:
            longer, hidden = self._lexicon.cues.match(self._low, at + length - 1)
            if longer > 1 and hidden in _WHOLE:
                return self._keep(at, length - 1)
        return 0

    def _example(self, at: int) -> int:
        """An `and` or `or` among examples: `animals such as cats and dogs`."""
        length, tag = self._found
        return self._keep(at, length) if self._listing and tag in ("and", "or") else 0

    def _turn(self, at: int) -> int:
        """Where a wish begins behind what is not wanted: `no people, | only dogs`, `hate dogs, | love cats`."""
        word = self._words[at]
        includes = word.low == "include" and may_end_thing(self._low[at - 1], self._lexicon)
        if (includes or word.low in ("only", "just")) and is_after_negation(self._items, self._lexicon):
            return self._put("but", at, 1)
        if word.low in self._lexicon.words("wish") and is_after_order(self._items):
            self._items[-1] = Item("but", [*self._items[-1].words, word], doubtful=word.low == "like")
            return 1
        if asks_anew(self._items, self._low, at, self._lexicon):  # the request itself is read as words
            self._put("but", at, 0)
        return 0

    def _cue(self, at: int) -> int:
        """A word or phrase that is logic."""
        length, tag = self._found
        if not length or not self._is_meant(tag, at, length):
            return 0
        return self._nobody(at, length) if tag == "nobody" else self._operator(cast("Tag", tag), at, length)

    def _hyphenated(self, at: int) -> int:
        """`dog-free`, `phone-less`, `no-car`: an absent operand, cut out of the words around it."""
        word = self._words[at]
        stem, _, ending = word.low.rpartition("-")
        if stem == "no" and ending in self._lexicon.words("mover"):
            self._items.append(Item("words", [word._replace(low=ending, start=word.start + 3)], negated=True))
            return 1
        if not stem or ending not in ("free", "less") or word.low in self._lexicon.words("lexical"):
            return 0
        put_absent(self._items, [word._replace(low=stem, end=word.end - len(ending) - 1)], self._lexicon)
        return 1

    def _free(self, at: int) -> int:
        """The `free` of `people free beach`; one may doubt that of `kids free meal`."""
        answer = is_free(self._low, at, self._lexicon)
        if answer != "yes":
            return self._doubt(at, 1) if answer == "maybe" else 0
        put_absent(self._items, [], self._lexicon)
        return 1

    def _non(self, at: int) -> int:
        """`non-white`, of which one may doubt whether it is an absence; not `non-stick`."""
        names = self._lexicon.words("non")
        if self._low[at] == "non":
            return self._keep(at, 2) if not names.isdisjoint(self._low[at + 1 : at + 2]) else 0
        other = self._low[at].removeprefix("non-")
        return self._doubt(at, 1) if other != self._low[at] and other not in names else 0

    def _word(self, at: int) -> int:
        return self._keep(at, 1, known=False)

    # ------------------------------------------------------------------------------------ putting items down

    def _keep(self, at: int, length: int, *, known: bool = True) -> int:
        """Add words to the operand under way."""
        if not is_words(self._items, len(self._items) - 1):
            self._items.append(Item("words"))
        taken = self._words[at : at + length]
        self._items[-1].words.extend(taken)
        if known:
            self._known.update(taken)
        return length

    def _doubt(self, at: int, length: int) -> int:
        """Add words to the operand under way, though they may be logic."""
        self._keep(at, length)
        self._items[-1].doubtful = True
        return length

    def _put(self, tag: Tag, at: int, length: int) -> int:
        self._items.append(Item(tag, list(self._words[at : at + length])))
        return length

    def _nobody(self, at: int, length: int) -> int:
        """`nobody is …`: no people."""
        last = self._words[at + length - 1]
        self._put("no", at, length)
        self._items.append(Item("words", [Word("people", last.start, last.end, instead="people")]))
        following = self._low[at + length : at + length + 1]
        return length + len(self._lexicon.words("be").intersection(following))

    def _operator(self, tag: Tag, at: int, length: int) -> int:
        self._put(tag, at, length)
        self._items[-1].doubtful = (at > 0 and self._low[at] == "ignoring") or may_be_name(self._low, at, self._lexicon)
        phrase = " ".join(self._low[at : at + length])
        ampersand = self._words[at].end - self._words[at].start == 1
        self._items[-1].strong = tag == "and" and (ampersand or phrase in self._lexicon.words("strong and"))
        self._items[-1].framed = length > 1 and tag in ("and", "or", "but") and not self._items[-1].strong
        return length

    # ------------------------------------------------------------------------------------ is it a cue?

    def _negates(self, at: int) -> bool:
        """Whether a negation in words begins here."""
        return self._lexicon.cues.match(self._low, at)[1] in (*NEGATIONS, "nobody")

    def _is_meant(self, tag: str, at: int, length: int) -> bool:
        """Whether a cue is one here."""
        if tag == "not" and self._low[at] in ("do", "does", "did"):
            host = self._items[-1].words if tag_at(self._items, len(self._items) - 1) == "words" else []
            return len(host) < 4 or host[-1].low in ("that", "which", "who", "it", "they")
        if tag in NEGATIONS and is_title(self._words, at, length, self._lexicon):
            return False
        if self._low[at + length - 1] == "never":
            return may_begin(self._items)
        return means_it(self._low, at, length, self._lexicon)


def _is_short(word: Word) -> bool:
    """Whether a word is an abbreviation that a full stop may end."""
    return word.low in ("excluding", "including", "without") and word.end - word.start < 5
