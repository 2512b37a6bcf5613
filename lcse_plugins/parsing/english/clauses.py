"""Settle what each operator of an English query joins, before the tree is built.

A word that could be logic is often not: `both sides`, `small but fast`, `a man and a woman riding bikes`. The steps
below turn such operators back into words, give stray words to the phrase they speak about, and say of every comma
what it stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lcse_plugins.errors import QueryTooComplex
from lcse_plugins.parsing.english.attachment import end_keywords, give_back, give_to_pictures
from lcse_plugins.parsing.english.coordination import join_or_describe, read_commas
from lcse_plugins.parsing.english.items import GROUPS, Item, is_negation, is_words, negation_of, tag_at
from lcse_plugins.parsing.english.phrases import Phrases

__all__ = ["settle"]

_BREAKS = frozenset({"but", "stop"})
_MAX_GROUPS = 40


def settle(items: list[Item], phrases: Phrases) -> list[Item]:
    """The items with every operator either certain or turned into words."""
    items = _parentheses(items, phrases)
    items = _commas_before(items)
    items = _groups(items, phrases)
    items = _absence(items, phrases)
    items = _contrast(items, phrases)
    items = _exceptions(items, phrases)
    items = _permissions(items, phrases)
    items = give_to_pictures(items, phrases)
    items = give_back(end_keywords(items, phrases), phrases)
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


def _parentheses(items: list[Item], phrases: Phrases) -> list[Item]:
    """Keep parentheses that group logic; a negated remark becomes a clause, any other remark is words.

    A pair around a whole operand groups nothing and is dropped: `a dog or (a cat)`. So is a request in front of a
    group: `show me (a dog or a cat) and no person`.
    """
    if not any(item.tag in ("open", "close") for item in items):
        return items
    pairs = _pairs(items)
    paired = {place for pair in pairs for place in pair}
    out: list[Item | None] = [
        Item("words", item.words) if item.tag in ("open", "close") and at not in paired else item
        for at, item in enumerate(items)
    ]
    kept = 0
    for first, last in pairs:
        inner = items[first + 1 : last]
        logic = any(part.tag not in ("words", "open", "close", "comma") for part in inner)
        requested = is_words(items, first - 1) and not phrases.content(items[first - 1].words)
        before = tag_at(items, first - 1) not in ("words", "close") or requested
        apart = before and tag_at(items, last + 1) not in ("words", "open")
        if logic and apart:
            kept += 1
            if requested:
                out[first - 1] = None
        elif is_negation(inner, 0) or tag_at(inner, 0) in ("but", "exclusive"):
            out[first], out[last] = Item("comma", items[first].words), Item("comma", items[last].words)
        elif apart and len(inner) == 1:
            out[first] = out[last] = None
        else:
            for place in range(first, last + 1):
                out[place] = Item("words", items[place].words)
    if kept > _MAX_GROUPS:
        raise QueryTooComplex(f"the query has more than {_MAX_GROUPS} groups in parentheses; write it flatter")
    return _merged([item for item in out if item is not None])


def _pairs(items: Sequence[Item]) -> list[tuple[int, int]]:
    """Where parentheses that belong together stand, by the first of each."""
    opened: list[int] = []
    pairs: list[tuple[int, int]] = []
    for at, item in enumerate(items):
        if item.tag == "open":
            opened.append(at)
        elif item.tag == "close" and opened:
            pairs.append((opened.pop(), at))
    return sorted(pairs)


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
        out.append(replace(item, words=[*items[at - 1].words, *item.words], comma=True) if comma else item)
    return out


def _groups(items: list[Item], phrases: Phrases) -> list[Item]:
    """`both` without `and`, `either` without `or` are words; `not both` at the end means `but not both`."""
    out: list[Item] = []
    for at, item in enumerate(items):
        tag = item.tag
        if tag in ("not both", "exclusive", *GROUPS):
            ahead = _ahead(items, at, phrases)
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
        out.append(item if tag == item.tag else replace(item, tag=tag))
    return _merged(out)


def _ahead(items: Sequence[Item], at: int, phrases: Phrases) -> list[str]:
    """The tags of what the group at `at` may join.

    An `and` in front of a negation, or between some of many and a thing by itself, is no joint of an alternative:
    `any of the cats | and no dogs`, `one of the players | and a referee`.
    """
    many = items[at].tag == "either" and is_words(items, at + 1) and phrases.definite_plural(items[at + 1].words)
    tags: list[str] = []
    for place in range(at + 1, len(items)):
        tag = items[place].tag
        if tag in ("stop", "but") and tags:
            break
        apart = is_negation(items, place + 1) or (
            is_words(items, place + 1) and phrases.determined(items[place + 1].words)
        )
        tags.append("words" if tag == "and" and many and apart else tag)
    return tags


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
    """What a negation leaves out is affirmed: `no animals except dogs`, `an empty room except for a chair`."""
    out = list(items)
    for at, item in enumerate(items):
        excepted = item.tag == "without" and phrases.excepts(item.words[0].low)
        if excepted and at == 0 and tag_at(items, 2) == "comma":
            framed = is_words(items, 3) and not phrases.content(items[3].words)
            if is_negation(items, 3 + framed):  # "apart from a dog, there are no animals"
                out[at] = Item("but", item.words)
        if not excepted or not is_words(items, at - 1):
            continue
        alone = not phrases.plural(items[at - 1].words[-1].low) or (
            is_words(items, at + 1) and phrases.determined(items[at + 1].words)
        )
        if tag_at(items, at - 2) in ("no", "without", "neither") or (alone and phrases.bare(items[at - 1].words)):
            out[at] = Item("but", item.words)
    return out


def _permissions(items: list[Item], phrases: Phrases) -> list[Item]:
    """Beside a negation, what is only allowed is not asked for: `no people | but dogs are fine`."""
    out: list[Item] = []
    for item in items:
        joined = tag_at(out, len(out) - 1) in ("but", "comma", "stop", "and")
        thing = phrases.permitted(item.words) if joined and item.tag == "words" and not item.negated else []
        if thing and phrases.simple(thing) and any(is_negation(out, place) for place in range(len(out))):
            out.pop()
        else:
            out.append(item)
    return out


def _until(items: Sequence[Item], at: int, step: int) -> list[Item]:
    """The items on one side, as far as the next contrast or sentence end."""
    part: list[Item] = []
    place = at + step
    while 0 <= place < len(items) and items[place].tag not in _BREAKS:
        part.append(items[place])
        place += step
    return part if step > 0 else part[::-1]
