"""From words to a row of operands and operators: which words are logic, which are only words."""

from __future__ import annotations

from collections.abc import Sequence

from lcse_plugins.parsing.english.items import NEGATIONS, Item, negation_of, tag_at
from lcse_plugins.parsing.english.lexicon import Lexicon
from lcse_plugins.parsing.english.names import is_title, may_be_free, may_be_noun, may_order, means_none, sign_length
from lcse_plugins.parsing.english.words import Word

__all__ = ["tag_cues"]

_JOINTS = frozenset({"and", "or", "but", "nor", "exclusive"})
_MODALS = frozenset({"can", "could", "will", "would", "may", "might"})
_STOPS = frozenset(".!?;")
_LISTS = frozenset({"both", "either", "exactly one", "neither", "not both"})


def tag_cues(words: Sequence[Word], lexicon: Lexicon) -> tuple[list[Item], set[Word]]:
    """The items of a query, and the words that look like a cue but are known to be none."""
    return _Tagger(words, lexicon).run()


class _Tagger:
    def __init__(self, words: Sequence[Word], lexicon: Lexicon) -> None:
        self._words = words
        self._low = [word.low for word in words]
        self._lexicon = lexicon
        self._items: list[Item] = []
        self._known: set[Word] = set()
        self._listing = False

    def run(self) -> tuple[list[Item], set[Word]]:
        at = 0
        while at < len(self._words):
            at += self._step(at)
        return self._items, self._known

    def _step(self, at: int) -> int:
        word = self._words[at]
        if word.kind in ("quoted", "smiley"):
            return self._keep(at, 1)
        if word.low == "." and self._low[at - 1] == "no" and self._low[at + 1 : at + 2] and self._low[at + 1].isdigit():
            return self._keep(at, 1)  # "No. 5"
        if word.kind == "dash" or word.low in _STOPS:
            self._listing = False
            return self._put("stop", at, 1)
        if word.low == ":" and self._items and self._items[-1].tag in _LISTS:
            return 1
        if word.low == ":" and self._items and self._items[-1].tag in NEGATIONS:
            self._items[-1].tag = "neither"
            return 1
        if word.low == ":" and self._after_negation():  # "no people: beach"
            return self._put("stop", at, 1)
        if word.kind == "emoji" and self._lexicon.cues.match(self._low, at)[0] and self._negates(at + 1):
            return 1  # "🚫 no dogs"
        if word.low == "," and self._listing:
            return self._keep(at, 1)
        if word.low == ",":
            return self._put("comma", at, 1)
        if word.low in "()":
            return self._put("open" if word.low == "(" else "close", at, 1)
        if length := sign_length(self._words, self._low, at, self._lexicon):
            return self._keep(at, length)
        if (length := self._absent(at)) > 0:
            return self._put("absent", at, length)
        length, tag = self._lexicon.cues.match(self._low, at)
        order, _ = self._lexicon.imperative.match(self._low, at)
        if order > length and tag != "nobody" and self._begins():
            return self._order(at, order)
        if tag in ("fixed", "emphatic"):
            self._listing |= self._low[at : at + length] == ["such", "as"]
            return self._keep(at, length)
        if tag in NEGATIONS and (other := self._lexicon.cues.match(self._low, at + length - 1))[0] > 1:
            if other[1] in ("fixed", "emphatic"):  # "is not missing", "does not only have"
                return self._keep(at, length - 1)
        if self._listing and tag in ("and", "or"):
            return self._keep(at, length)
        if word.low in ("only", "just") and self._after_negation():
            return self._put("but", at, 1)
        if word.low in self._lexicon.words("wish") and self._after_order():
            self._items[-1] = Item("but", [*self._items[-1].words, word], doubtful=word.low == "like")
            return 1
        if self._asks_anew(at):
            self._put("but", at, 0)
        if tag and self._means_it(tag, at, length):
            return self._cue(tag, at, length)
        return self._privative(at) or self._keep(at, 1, known=False)

    # ------------------------------------------------------------------------------------ putting items down

    def _keep(self, at: int, length: int, *, known: bool = True) -> int:
        """Add words to the operand under way."""
        if not self._items or self._items[-1].tag != "words" or self._items[-1].negated:
            self._items.append(Item("words"))
        taken = self._words[at : at + length]
        self._items[-1].words.extend(taken)
        if known:
            self._known.update(taken)
        return length

    def _put(self, tag: str, at: int, length: int) -> int:
        self._items.append(Item(tag, list(self._words[at : at + length])))
        return length

    def _order(self, at: int, length: int) -> int:
        """A verb that asks for the absence of what follows, or the beginning of a name: `drop tower ride`."""
        if not self._items and not may_order(self._words, at, length, self._lexicon):
            self._keep(at, length)
            self._items[-1].doubtful = True
            return length
        self._put("without", at, length)
        self._items[-1].order = True
        return length

    def _cue(self, tag: str, at: int, length: int) -> int:
        if tag == "nobody":
            last = self._words[at + length - 1]
            self._items.append(Item("no", list(self._words[at : at + length])))
            self._items.append(Item("words", [Word("people", last.start, last.end, instead="people")]))
            return length + (self._low[at + length : at + length + 1] in (["is"], ["are"], ["was"], ["were"]))
        self._put(tag, at, length)
        self._items[-1].doubtful = at > 0 and self._low[at] == "ignoring"
        phrase = " ".join(self._low[at : at + length])
        ampersand = self._words[at].end - self._words[at].start == 1
        self._items[-1].strong = tag == "and" and (ampersand or phrase in self._lexicon.words("strong and"))
        self._items[-1].framed = length > 1 and tag in ("and", "or", "but") and not self._items[-1].strong
        return length

    # ------------------------------------------------------------------------------------ is it a cue?

    def _negates(self, at: int) -> bool:
        """Whether a negation in words begins here."""
        return self._lexicon.cues.match(self._low, at)[1] in (*NEGATIONS, "nobody")

    def _begins(self) -> bool:
        """Whether a request may begin here."""
        at = len(self._items) - 1
        if tag_at(self._items, at) == "not" and self._items[at].words[0].low == "do":  # "do not | exclude dogs"
            at -= 1
        if at < 0:
            return True
        last = self._items[at]
        if last.tag == "words":
            return all(word.low in ("please", "i", "you", "can", "could", "also", "then") for word in last.words)
        return last.tag in ("stop", "comma", "but", "and", "open")

    def _after_negation(self) -> bool:
        """Whether the operand under way is a negated one: `no people | only dogs`."""
        last = len(self._items) - 1
        if tag_at(self._items, last) != "words" or negation_of(self._items, last) is None:
            return False
        return self._items[last].words[-1].low not in self._lexicon.words("preposition")  # "dogs with only one eye"

    def _after_order(self) -> bool:
        """Whether a joint stands behind what a verb excludes: `hate dogs, | love cats`."""
        last = len(self._items) - 1
        return tag_at(self._items, last) in ("comma", "stop", "and", "but") and any(item.order for item in self._items)

    def _asks_anew(self, at: int) -> bool:
        """Whether a request begins behind what was negated: `instead of dogs | show me cats`."""
        if self._low[at] not in ("show", "find", "give", "bring", "i") or not self._after_negation():
            return False
        length, _ = self._lexicon.requests.match(self._low, at)
        again = any(word.low == "show" for item in self._items if item.tag in NEGATIONS for word in item.words)
        return at + length < len(self._low) and (length > 1 or (again and self._low[at] == "show"))

    def _means_it(self, tag: str, at: int, length: int) -> bool:
        low = self._low
        before = low[at - 1] if at else ""
        after = low[at + length] if at + length < len(low) else ""
        if tag == "not" and low[at] in ("do", "does", "did"):
            host = self._items[-1].words if self._items and self._items[-1].tag == "words" else []
            return len(host) < 4 or host[-1].low in ("that", "which", "who", "it", "they")
        if tag in NEGATIONS and is_title(self._words, at, length, self._lexicon):
            return False
        match low[at + length - 1]:
            case "no" | "not" if after.endswith("er") and low[at + length + 1 : at + length + 2] == ["than"]:
                return False  # "no bigger than a cat"
            case "no" if length == 1:
                numbered = after[:1].isdigit() or (after == "." and low[at + 2 : at + 3] and low[at + 2].isdigit())
                return after not in ("a", "an", "the") and not numbered
            case "not":
                return after not in ("to", "certain", "sure") and not (length == 1 and before in _MODALS)
            case "never":
                return self._begins()
            case "the" if low[at] == "hold":
                return before not in ("to", "they", "we", "who", "that") and 0 < at < 5
            case "of":
                return after not in ("which", "whom", "them", "us", "it")
            case "ignoring":  # "cars, ignoring trucks", not "a man on a bench, ignoring his phone"
                return not before or (before == "," and after not in self._lexicon.words("quantity"))
            case "zero":
                return means_none(low, at, self._lexicon)
            case "missing" if length == 1:
                return before not in self._lexicon.words("quantity") and bool(after)
            case "minus" | "plus":
                return bool(before) and not after[:1].isdigit()
            case "0":
                return after.isalpha()
            case "&" | "+" | "n":
                return bool(before) and bool(after)
            case "while" | "though" | "although" | "yet" | "however" | "whereas":
                return bool(before)
        return True

    def _absent(self, at: int) -> int:
        """The length of a phrase such as `is missing`, where a phrase of a thing ends with it."""
        if not self._items or self._items[-1].tag != "words":
            return 0
        if self._low[at] == "out":
            return self._left_out(at)
        length, _ = self._lexicon.absent.match(self._low, at)
        if not length:
            return 0
        end = at + length
        if self._low[end - 1] == "not" and self._lexicon.cues.match(self._low, end - 1)[1] == "emphatic":
            return 0  # "is not missing"
        if self._low[end : end + 2] in (["from", "the"], ["from", "a"], ["from", "this"]):
            return length + 1
        if self._low[end - 1] in ("missing", "absent") and self._low[end : end + 1]:
            if self._low[end].endswith("ing") or self._low[end] in ("is", "are", "was", "were"):
                return length
        if end == len(self._low) or self._words[end].kind in ("mark", "dash"):
            return length
        closing = next((k for k in range(1, 6) if self._closes(end, k)), 0)
        _, tag = self._lexicon.cues.match(self._low, end)
        return length + closing if closing else length if tag in _JOINTS or tag in NEGATIONS else 0

    def _left_out(self, at: int) -> int:
        """The length of the end of `leave the cats | out`, `keep cats | out of it`; its beginning is taken away."""
        operand = self._items[-1].words
        length = 3 if self._low[at + 1 : at + 3] in (["of", "it"], ["of", "this"], ["of", "them"]) else 1
        end = at + length
        if end < len(self._low) and self._words[end].kind == "word":
            return 0
        verb = next((k for k, word in enumerate(operand) if word.low in ("leave", "keep")), len(operand))
        asked = all(word.low in self._lexicon.words("request word") for word in operand[:verb])
        if not asked or verb + 1 >= len(operand):
            return 0
        del operand[: verb + 1]
        return length

    def _closes(self, at: int, length: int) -> bool:
        end = at + length
        if end < len(self._low) and self._words[end].kind not in ("mark", "dash"):
            return False
        return self._lexicon.closing.match(self._low[at:end][::-1])[0] == length

    def _privative(self, at: int) -> int:
        """`dog-free`, `phone-less`, `people free`, `no-car`: an absent operand, cut out of the words around it."""
        word, movers = self._words[at], self._lexicon.words("mover")
        if word.low.startswith("no-") and word.low[3:] in movers:
            self._items.append(Item("words", [word._replace(low=word.low[3:], start=word.start + 3)], negated=True))
            return 1
        stem, _, ending = word.low.rpartition("-")
        if ending not in ("free", "less") or word.low in self._lexicon.words("lexical"):
            return 0
        free = ending == "free" and at > 0 and self._low[at - 1] in movers
        if not stem and not (free and may_be_noun(self._low, at + 1, self._lexicon)):
            return 0
        if not stem and not may_be_free(self._low, at + 1, self._lexicon):  # "kids free meal"
            self._keep(at, 1)
            self._items[-1].doubtful = True
            return 1
        thing = [word._replace(low=stem, end=word.end - len(ending) - 1)] if stem else []
        if self._items and self._items[-1].tag == "words":
            before = self._items[-1].words
            stops = self._lexicon.words("adjective") | self._lexicon.words("quantity") | self._lexicon.words(
                "preposition") | self._lexicon.words("request") | {"of", "any", "me"}  # fmt: skip
            while before and before[-1].low not in stops and before[-1].kind == "word":
                thing.insert(0, before.pop())
            if not before:
                self._items.pop()
        self._items.insert(len(self._items) - bool(self._items and self._items[-1].tag == "words"),
                           Item("words", thing, negated=True))  # fmt: skip
        return 1
