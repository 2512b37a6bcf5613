"""From items to terms: what each negation reaches, where lists end, and which description belongs to what.

A term is one operand. The passes over the terms of a query stand in `PASSES`, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lcse_plugins.errors import QueryTooComplex
from lcse_plugins.parsing.english.cues import NEGATIONS, Item
from lcse_plugins.parsing.english.words import (
    Chunk,
    Lexicon,
    Notes,
    content,
    head_noun,
    is_attribute,
    is_attributive,
    is_filler,
    is_finite,
    is_plural,
    is_thing,
    is_verb,
    lows,
    starts_request,
    tail_start,
    verb_first,
    without_dangling,
)
from lcse_plugins.parsing.result import MAX_CONCEPTS

__all__ = ["PASSES", "Term", "settle"]

_DEEPEST = 40


@dataclass
class Term:
    """One operand of a query."""

    words: Chunk
    cue: str = ""  # the kind of negation in front of it, or behind it
    join: str = ""  # how it is joined to the term before: `,`, `and`, `or`, `but`, `nor`, `.`, or `, and` and the like
    mark: str = ""  # `either`, `both`, `not both` or `exactly one` in front of it
    negated: bool = False  # it is absent, by its own cue or by that of a list
    inherited: bool = False  # the negation is that of a list
    affirms: bool = False  # `only` or a new request in front of it ends a negation
    strong: bool = False  # the join is logic whatever the terms are: `as well as`
    exclusive: bool = False  # `but not both` follows
    led: bool = False  # `with`, `has` or the like leads to its cue
    exception: bool = False  # its cue takes something out of what is said before: `except`
    lead: Chunk = field(default_factory=list)  # the words of the join and the cue, for where they turn out to be none
    group: list[Term] | None = None  # the terms in parentheses

    @property
    def bare(self) -> bool:
        """Whether it has no negation of its own and nothing that ends one."""
        return not (self.cue or self.affirms or self.mark)


def settle(items: Sequence[Item], lex: Lexicon, notes: Notes) -> list[Term]:
    """The terms of a query, each with its sign."""
    terms = _terms_of(items, lex, notes)
    if len(terms) > 4 * MAX_CONCEPTS:
        raise QueryTooComplex(f"the query lists {len(terms)} things; at most {MAX_CONCEPTS} concepts are scored")
    return _settled(terms, lex, notes)


def _settled(terms: list[Term], lex: Lexicon, notes: Notes) -> list[Term]:
    for term in terms:
        if term.group is not None:
            term.group = _settled(term.group, lex, notes)
    for step in PASSES:
        terms = step(terms, lex, notes)
    return terms


# ------------------------------------------------------------------------------------------------- items to terms


def _terms_of(items: Sequence[Item], lex: Lexicon, notes: Notes) -> list[Term]:
    """The operands between the cues; parentheses with logic in them make a group."""
    stack: list[tuple[list[Term], Term]] = []
    terms: list[Term] = []
    term = Term([])
    literal, stray = _literal_parentheses(items, notes)
    for at, (tag, words) in enumerate(items):
        before = terms[-1] if terms else Term([], group=[])
        if at in stray:
            continue
        if tag == "words" or at in literal:
            if term.bare and not term.lead and before.group is None and before.cue != "free":
                before.words += words
                continue
            term.words = [*term.words, *words]
            terms.append(term)
            term = Term([])
        elif tag == "(":
            stack.append((terms, term))
            terms, term = [], Term([])
        elif tag == ")":
            inner = terms
            terms, opened = stack.pop()
            opened.group = inner
            terms.append(opened)
            term = Term([])
        elif tag == "free":
            terms.append(Term(words, cue="free", negated=True))
        elif tag == "absent":
            before.cue, before.negated = before.cue or "absent", True
        elif tag in NEGATIONS:
            if not term.lead and before.bare and before.group is None and not before.negated:
                if not without_dangling(before.words, lex):  # "and I don't want", "but there is no"
                    terms.pop()
                    if tag == "not" and before.words[-1].low in ("a", "an", "the", "i", "we", "am"):
                        notes.sign("`not` behind an article, or said of oneself")
                    term.join, term.lead = before.join, [*before.lead, *before.words]
            if term.cue and term.lead[-1:] and term.lead[-1].kind != "emoji":
                notes.sign("a double negation")
            term.cue, term.negated = "no" if tag == "nobody" else tag, True
            term.lead += words
            term.led = before.words[-1:] != [] and before.words[-1].low in lex.sets["dangling"]
            term.exception |= words[0].low in lex.sets["exception"]
            if tag == "nobody":
                term.words = [words[0]._replace(low="people", instead="people")]
                following = items[at + 1].words if at + 1 < len(items) and items[at + 1].tag == "words" else []
                if not following or following[0].low in lex.sets["quantity"]:
                    terms.append(term)
                    term = Term([])
                elif following[0].low in lex.sets["be"]:
                    del following[0]
                elif not (following[0].low.endswith("ing") or lex.has(following[0].low, "preposition", "nearby")):
                    notes.sign("what nobody did")  # "a scarecrow that nobody dressed"
        elif tag == "exclusive":
            before.exclusive = True
        elif tag in ("either", "both", "not both", "exactly one"):
            if tag == "both" and term.cue:  # "lacking both windows and doors" lacks each
                notes.shape("whether each is absent, or one of the two")
                tag = "not both" if "not" in lows(term.lead) else ""
            term.mark, term.cue = tag, "" if tag == "not both" else term.cue
            term.lead += words
        elif tag in ("only", "emphatic"):
            term.affirms = bool(terms)
            term.lead += words
        elif not term.cue:  # "exclude: leash"
            _take_join(term, tag, words, lex)
    negated = False
    for at, term in enumerate(terms):
        negated |= term.negated
        if term.join == "nor" and not negated:
            term.cue, term.negated = "neither", True
            negated = not at
            if at:
                notes.sign("`nor` without a negation in front")
    if terms:
        terms[0].join = ""
    return terms


def _take_join(term: Term, tag: str, words: Chunk, lex: Lexicon) -> None:
    tag = "," if tag in (":", "-") else tag
    term.strong |= " ".join(lows(words)) in lex.sets["strong and"]
    term.lead += words
    if tag == ".":
        term.join = "."
    elif tag == ",":
        term.join = term.join or ","
    elif term.join in (",", "."):
        term.join = f", {tag}" if tag != "nor" else "nor"
    elif not (term.join and tag == "and"):
        term.join = tag


def _literal_parentheses(items: Sequence[Item], notes: Notes) -> tuple[set[int], set[int]]:
    """The parentheses that are part of the words, having no logic in them, and those without a partner."""
    literal: set[int] = set()
    stray: set[int] = set()
    opened: list[tuple[int, bool]] = []
    for at, (tag, _) in enumerate(items):
        if tag == "(":
            opened.append((at, False))
        elif tag == ")" and not opened:
            stray.add(at)
            notes.shape("')' closes nothing")
        elif tag == ")":
            start, logic = opened.pop()
            beside = "words" in (
                items[start - 1].tag if start else "",
                items[at + 1].tag if at + 1 < len(items) else "",
            )
            empty = at - start < 4 and all(item.tag in ("(", ")") for item in items[start : at + 1])
            if (not logic and (beside or opened)) or len(opened) > _DEEPEST or empty:
                literal |= {start, at}
        elif tag not in ("words", ",") and opened:
            opened[-1] = (opened[-1][0], True)
    for at, _ in opened:
        stray.add(at)
        notes.shape("'(' is never closed")
    return literal, stray


# ----------------------------------------------------------------------------------- pass 1: attributes of one noun


def join_attributes(terms: list[Term], lex: Lexicon, notes: Notes) -> list[Term]:
    """`red and white flowers`, `a tall, slim man`, `small but fast car`: one thing."""
    found: list[Term] = []
    for at in range(len(terms) - 1, -1, -1):
        term, before = terms[at], terms[at - 1] if at else Term([], group=[])
        plain = before.group is None and term.group is None and (term.bare or term.cue == "absent")
        if (
            plain
            and term.join in ("and", ",", "but")
            and not term.strong
            and is_attribute(before.words[-1].low, lex)
            and not is_attributive(term.words, lex)
            and is_attribute(term.words[0].low, lex)
        ):
            if before.cue == "not" and is_attributive(before.words, lex):
                notes.sign("how far `not` reaches")
            before.words += [*term.lead, *term.words]
            if term.cue == "absent":
                before.cue, before.negated = "absent", True
            continue
        found.append(term)
    return found[::-1]


# ------------------------------------------------------------------------------------ pass 2: `… are missing`


def split_subjects(terms: list[Term], lex: Lexicon, notes: Notes) -> list[Term]:
    """What is said to be absent behind a thing is absent, the place it is absent from is not."""
    found: list[Term] = []
    for term in terms:
        low = lows(term.words)
        if term.cue == "not" and not term.join and found and "where" in lows(found[-1].words)[1:-1]:
            host = found[-1]  # "a restaurant where people are not smoking": the people are in the clause that is denied
            at = lows(host.words).index("where", 1)
            subject = without_dangling(host.words[at + 1 :], lex)
            host.words, term.words = host.words[:at], [*subject, *term.words]
        elif term.cue == "absent":
            leads = [at for at, word in enumerate(low) if word in ("where", "while", "with", "which", "has", "have")]
            if leads and leads[-1] > 0:
                if host_words := without_dangling(term.words[: leads[-1]], lex):
                    found.append(Term(host_words, join=term.join, lead=term.lead))
                    term.join = ""
                term.words = term.words[leads[-1] + 1 :] or term.words
            term.words = without_dangling(term.words, lex) or term.words  # "a dog that is absent"
        found.append(term)
    return found


# ------------------------------------------------------------------------------------------ pass 3: permissions


def drop_fillers(terms: list[Term], lex: Lexicon, notes: Notes) -> list[Term]:
    """`if possible` asks for nothing; `dogs are fine`, `boats ok`: they may be there, and need not."""
    kept = [term for term in terms if term.group is not None or term.cue or not is_filler(term.words, lex)]
    return kept if kept and len(terms) > 1 else terms


# ------------------------------------------------------------------------------------------ pass 4: reach


def reach(terms: list[Term], lex: Lexicon, notes: Notes) -> list[Term]:
    """Give the negation of a list to the terms it reaches."""
    closers = _closers(terms)
    cue: Term | None = None
    listing = choosing = False
    for at, term in enumerate(terms):
        before = terms[at - 1] if at else None
        choosing |= term.mark == "either"
        if term.cue:
            _note_double(terms, at, lex, notes)
            empty = before is not None and any(word.low in lex.sets["bare"] for word in before.words)
            if term.exception and term.join in ("", ",") and (cue is not None or empty):
                term.negated = False  # "no animals except dogs", "an empty room except for a chair"
                if not empty:
                    notes.shape("an exception to what is excluded")
            if at == 1 and before is not None and before.exception and term.join == ",":
                before.negated = False  # "other than the dog, there are no animals"
            cue, listing = term if term.negated and term.cue not in ("free", "absent") else None, False
            continue
        if cue is None:
            continue
        answer = "no"
        if term.join == "and" and term.bare and before is not None and _goes_on(before, lex):
            before.words += [*term.lead, *term.words]
            term.words = []
            continue
        if term.words and term.words[0].low in ("love", "like", "prefer", "want", "need", "include"):
            term.words = term.words[1:] or term.words
        elif term.bare and term.group is None and term.join not in (".", "but", ", but", ""):
            answer = _inherits(terms, at, cue, closers, lex, listing=listing, choosing=choosing)
        if answer == "doubt":
            notes.sign(f"whether `{' '.join(lows(term.words)[:4])}` is wanted")
        if answer == "no":
            cue = None
            continue
        term.negated = term.inherited = True
        listing = listing or term.join == ","
    return [term for term in terms if term.words or term.group is not None]


def _goes_on(before: Term, lex: Lexicon) -> bool:
    """Whether a description has begun that `and` goes on with: `a shirt in a park holding a beer | and a frisbee`."""
    tail = range(tail_start(before.words, lex), len(before.words) - 1)
    return before.cue != "not" and any(is_verb(before.words, place, lex) for place in tail)


def _closers(terms: Sequence[Term]) -> list[int]:
    """For each term behind a comma, the term with `and`, `or` or `nor` that closes its list; -1 without one."""
    closers = [-1] * len(terms)
    for at in range(len(terms) - 1, -1, -1):
        term = terms[at]
        if term.bare and term.join in ("and", "or", "nor", ", and", ", or"):
            closers[at] = at
        elif term.bare and term.join == "," and at + 1 < len(terms):
            closers[at] = closers[at + 1]
    return closers


def _inherits(
    terms: Sequence[Term], at: int, cue: Term, closers: Sequence[int], lex: Lexicon, *, listing: bool, choosing: bool
) -> str:
    """Whether the negation of `cue` reaches a bare term behind it: `yes`, `no` or `doubt`."""
    term = terms[at]
    first = term.words[0].low
    article, verb = first in lex.sets["quantity"], verb_first(term.words, lex)
    if term.join == "nor":
        return "yes"
    if term.join in ("or", ", or") and cue.cue == "not" and any(lex.has(word.low, "show") for word in term.lead):
        return "doubt"  # "doesn't flip or have a screen"
    if _starts_anew(term, lex) or (at > 1 and term.join == "," and _repeats(terms[at - 2], terms[at - 1], cue)):
        return "no"
    if verb == "maybe" or (term.strong and term.lead[-1].low != "plus"):
        return "no" if head_noun(cue.words, lex) in lex.sets["clothing"] and not term.strong else "doubt"
    if term.strong:
        return "no"
    if term.join in ("or", ", or", "and", ", and"):
        if is_attributive(term.words, lex) and not is_attributive(cue.words, lex) and len(cue.words) > 1:
            return "doubt"  # "without sleeves in red or blue"
        if _hosts(terms, at, cue, lex):
            named = {word.low for each in terms[max(0, at - 4) : at] for word in each.words}
            terse = not article and not lex.has(terms[0].words[0].low, "quantity") and not terms[0].negated
            return "no" if article or terse or head_noun(term.words, lex) in named else "doubt"
        if term.join in ("and", ", and"):
            return _inherits_and(term, terms[at - 1], cue, lex, listing=listing)
        if choosing:
            return "no"
        if term.join == ", or" and not listing and not terms[0].negated:
            return "no" if article else "doubt"
        loose = cue.cue == "no" and first in lex.sets["article"] and cue.words[0].low not in lex.sets["article"]
        return "doubt" if loose else "yes"
    if verb == "yes" or lex.has(first, "relative", "preposition") or _describes(term.words, lex):
        return "no"
    if closers[at] >= 0 and (not article or cue.words[0].low in lex.sets["article"]):
        last = terms[closers[at]]
        answer = _inherits(terms, closers[at], cue, closers, lex, listing=True, choosing=choosing)
        clear = last.join in ("or", ", or", "nor") or cue.cue in ("without", "order", "neither") or cue.led
        if answer == "yes" and clear:
            return "yes" if not is_attribute(first, lex) or is_attributive(term.words, lex) else "doubt"
        return "doubt" if answer != "no" or article else _inherits_comma(term, cue, lex)
    if article:
        return "no" if cue.cue not in ("order", "except list") or first in ("a", "an") else "yes"
    return _inherits_comma(term, cue, lex)


def _starts_anew(term: Term, lex: Lexicon) -> bool:
    """Whether a term behind a list says something new about the thing in front: `with a fountain`, `has a door`."""
    low = lows(term.words)
    if low[0] in ("with", "has", "have", "show", "where", "in", "at", "on", "during", "near", "by", "under"):
        return True
    if starts_request(term.words, lex) or low[-1] == "instead":
        return True
    if any(word.low in ("with", "there") or word.low in lex.sets["show"] for word in term.lead):
        return True
    return is_finite(low[0], lex) and len(low) > 1


def _repeats(one: Term, other: Term, cue: Term) -> bool:
    """Whether each absent thing so far has a negation of its own: `not cats, not dogs, birds`."""
    return other is cue and one.cue == cue.cue in ("no", "not", "without") and cue.join == ","


def _hosts(terms: Sequence[Term], at: int, cue: Term, lex: Lexicon) -> bool:
    """Whether a term has a negation of its own behind it: `without a cat or | a cat | without a dog`."""
    following = terms[at + 1] if at + 1 < len(terms) else Term([])
    if following.cue in ("", "free", "absent"):
        return False
    if following.join == cue.join == "but" and terms[at].join in ("or", ", or"):
        return True  # "a cat but no dog, or a dog but no cat"
    listed = following.join in ("but", "and") and terms[at].words[0].low in lex.sets["quantity"]
    return following.join == "" or (listed and cue.words[:1] != [] and cue.words[0].low not in lex.sets["article"])


def _inherits_and(term: Term, before: Term, cue: Term, lex: Lexicon, *, listing: bool) -> str:
    low = lows(term.words)
    if verb_first(term.words, lex) == "yes":
        told = tail_start(before.words, lex) < len(before.words)
        return "doubt" if told or cue.cue == "not" else "no"
    if low[0] in lex.sets["quantity"] and not (cue.cue in ("order", "neither") and low[0] not in ("a", "an")):
        if cue.cue == "no":
            return "no"
        both = {low[0], cue.words[0].low} <= lex.sets["article"] and tail_start(term.words, lex) == len(low)
        both &= not (len(low) > 2 and is_attribute(low[1], lex))  # "a red car without a roof and a blue car"
        return "yes" if both and cue.cue != "not" else "doubt"
    if cue.cue == "not":
        return "yes" if is_attributive(cue.words, lex) and is_attributive(term.words, lex) else "doubt"
    tail = tail_start(term.words, lex)
    if cue.led and low[0].endswith("s") and len(low) > 1 and tail > 1:
        return "doubt"  # "that has no sign and sells flowers": a verb, or more of what is absent
    points = any(word in lex.sets["pointing"] for word in low[tail:]) or low[-1] in lex.sets["at host"]
    if len(low) > 1 and (points or low[tail : tail + 1] == ["with"]) and not listing and cue.cue != "order":
        return "doubt"
    if is_attribute(low[0], lex) and not is_attribute(cue.words[0].low, lex) and len(low) > 1:
        return "doubt"
    return "doubt" if term.join == ", and" and not listing else "yes"


def _inherits_comma(term: Term, cue: Term, lex: Lexicon) -> str:
    """`no people, sunset`: a thing of another sort is wanted; of the same sort, who knows."""
    low = lows(term.words)
    described = is_attribute(low[0], lex), is_attribute(cue.words[0].low, lex)
    if cue.cue in ("order", "except list"):
        each = is_plural(low[-1], lex) or low[-1] in lex.sets["unwanted"] or cue.cue == "except list"
        return "yes" if each else "doubt"
    colour = is_attribute(low[-1], lex) and low[-1] not in lex.sets["material"]
    setting = low[-1] in lex.sets["place"] and cue.words[-1].low not in lex.sets["place"]
    if (
        cue.lead[0].low in ("instead", "rather")
        or low[-1] in lex.sets["occasion"]
        or setting
        or (colour and not is_attribute(cue.words[-1].low, lex))
    ):
        return "no"  # "a case without a logo, matte black", "a forest without fog, early morning"
    if cue.cue in ("without", "neither", "not"):
        return "doubt"
    several = is_plural(head_noun(term.words, lex), lex), is_plural(head_noun(cue.words, lex), lex)
    return "doubt" if several[0] == several[1] and described[0] == described[1] else "no"


def _note_double(terms: Sequence[Term], at: int, lex: Lexicon, notes: Notes) -> None:
    """`no dogs without leashes`, `not red car`: nobody can tell."""
    term, before = terms[at], terms[at - 1] if at else Term([])
    low = lows(term.words)
    if before.negated and term.join == "" and term.cue != "free" and not term.exception:
        if not (before.cue == "no" == term.cue):
            notes.sign("a negation within a negation")
    if term.cue == "no" and len(low) > 1 and term.words[0].kind == "emoji":
        notes.sign("what the sign is about")
    if term.cue != "not" or not low or term.join:
        return
    vague = is_attributive(before.words, lex) or {"if", "know"} & {*lows(before.words)}  # "a yellow not book"
    if at and (vague or any(word[0].isdigit() for word in low[1:])):
        notes.sign("how far the negation reaches")
    whole = len(terms) == 1 and len(low) > 1 and term.lead[0].low in ("no", "not", "never", "do")
    if whole and not lex.has(low[0], "quantity", "preposition"):
        notes.sign("a whole phrase is denied, and nothing is asked for")
    named = not is_attributive(term.words, lex) and tail_start(term.words, lex) > 1
    if is_attribute(low[0], lex) and named and len(term.lead) == 1 and not before.negated:
        notes.sign("`not` before an attribute and a noun")


# ---------------------------------------------------------------------------------- pass 5: several nouns behind `no`


def doubt_compounds(terms: list[Term], lex: Lexicon, notes: Notes) -> list[Term]:
    """`no N N`: one thing where the two are known to be one, or where the clause ends; else nobody can tell."""
    for at, term in enumerate(terms):
        if term.cue != "no" or term.group is not None or term.lead[-1].low not in ("no", "zero"):
            continue
        words = content(term.words, lex, absent=True)
        noun = words[: tail_start(words, lex)]
        low = lows(noun)
        if len(low) < 2 or "of" in low or term.led or term.join not in ("", ",") or any(w.kind != "word" for w in noun):
            continue
        known = lex.has(" ".join(low), "compound", "shade") or lex.has(low[0], "stuff")
        known |= lex.has(low[0], "kind of sign") and (low[1] in lex.sets["sign"] or is_plural(low[1], lex))
        if len(low) == 2 and (known or (is_attribute(low[0], lex) and low[1] not in lex.sets["image"])):
            continue
        before, after = terms[at - 1] if at else Term([]), terms[at + 1] if at + 1 < len(terms) else Term([])
        ends = term.join == "," and not before.negated and not is_attribute(low[-1], lex)
        ends |= after.join in ("but", "or", "nor") or (after.join == "and" and after.negated)
        if not ends or is_plural(low[0], lex) or lex.has(low[0], "mover", "unwanted", "clothing"):
            notes.sign(f"`no {' '.join(low[:3])}`")  # but "a night sky, no city lights" is clear
    return terms


# ------------------------------------------------------------------------------ pass 6: descriptions of the absent


def attach_tails(terms: list[Term], lex: Lexicon, notes: Notes) -> list[Term]:
    """Give what stands behind an absent thing to the thing, or back to what lacks it."""
    host: Term | None = None
    found: list[Term] = []
    cue = ""
    for at, term in enumerate(terms):
        if not term.negated:
            goes_on = term.join == "," and term.bare and term.group is None and _describes(term.words, lex)
            if host is not None and goes_on and found[-1].negated:
                host.words = [*without_dangling(host.words, lex), *term.words]
                continue
            host = term if term.group is None else None
            found.append(term)
            continue
        found.append(term)
        cue = cue if term.inherited else term.cue
        last = at + 1 == len(terms) or not terms[at + 1].inherited
        if cue == "not" and term.lead[-2:-1] and lex.has(term.lead[-2].low, "be") and term.words[0].low in ("a", "an"):
            if lex.has("".join(lows(term.words[tail_start(term.words, lex) :][:1])), "locative"):
                notes.sign("who is there")  # "someone who isn't a doctor in a hospital"
        if not last or cue in ("free", "absent", "not") or term.group is not None:
            continue
        if host is None or not content(host.words, lex):
            _note_picture(term, host, lex, notes)
        else:
            _attach(term, host, lex, notes)
    return found


def _note_picture(term: Term, host: Term | None, lex: Lexicon, notes: Notes) -> None:
    """`a photo without a filter of a lake`: the picture may be of it."""
    low = lows(term.words)
    noun = low[low.index("of", 1) - 1] if "of" in low[1:-1] else ""
    if noun in lex.sets["image"]:
        notes.sign("what the picture is of")
    if host is None or not noun:
        return
    shown = "of a" in " ".join(low) and head_noun(content(host.words, lex), lex) in lex.sets["depiction"]
    if shown or lex.has(noun, "unwanted", "mover", "clothing"):
        notes.sign("what the picture is of")


def _describes(chunk: Chunk, lex: Lexicon) -> bool:
    """Whether a chunk behind a comma goes on about the thing in front: `, at night`, `, surrounded by trees`."""
    low = lows(chunk)
    if low[0] in lex.sets["locative"] or (low[0] in lex.sets["relative"] and low[0] != "that"):
        return True
    done = low[0].endswith("ed") or low[0] in lex.sets["participle"]
    return is_verb(chunk, 0, lex) or (done and lex.has("".join(low[1:2]), "preposition"))


def _attach(term: Term, host: Term, lex: Lexicon, notes: Notes) -> None:
    words = content(term.words, lex, absent=True)
    if not words:
        return
    if lex.has(term.words[0].low, "image") and words[0] != term.words[0]:
        notes.sign("what the picture is of")  # "a book without pictures about whales"
    if head_noun(content(host.words, lex), lex) in lex.sets["depiction"]:
        _note_picture(term, host, lex, notes)
    if finite := _finite_verb(words, host, term, lex, notes):
        term.words = words[:finite]
        host.words = [*without_dangling(host.words, lex), *words[finite:]]
        return
    if any(word.low[0].isdigit() or word.low == "size" for word in words[1:]):
        notes.sign("how far the negation reaches")
    single = term.words[0].low in ("a", "an")
    start = tail_start(words, lex)
    if start > 1 and term.lead[-1].low == "without" and is_plural(words[0].low, lex) and words[0] == term.words[0]:
        if not (words[1].low == "of" or is_plural(words[1].low, lex) or words[1].low.endswith("ing")):
            notes.sign(f"`without {words[0].low} {words[1].low}`")  # "men without hats band"
    while start < len(words):
        noun, tail = words[:start], words[start:]
        end = _phrase_end(tail, lex) if tail[0].low in lex.sets["preposition"] else len(tail)
        answer = _owner(noun, tail[:end], host, lex, single=single)
        if answer == "doubt":
            notes.sign(f"what `{' '.join(lows(tail)[:3])}` belongs to")
            return
        if answer == "host":
            term.words = noun
            host.words = [*without_dangling(host.words, lex), *tail]
            return
        start += end
    term.words = words


def _finite_verb(words: Chunk, host: Term, term: Term, lex: Lexicon, notes: Notes) -> int:
    """Where the absent thing ends before a verb of the host: `a boy without a shirt | jumps into a lake`.

    The end of the words where the verb is about the absent thing (`no apples are on the trees`), 0 without a verb.
    """
    many = is_plural(head_noun(content(host.words, lex), lex), lex)
    for at in range(1, 0 if words[0].instead else len(words)):  # nobody does it: "a bed nobody sleeps in"
        low, after = words[at].low, words[at + 1].low if at + 1 < len(words) else ""
        be = low in lex.sets["be"]
        doing = low in lex.sets["doing"] if many else is_finite(low, lex) and low.endswith("s")
        if not (be or doing) and is_plural(low, lex) and lex.has(after, "article", "owner", "preposition"):
            doing = not many and after not in lex.sets["preposition"]  # "no bag | boards a train"
            if not doing and (term.words[0].low in ("a", "an") or is_plural(words[at - 1].low, lex)):
                notes.sign(f"whether `{low}` is a verb")
        if be or (doing and (lex.has(after, "preposition", "quantity") or is_plural(after, lex))):
            thing = head_noun(words[:at], lex)
            worn = thing in lex.sets["clothing"] or (low in ("is", "was") and is_plural(thing, lex))
            own = host.words[-1].low in ("where", "when", "which") or (
                term.join in (",", ".", "and", "but", ", and", ", but") and term.cue in ("no", "neither") and not worn
            )
            noun = many and not be and term.words[0].low in ("a", "an")  # "rooms without a hat stand in the corner"
            return 0 if noun else len(words) if own else at
        if lex.has(low, "preposition", "relative"):
            return 0
    return 0


def _phrase_end(tail: Chunk, lex: Lexicon) -> int:
    """Where the first phrase of a preposition ends, and the next begins."""
    if len(tail) > 1 and tail[0].low in ("on", "off") and tail[1].low in lex.sets["preposition"]:
        return 1  # "no lights on at night"
    if len(tail) > 1 and tail[1].low in lex.sets["relative"]:
        return len(tail)
    at = 1
    while at < len(tail) and (tail[at].low in lex.sets["preposition"] or tail[at].low in ("of", "front", "top")):
        at += 1
    return tail_start(tail, lex, at)


def _owner(noun: Chunk, tail: Chunk, host: Term, lex: Lexicon, *, single: bool) -> str:
    """Whom a description behind an absent thing is about: the `thing`, the `host`, nobody (`drop`), or `doubt`."""
    low = lows(tail)
    first, last = low[0], low[-1]
    thing, owner = head_noun(noun, lex), head_noun(content(host.words, lex), lex)
    mover, worn = thing in lex.sets["mover"], lex.has(thing, "clothing", "body")
    hosts_move, hosts_place = owner in lex.sets["mover"] or _is_person(owner, lex), owner in lex.sets["place"]
    if len(low) == 1 and first in lex.sets["preposition"]:
        return "drop" if first == "on" else "thing"
    if first == "where" or low[:2] == ["in", "which"]:
        return "thing" if thing in ("place", "places", "spot") else "host"
    if first in lex.sets["relative"]:
        if lex.has("".join(low[1:2]), "be") and (low[1] in ("is", "was")) == is_plural(thing, lex):
            return "host" if is_plural(owner, lex) != is_plural(thing, lex) else "doubt"
        return "thing" if mover else "host" if worn and hosts_move else "doubt"
    if first not in lex.sets["preposition"] or is_verb(tail, 0, lex):
        if mover:
            return "doubt" if not noun[-1].instead and (hosts_move or first in lex.sets["scenic"]) else "thing"
        if first in lex.sets["scenic"]:
            return "doubt" if worn and hosts_place else "host"
        if first.endswith("ed") and len(low) == 1:
            return "doubt" if hosts_move else "thing"  # "a remote with no buttons pressed"
        acts = first.endswith("ing") and first not in lex.sets["lying"]
        if hosts_move or (worn and acts and not hosts_place):
            return "host"
        lies = (lex.has(first, "lying") or lex.has(thing, "unwanted")) and not {"through", "along"} & {*low}
        return "thing" if (lies or (acts and hosts_place)) and not worn and not single else "doubt"
    if first in ("during", "after", "before") or lex.has(last, "occasion") or lex.has("".join(low[-2:-1]), "occasion"):
        return "host"
    if first in ("about", "of") or (first == "for" and lex.has(last, "mover") and lex.has(owner, "place", "setting")):
        return "thing"
    if first in ("for", "from", "to", "between", "with"):
        told = (hosts_move and first != "for") or (first == "with" and "a" in low)
        return "doubt" if mover or not told else "host"
    if first == "in" and mover and (last in lex.sets["clothing"] or is_attribute(last, lex)):
        return "thing"
    pointing = any(word in lex.sets["pointing"] for word in low)
    if last in lex.sets["body"]:
        return "thing"
    if last in lex.sets["backdrop"] and "a" not in low and "an" not in low:
        if not (mover or worn) and (hosts_move or (single and not hosts_place)):
            return "doubt"  # "a phone without a case on the desk"
        if worn and not pointing and last not in ("wall", "walls", "water"):
            return "doubt" if "the" not in low else "host" if hosts_move else "thing" if hosts_place else "doubt"
        return "thing"
    if pointing:
        if low[1:] in (["it"], ["him"], ["her"], ["them"]):
            return "drop"
        within = first in ("in", "on", "inside")  # "a seagull without a fish in its beak"
        return "doubt" if worn == within else "host" if worn else "thing"
    if "a" in low or "an" in low:
        return "host"
    if last in lex.sets["setting"] or (last in lex.sets["place"] and first in ("in", "on", "at")):
        if hosts_move and mover:
            return "doubt"
        return "host" if hosts_move or not mover else "thing" if hosts_place and "the" in low else "doubt"
    if {"the", "both", "either"} & {*low}:
        return "doubt" if hosts_move or (single and not hosts_place) else "thing"
    return "thing" if mover and hosts_place and first != "at" else "host" if hosts_move and not hosts_place else "doubt"


def _is_person(low: str, lex: Lexicon) -> bool:
    """Whether a word looks like someone who does something: `violinist`, `waiter`."""
    someone = low.endswith(("ist", "ists", "man", "men", "woman", "women", "eer", "er", "ers", "or", "ors", "ian"))
    return len(low) > 5 and someone and not lex.has(low, "clothing", "place")


# ------------------------------------------------------------------------------------------ pass 7: descriptions


def join_descriptions(terms: list[Term], lex: Lexicon, notes: Notes) -> list[Term]:
    """Make one scene of what `and` joins, unless each is a thing by itself; logic where `both` or the like says so."""
    found: list[Term] = []
    listed = False
    for at, term in enumerate(terms):
        before = found[-1] if found else None
        if before is None or not _affirmed(before) or not _affirmed(term) or term.mark or term.affirms:
            listed = _is_list(terms, at, lex)
        elif term.join in ("and", ", and"):
            if not (term.strong or before.mark in ("both", "not both") or listed):
                before.words += [*term.lead, *term.words]
                continue
        found.append(term)
    return found


def _affirmed(term: Term) -> bool:
    return not term.negated and term.group is None


def _is_list(terms: Sequence[Term], at: int, lex: Lexicon) -> bool:
    """Whether the affirmed terms from here that `and` and commas join are things, each by itself."""
    first = True
    while at < len(terms) and _affirmed(terms[at]) and (first or terms[at].join in ("and", ", and", ",")):
        words = content(terms[at].words, lex) or terms[at].words
        if not is_thing(words, lex) or _gathers(words, lex):
            return False
        at, first = at + 1, False
    return True


def _gathers(words: Chunk, lex: Lexicon) -> bool:
    """Whether a phrase with `of` holds all that follows: `a bowl of oranges and apples`."""
    low = lows(words)
    if "of" not in low[1:-1]:
        return False
    return is_plural(low[-1], lex) or low[low.index("of", 1) - 1] in lex.sets["depiction"]


PASSES: tuple[Callable[[list[Term], Lexicon, Notes], list[Term]], ...] = (
    join_attributes,
    split_subjects,
    drop_fillers,
    reach,
    doubt_compounds,
    attach_tails,
    join_descriptions,
)
"""What is settled about the terms of a query, in this order."""
