"""From terms to the tree: alternatives, conjunctions, and the concepts at the leaves."""

from __future__ import annotations

from collections.abc import Sequence

from lcse_plugins.parsing.english.clauses import Term
from lcse_plugins.parsing.english.words import (
    Chunk,
    Lexicon,
    Notes,
    content,
    is_attribute,
    is_attributive,
    is_thing,
    is_verb,
    join,
    lows,
    tail_start,
    without_dangling,
)
from lcse_plugins.query import And, Concept, Not, Or, Query

__all__ = ["Leaves", "build"]


class Leaves:
    """Makes the concepts of one text, and remembers where they stand."""

    def __init__(self, text: str, lex: Lexicon) -> None:
        self.text = text
        self.lex = lex
        self.spans: dict[str, tuple[int, int]] = {}

    def concept(self, chunk: Chunk, *, absent: bool = False) -> Concept | None:
        """The thing that the chunk names, without article and filler; None when it names nothing."""
        while len(chunk) > 2 and chunk[0].low == "(" and chunk[-1].low == ")":
            chunk = chunk[1:-1]
        words = content(chunk, self.lex, absent=absent)
        if not words and absent:
            words = [word for word in chunk if word.low in self.lex.sets["image"]]
            if lows(chunk[-1:]) == ["i"]:  # "I'm not in it"
                words = [chunk[-1]._replace(instead="me")]
        if not words:
            people = [word for word in chunk if word.low not in ("and", "only", "just")]
            words = people if all(word.low in self.lex.sets["person meant"] for word in people) else []
        return self.made(words) if words else None

    def whole(self, start: int, end: int) -> Concept:
        """A concept of all that stands between two places."""
        concept = Concept(self.text[start:end])
        self.spans[concept.text] = (start, end)
        return concept

    def made(self, words: Chunk) -> Concept:
        """A concept of these words as they are written."""
        text = join(self.text, words)
        if len(words) == 1 and words[0].kind == "quoted" and text[1:-1].strip():
            text = text[1:-1]
        concept = Concept(text)
        start, end = words[0].start, words[0].end
        for word in words[1:]:
            if word.start < start or (word.start > end and not self.text[end : word.start].isspace()):
                break
            end = max(end, word.end)
        self.spans.setdefault(concept.text, (start, end))
        return concept


def build(terms: Sequence[Term], leaves: Leaves, notes: Notes) -> Query | None:
    """The tree of the terms; None when nothing is named. Sentences are joined by `and`."""
    sentences: list[list[Term]] = [[]]
    for term in terms:
        if term.join == "." and sentences[-1]:
            sentences.append([])
        sentences[-1].append(term)
    return _all([_sentence(sentence, leaves, notes) for sentence in sentences])


def _all(parts: Sequence[Query | None]) -> Query | None:
    found = [part for part in parts if part is not None]
    return And(tuple(found)) if len(found) > 1 else found[0] if found else None


def _sentence(terms: list[Term], leaves: Leaves, notes: Notes) -> Query | None:
    """A sentence: what holds anyway, and the alternatives in it."""
    marked = [at for at, term in enumerate(terms) if term.mark in ("either", "exactly one") and not term.negated]
    ors = _ors(terms)
    if marked and not ors and lows(terms[marked[0]].lead) != ["one", "of"]:  # "at least one of a dog and a cat"
        for term in terms[marked[0] + 1 :]:
            if term.negated or term.join not in ("and", ", and", ","):
                break
            term.join = "or"
        ors = _ors(terms)
    if not ors:
        if any(term.exclusive for term in terms):
            notes.shape("`and`, but not both")
        for at in marked:
            terms[at].words = [*terms[at].lead, *terms[at].words]  # "one of the waiters and a guest"
        return _conjunction(terms, leaves, notes)
    starts = [*_first_alternatives(terms, ors[0], marked, leaves.lex), *ors]
    end = _last_end(terms, starts, notes, marked=bool(marked))
    bounds = [*starts, end]
    alternatives = [terms[bounds[at] : bounds[at + 1]] for at in range(len(starts))]
    _share(alternatives, leaves.lex, notes)
    choices = tuple(part for each in alternatives if (part := _conjunction(each, leaves, notes)) is not None)
    choice: Query | None = Or(choices) if len(choices) > 1 else choices[0] if choices else None
    if len(choices) > 1 and any(
        term.exclusive or term.mark == "exactly one" for term in terms[starts[0] : ors[-1] + 1]
    ):
        choice = And((Or(choices), Not(And(choices))))
    rest = _sentence(terms[end:], leaves, notes) if end < len(terms) else None
    return _all([_conjunction(terms[: starts[0]], leaves, notes), choice, rest])


def _ors(terms: Sequence[Term]) -> list[int]:
    return [at for at, term in enumerate(terms) if at and term.join in ("or", ", or") and not term.inherited]


def _first_alternatives(terms: list[Term], first: int, marked: list[int], lex: Lexicon) -> list[int]:
    """Where the alternatives in front of the first `or` begin."""
    if marked and marked[0] < first:
        commas = [at for at in range(marked[0] + 1, first) if terms[at].join == "," and not terms[at].negated]
        return [marked[0], *commas]
    at = first - 1
    starts = [at]
    kind = _describing(terms[at], terms[first], lex)
    while at and terms[at].join == "," and not terms[at].negated and not terms[at - 1].negated:
        before = terms[at - 1]
        if _describing(before, terms[first], lex) != kind or not (kind or is_thing(before.words, lex)):
            break
        at -= 1
        starts.insert(0, at)
    if at and (terms[at].join in (",", "but", ", but", ", and") or terms[at].affirms) and not terms[at].negated:
        return starts
    while at and not (terms[at].affirms or (terms[at].join == "but" and not terms[at].negated)):
        at -= 1
    return [at, *starts[1:]]


def _describing(term: Term, other: Term, lex: Lexicon) -> bool:
    """Whether a term only says how a thing is: `blue`, and `cotton` where the other is as well."""
    stuff = [lex.has(low, "stuff", "material") for low in lows([*term.words, *other.words])]
    return all(stuff) or (is_attributive(term.words, lex) and not all(stuff[: len(term.words)]))


def _last_end(terms: list[Term], starts: list[int], notes: Notes, *, marked: bool) -> int:
    """Where the last alternative ends and what is said of all of them begins."""
    last = starts[-1]
    affirmed = not any(term.negated for term in terms[starts[0] : last + 1])
    apart = terms[last].join == ", or" and len(starts) == 2  # "a river, or a desert without cacti"
    for at in range(last + 1, len(terms)):
        term = terms[at]
        if term.join == "but" and term.negated and not affirmed and at == last + 1:
            continue  # "cats but no dogs, or birds but no fish"
        if term.join in ("but", ", but", ", and", ","):
            return at
        if term.negated and affirmed and not (apart and term.join == ""):
            if term.join == "" and not marked:
                notes.shape("whether all alternatives lack it")
            return at
        if not term.negated and term.join == "and" and not marked:
            notes.shape("`or` and `and` side by side")
    if not marked and any(term.join == "and" and not term.negated for term in terms[starts[0] + 1 : last]):
        if not any(term.join == ", or" for term in terms):
            notes.shape("`and` and `or` side by side")
    return len(terms)


def _conjunction(terms: Sequence[Term], leaves: Leaves, notes: Notes) -> Query | None:
    """All of the terms together."""
    _share_attributes([term for term in terms if term.group is None], leaves.lex)
    parts: list[Query | None] = []
    both: list[Query] = []
    for at, term in enumerate(terms):
        leaf = _leaf(term, leaves, notes, absent=term.negated or term.mark == "not both" or bool(both))
        if leaf is not None and (term.mark == "not both" or (both and term.join in ("and", ", and", ",", "or"))):
            both.append(leaf)
            if at + 1 < len(terms) and terms[at + 1].join in ("and", ", and", ",", "or"):
                continue
            leaf = Not(And(tuple(both)))
        elif term.negated and leaf is not None:
            leaf = Not(leaf)
        both = []
        parts.append(leaf)
    return _all(parts)


def _leaf(term: Term, leaves: Leaves, notes: Notes, *, absent: bool) -> Query | None:
    if term.group is not None:
        return build(term.group, leaves, notes)
    return leaves.concept(term.words if absent else without_dangling(term.words, leaves.lex), absent=absent)


# ------------------------------------------------------------------------------------------ what is said of all


def _share_attributes(terms: Sequence[Term], lex: Lexicon) -> None:
    """Give the noun of a list to the attributes in front of it: `no red, blue or green cars`."""
    for at in range(len(terms) - 2, -1, -1):
        term, following = terms[at], terms[at + 1]
        if following.inherited and _may_wait(term.words, lex) and not is_attributive(following.words, lex):
            term.words = [*term.words, *_behind_attributes(following.words, lex)]


def _may_wait(chunk: Chunk, lex: Lexicon) -> bool:
    low = [word for word in lows(chunk) if word not in lex.sets["article"]]
    return all(is_attribute(word, lex) for word in low) and not (len(low) == 1 and low[0] in lex.sets["material"])


def _behind_attributes(chunk: Chunk, lex: Lexicon) -> Chunk:
    """The noun of a chunk that begins with an attribute, and what follows it; else nothing."""
    at = 0
    while at < len(chunk) and (chunk[at].low in lex.sets["article"] or is_attribute(chunk[at].low, lex)):
        at += 1
    return chunk[at:] if at and at < len(chunk) and is_attribute(chunk[at - 1].low, lex) else []


def _share(alternatives: list[list[Term]], lex: Lexicon, notes: Notes) -> None:
    """Give each alternative what the first or the last says for all: `a cat or a dog on a sofa`."""
    ends = [each[-1] for each in alternatives]
    heads = [each[0] for each in alternatives]
    if any(term.group is not None or term.negated or not term.words for term in [*ends, *heads]):
        return
    last = heads[-1]
    rest = _behind_attributes(last.words, lex)  # "a red or blue | car"
    waiting = all(_may_wait(term.words, lex) for term in ends[:-1])
    if not rest and len(last.words) > 1 and last.words[0].low in lex.sets["stuff"]:
        rest = last.words[1:]  # "a wool or cotton | scarf"
        waiting = all(term.words[-1].low in lex.sets["stuff"] for term in ends[:-1])
    if not (rest and waiting):
        words = content(last.words, lex)
        at = tail_start(words, lex)
        rest = words[at:] if at else []
        waiting = all(len(each) == 1 and is_thing(content(each[0].words, lex), lex) for each in alternatives[:-1])
    if rest and waiting:
        for term in ends[:-1]:
            term.words = [*term.words, *rest]
        return
    first = content(ends[0].words, lex)
    prefix = _prefix(first, lex)
    others = all(len(each) == 1 and is_thing(each[0].words, lex) for each in alternatives[1:])
    if (
        len(first) > 1
        and " ".join(lows(first)) not in lex.sets["shade"]
        and all(is_attributive(words, lex) for words in (first[-1:], *(head.words for head in heads[1:])))
    ):
        prefix, others = first[:-1], True  # "shoes black | or white"
    if prefix and others and len(alternatives[0]) == 1:
        if prefix[-1].low in lex.sets["locative"]:
            if lex.has(prefix[0].low, "mover") and all(lex.has(term.words[-1].low, "mover") for term in heads[1:]):
                return  # "a cat on a sofa or a dog"
            notes.shape("what the second alternative belongs to")
        for term in heads[1:]:
            term.words = [*prefix, *term.words]


def _prefix(chunk: Chunk, lex: Lexicon) -> Chunk:
    """What stands in front of the last thing of a chunk: `park with | kids`."""
    low = lows(chunk)
    for at in range(len(low) - 1, 0, -1):
        if low[at] in lex.sets["preposition"] or (low[at].endswith("ing") and is_verb(chunk, at, lex)):
            return chunk[: at + 1]
    return []
