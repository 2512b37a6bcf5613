"""Settle what each operator of an English query joins, before the tree is built.

A word that could be logic is often not: `both sides`, `small but fast`, `a man and a woman riding bikes`. The steps
below turn such operators back into words, give stray words to the phrase they speak about, and say of every comma
what it stands for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lcse_plugins.errors import QueryTooComplex
from lcse_plugins.parsing.coordination import join_or_describe, read_commas
from lcse_plugins.parsing.items import GROUPS, NEGATIONS, Item, is_negation, is_words, negation_of, tag_at
from lcse_plugins.parsing.phrases import Phrases

__all__ = ["settle"]

_BREAKS = frozenset({"but", "stop"})
_MAXGROUPS = 40


def settle(items: list[Item], phrases: Phrases) -> list[Item]:
    """The items with every operator either certain or turned into words."""
    items = _parentheses(items)
    items = _commas_before(items)
    items = _groups(items, phrases)
    items = _absence(items, phrases)
    items = _contrast(items, phrases)
    items = _exceptions(items, phrases)
    items = _scopes(items, phrases)
    return read_commas(join_or_describe(items, phrases))


def _merged(items: Sequence[Item]) -> list[Item]:
    """Neighbouring operands as one."""
    out: list[Item] = []
    for item in items:
        if item.tag == "words" and not item.negated:
            if not is_words(out, len(out) - 1):
                out.append(Item("words"))
            out[-1].words.extend(item.words)
        else:
            out.append(item)
    return out


def _parentheses(items: list[Item]) -> list[Item]:
    """Keep parentheses that group logic; a negated remark becomes a clause, any other remark is words."""
    if not any(item.tag in ("open", "close") for item in items):
        return items
    stack: list[int] = []
    partner: dict[int, int] = {}
    for at, item in enumerate(items):
        if item.tag == "open":
            stack.append(at)
        elif item.tag == "close" and stack:
            opened = stack.pop()
            partner[opened], partner[at] = at, opened
    out = list(items)
    kept = 0
    for at, item in enumerate(items):
        if item.tag not in ("open", "close"):
            continue
        if at not in partner:
            out[at] = Item("words", item.words)
        elif item.tag == "open":
            end = partner[at]
            inner = items[at + 1 : end]
            logic = any(part.tag not in ("words", "open", "close", "comma") for part in inner)
            apart = tag_at(items, at - 1) not in ("words", "close") and tag_at(items, end + 1) not in ("words", "open")
            if logic and apart:
                kept += 1
            elif is_negation(inner, 0) or tag_at(inner, 0) in ("but", "exclusive"):
                out[at], out[end] = Item("comma", item.words), Item("comma", items[end].words)
            else:
                for place in range(at, end + 1):
                    out[place] = Item("words", items[place].words)
    if kept > _MAXGROUPS:
        raise QueryTooComplex(f"the query has more than {_MAXGROUPS} groups in parentheses; write it flatter")
    return _merged(out)


def _commas_before(items: list[Item]) -> list[Item]:
    """A comma in front of `and` or `or` is noted there; in front of other joints it says nothing."""
    out: list[Item] = []
    for at, item in enumerate(items):
        after = tag_at(items, at + 1)
        if item.tag == "comma" and after in ("and", "or", "but", "nor", "stop", "exclusive", "comma", "close", ""):
            continue
        if out and item.tag in ("and", "or") and out[-1].tag == item.tag:
            continue  # "and and"
        comma = item.tag in ("and", "or") and tag_at(items, at - 1) == "comma"
        words = [*items[at - 1].words, *item.words] if comma else item.words
        out.append(replace(item, words=words, comma=comma))
    return out


def _groups(items: list[Item], phrases: Phrases) -> list[Item]:
    """`both` without `and`, `either` without `or` are words; `not both` at the end means `but not both`."""
    out: list[Item] = []
    for at, item in enumerate(items):
        tag = item.tag
        if tag in ("not both", "exclusive", *GROUPS):
            ahead: list[str] = []
            for other in items[at + 1 :]:
                if other.tag in ("stop", "but") and ahead:
                    break
                ahead.append(other.tag)
            joined = "and" in ahead or (tag in ("either", "exactly one") and ("or" in ahead or "comma" in ahead))
            if tag == "either" and item.words[-1].low == "either":
                joined = "or" in ahead
            elif item.words[-1].low == "of" and is_words(items, at + 1):  # "one of the men is …"
                joined = joined and phrases.simple(items[at + 1].words)
            if tag == "exclusive":
                tag = "not both" if joined and ahead[:1] == ["words"] else "exclusive"
            elif tag == "not both" and not joined:
                tag = "exclusive" if not ahead or ahead[0] != "words" else "not"
            elif tag in GROUPS and not joined:
                tag = "words"
        elif tag == "stop" and tag_at(items, at - 1) in (*GROUPS, "neither", "not both"):
            continue
        out.append(replace(item, tag=tag))
    return _merged(out)


def _absence(items: list[Item], phrases: Phrases) -> list[Item]:
    """`dogs and cats are absent`: the things in front are negated."""
    out: list[Item] = []
    for item in items:
        if (
            is_words(items, 0)
            and item.tag == "words"
            and len(out) > 1
            and out[-1].negated
            and is_words(out, len(out) - 2)
        ):
            if phrases.goes_on(item.words):  # "… is on a plate"
                out[-2].words.extend(item.words)
                continue
        if item.tag != "absent":
            out.append(item)
            continue
        many = item.words[0].low in ("are", "were")
        at = len(out) - 1
        about, thing = phrases.said_of(out[at].words) if is_words(out, at) else ([], [])
        if phrases.content(about):  # "a pizza with a slice missing"
            out[at:] = [Item("words", about), Item("words", thing, negated=True)]
            continue
        while at >= 0 and out[at].tag == "words":
            out[at] = Item("words", out[at].words, negated=True)
            before = tag_at(out, at - 1)
            alike = is_words(out, at - 2) and phrases.simple(out[at - 2].words) and negation_of(out, at - 2) is None
            if not (many and before in ("and", "comma") and alike and not phrases.stated(out[at - 2].words)):
                break
            at -= 2
    return out


def _contrast(items: list[Item], phrases: Phrases) -> list[Item]:
    """`but` without a negation on either side contrasts nothing; `not only … but` adds, `all … but` excludes."""
    out = list(items)
    for at, item in enumerate(items):
        if item.tag != "but":
            continue
        left = _until(items, at, -1)
        right = _until(items, at, 1)
        if any(is_negation(part, place) for part in (left, right) for place in range(len(part))):
            continue
        said = [word.low for part in left if part.tag == "words" for word in phrases.unrequested(part.words)]
        tag = "and" if said[:1] == ["not"] else "without" if said and phrases.universal(said[0]) else "words"
        out[at] = Item(tag, item.words, framed=item.framed)
    return _merged(out)


def _exceptions(items: list[Item], phrases: Phrases) -> list[Item]:
    """What a negation leaves out is affirmed: `no animals except dogs`."""
    out = list(items)
    for at, item in enumerate(items):
        excepted = item.tag == "without" and phrases.excepts(item.words[0].low)
        if excepted and is_words(items, at - 1) and tag_at(items, at - 2) in ("no", "without", "neither"):
            out[at] = Item("but", item.words)
    return out


def _until(items: Sequence[Item], at: int, step: int) -> list[Item]:
    """The items on one side, as far as the next contrast or sentence end."""
    part: list[Item] = []
    place = at + step
    while 0 <= place < len(items) and items[place].tag not in _BREAKS:
        part.append(items[place])
        place += step
    return part if step > 0 else part[::-1]


def _host(out: list[Item], hosts: Mapping[int, int], phrases: Phrases) -> tuple[int, bool]:
    """Where the phrase stands that the last item speaks about, and whether only a joint is between them.

    The words that led up to the item are cut off. What is itself negated is no host; `hosts` knows whose it is:
    `a bridge, no boats, no people | , at night`.
    """
    place = len(out) - 2
    if is_words(out, place) and not (out[-1].tag in GROUPS and phrases.acts(out[place].words)):
        kept = phrases.without_dangling(out[place].words)
        dropped = out[place].words[len(kept) :]
        joint = [Item("and", dropped)] if kept and any(word.low == "and" for word in dropped) else []
        out[place : place + 1] = [*([Item("words", kept)] if kept else []), *joint]  # "cats and I do not want"
        place = len(out) - 2
    joined = tag_at(out, place) in ("and", "but", "comma")
    place -= joined
    if is_words(out, place) and (joined or tag_at(out, place - 1) in NEGATIONS):
        negation = negation_of(out, place)
        if negation is not None:
            return hosts.get(negation, -1), False
    return place, joined


def _scopes(items: list[Item], phrases: Phrases) -> list[Item]:
    """Give back to the phrase in front of a negation what speaks about it: `a man without a shirt | in a park`."""
    out: list[Item] = []
    hosts: dict[int, int] = {}  # where each negation stands, and the phrase in front that it speaks about
    at = 0
    while at < len(items):
        item = items[at]
        out.append(item)
        at += 1
        if item.tag not in NEGATIONS and item.tag not in GROUPS:
            continue
        place, joined = _host(out, hosts, phrases)
        hosts[len(out) - 1] = place
        if item.tag not in ("no", "without", "not", "neither") or not is_words(items, at):
            continue
        if not is_words(out, place) or not phrases.content(out[place].words):
            continue
        if joined and item.tag == "not" and phrases.waits(out[place].words, items[at].words):
            (host, _), _ = phrases.share([out[place].words, items[at].words], marked=True)
            out[place] = Item("words", host)  # "a black but not big dog"
        reach, rest = phrases.scope(phrases.without_leading(items[at].words))
        end = at
        while tag_at(items, end + 1) in ("or", "nor", "comma") and is_words(items, end + 2):
            if tag_at(items, end + 1) == "comma" and phrases.places(items[end + 2].words):
                break
            end += 2
        if not rest and end > at and tag_at(items, end - 1) != "comma":
            reach, rest = phrases.scope(phrases.unrequested(items[end].words))
            if rest:
                out.extend((*items[at:end], Item("words", reach)))
                at = end + 1
        elif rest:
            out.append(Item("words", reach))
            at += 1
            while tag_at(items, at) in ("and", "comma") and is_words(items, at + 1):
                rest = [*rest, *items[at].words, *items[at + 1].words]
                at += 2
        clause = tag_at(items, end + 1) == "comma" and is_words(items, end + 2)  # ", at night"
        if clause and not rest and (end == at or tag_at(items, end - 1) != "comma"):
            out.extend(items[at : end + 1])
            rest = items[end + 2].words
            at = end + 3
        out[place] = Item("words", [*out[place].words, *rest])
    return out
