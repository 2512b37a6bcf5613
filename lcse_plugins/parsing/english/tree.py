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
    join,
    lows,
    tail_start,
    without_dangling,
)
from lcse_plugins.query import And, Concept, Not, Or, Query

__all__ = ["Leaves", "build"]

_OR = ("or", ", or")


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
        if not words:
            people = [word for word in chunk if word.low not in ("and", "only", "just", "am")]
            if absent and [word.low for word in people] == ["i"]:
                people = [people[0]._replace(instead="me", low="me")]
            words = people if people and all(w.low in self.lex.sets["person meant"] for w in people) else []
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
    ors = [at for at, term in enumerate(terms) if at and term.join in _OR and not term.inherited]
    marked = [at for at, term in enumerate(terms) if term.mark in ("either", "exactly one") and not term.negated]
    if not ors and not marked:
        return _conjunction(terms, leaves, notes)
    if not ors and lows(terms[marked[0]].lead)[-2:] == ["one", "of"] and len(terms[marked[0]].lead) == 2:
        terms[marked[0]].words = [*terms[marked[0]].lead, *terms[marked[0]].words]
        return _conjunction(terms, leaves, notes)
    if not ors:  # "at least one of a dog and a cat"
        return _listed(terms, marked[0], leaves, notes)
    first, last = ors[0], ors[-1]
    start, starts = _first_alternative(terms, first, marked, leaves.lex)
    starts += ors
    end = _last_end(terms, starts, marked, leaves.lex, notes)
    bounds = [*starts, end]
    alternatives = [terms[bounds[at] : bounds[at + 1]] for at in range(len(starts))]
    _share(alternatives, leaves.lex, notes)
    choices = [part for part in (_conjunction(each, leaves, notes) for each in alternatives) if part is not None]
    choice: Query | None = Or(tuple(choices)) if len(choices) > 1 else choices[0] if choices else None
    if len(choices) > 1 and any(term.exclusive or term.mark == "exactly one" for term in terms[start : last + 1]):
        choice = And((Or(tuple(choices)), Not(And(tuple(choices)))))
    common = _conjunction(_dangle(terms[:start], leaves.lex), leaves, notes) if start else None
    rest = _sentence(terms[end:], leaves, notes) if end < len(terms) else None
    return _all([common, choice, rest])


def _dangle(terms: list[Term], lex: Lexicon) -> list[Term]:
    """`a beach with either …`: the preposition leads to the choice."""
    return [term if term.group is not None else _with_words(term, without_dangling(term.words, lex)) for term in terms]


def _with_words(term: Term, words: Chunk) -> Term:
    term.words = words
    return term


def _listed(terms: list[Term], start: int, leaves: Leaves, notes: Notes) -> Query | None:
    end = start + 1
    while end < len(terms) and terms[end].join in ("and", ", and", ",") and not terms[end].negated:
        end += 1
    parts = [part for term in terms[start:end] if (part := _leaf(term, leaves)) is not None]
    choice = Or(tuple(parts)) if len(parts) > 1 else parts[0] if parts else None
    before = _conjunction(_dangle(terms[:start], leaves.lex), leaves, notes)
    return _all([before, choice, _conjunction(terms[end:], leaves, notes)])


def _first_alternative(terms: list[Term], first: int, marked: list[int], lex: Lexicon) -> tuple[int, list[int]]:
    """Where the alternatives begin, and the starts of those in front of the first `or`."""
    if marked and marked[0] < first:
        start = marked[0]
        commas = [at for at in range(start + 1, first) if terms[at].join == "," and not terms[at].negated]
        return start, [start, *commas]
    at = first - 1
    starts = [at]
    kind = _describing(terms[at], lex) if terms[at].group is None else None
    while at and terms[at].join == "," and not terms[at].negated and not terms[at - 1].negated:
        if _describing(terms[at - 1], lex) != kind or not (
            kind or is_attributive(terms[at - 1].words, lex) or is_thing(terms[at - 1].words, lex)
        ):
            break
        at -= 1
        starts.insert(0, at)
    if at and (terms[at].join in (",", "but", ", but", ", and") or terms[at].affirms) and not terms[at].negated:
        return at, starts
    while at and not (terms[at].affirms or (terms[at].join in ("but",) and not terms[at].negated)):
        at -= 1
    return at, [at, *starts[1:]] if len(starts) > 1 else [at]


def _describing(term: Term, lex: Lexicon) -> bool:
    return is_attributive(term.words, lex) and not all(low in lex.sets["material"] for low in lows(term.words))


def _last_end(terms: list[Term], starts: list[int], marked: list[int], lex: Lexicon, notes: Notes) -> int:
    """Where the last alternative ends and what is said of all of them begins."""
    last = starts[-1]
    lone = not any(term.negated for term in terms[starts[0] : last + 1])
    for at in range(last + 1, len(terms)):
        term = terms[at]
        if term.join in ("but", ", but", ", and", ","):
            return at
        if term.negated and lone:
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
    at = 0
    while at < len(terms):
        if terms[at].mark == "not both":
            end = at + 1
            while end < len(terms) and terms[end].join in ("and", ", and", ",", "or") and end < at + 8:
                end += 1
            both = [leaf for term in terms[at:end] if (leaf := _leaf(term, leaves, absent=True)) is not None]
            if both:
                parts.append(Not(And(tuple(both))))
            at = end
            continue
        leaf = _leaf(terms[at], leaves, notes=notes)
        parts.append(Not(leaf) if leaf is not None and terms[at].negated else leaf)
        at += 1
    return _all(parts)


def _leaf(term: Term, leaves: Leaves, *, absent: bool = False, notes: Notes | None = None) -> Query | None:
    if term.group is not None:
        return build(term.group, leaves, notes or Notes())
    absent |= term.negated
    words = term.words if absent else without_dangling(term.words, leaves.lex)
    return leaves.concept(words, absent=absent)


# ------------------------------------------------------------------------------------------ what is said of all


def _share_attributes(terms: Sequence[Term], lex: Lexicon) -> None:
    """Give the noun of a list to the attributes in front of it: `no red, blue or green cars`."""
    for at in range(len(terms) - 2, -1, -1):
        term, following = terms[at], terms[at + 1]
        if not following.inherited or not _may_wait(term.words, lex) or is_attributive(following.words, lex):
            continue
        rest = _behind_attributes(following.words, lex)
        if rest:
            term.words = [*term.words, *rest]


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
    rest = _behind_attributes(last.words, lex)
    waiting = [term for term in ends[:-1] if _may_wait(term.words, lex) or _ends_waiting(term.words, lex)]
    if not rest and len(last.words) > 1 and last.words[0].low in lex.sets["stuff"]:
        rest = last.words[1:]
        waiting = [term for term in ends[:-1] if term.words[-1].low in lex.sets["stuff"]]
    if rest and len(waiting) == len(ends) - 1:
        prefix = _prefix(ends[0].words, lex)
        for term in ends[:-1]:
            term.words = [*term.words, *rest]
        return
    words = content(last.words, lex)
    at = tail_start(words, lex)
    tail = words[at:]
    simple = all(len(each) == 1 and is_thing(content(each[0].words, lex), lex) for each in alternatives[:-1])
    if tail and simple and at and tail[0].low not in ("than",):
        for term in ends[:-1]:
            term.words = [*term.words, *tail]
        return
    first = content(ends[0].words, lex)
    prefix = _prefix(first, lex)
    others = all(len(each) == 1 and is_thing(each[0].words, lex) for each in alternatives[1:])
    if prefix and others and len(alternatives[0]) == 1:
        for term in heads[1:]:
            term.words = [*prefix, *term.words]


def _ends_waiting(chunk: Chunk, lex: Lexicon) -> bool:
    """`a man in a red`: the last word waits for a noun."""
    low = lows(chunk)
    return (
        len(low) > 1
        and is_attribute(low[-1], lex)
        and low[-1] not in lex.sets["material"]
        and (low[-2] in lex.sets["article"] or is_attribute(low[-2], lex))
    )


def _prefix(chunk: Chunk, lex: Lexicon) -> Chunk:
    """What stands in front of the last thing of a chunk: `park with | kids`."""
    low = lows(chunk)
    for at in range(len(low) - 1, 0, -1):
        if low[at] in lex.sets["preposition"] or (low[at].endswith("ing") and low[at] not in lex.sets["ing noun"]):
            return chunk[: at + 1]
    return []
