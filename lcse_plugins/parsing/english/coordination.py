"""What `and`, `or` and commas join in an English query: things in a list, or words of one description."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from lcse_plugins.parsing.english.items import GROUPS, NEGATIONS, Item, is_negation, is_words, tag_at
from lcse_plugins.parsing.english.phrases import Phrases
from lcse_plugins.parsing.english.words import Chunk

__all__ = ["join_or_describe", "read_commas"]

_ONLY = frozenset({"only", "just"})


def join_or_describe(items: list[Item], phrases: Phrases) -> list[Item]:
    """Things joined by `and` are logic when each is a thing by itself; otherwise the row is a description."""
    out: list[Item] = []
    at = 0
    reached = False
    while at < len(items):
        before = tag_at(out, len(out) - 1)
        reached = before in NEGATIONS or (reached and before in ("words", "or", "nor"))  # "no cars or | buses, trees"
        scoped = reached or before in GROUPS
        end = at
        while is_words(items, end) and tag_at(items, end + 1) in ("and", "comma") and is_words(items, end + 2):
            end += 2
        if scoped or end == at or not is_words(items, at):
            if scoped and end > at:
                out.extend(items[at : end + 1])
                at = end + 1
            else:
                out.append(items[at])
                at += 1
            continue
        run = items[at : end + 1]
        out.extend(_glued(run, phrases))
        at = end + 1
    return out


def _glued(run: list[Item], phrases: Phrases) -> list[Item]:
    """The row as it is when it lists things, as one operand when it describes."""
    chunks = [item.words for item in run[::2]]
    if all(phrases.simple(chunk) for chunk in chunks):
        loose = any(
            phrases.waits(left, right) or (phrases.has_of(left) and not phrases.determined(right))
            for left, right in pairwise(chunks)
        ) or any(
            joint.tag == "comma" and right[0].low == "with" for joint, right in zip(run[1::2], chunks[1:], strict=True)
        )
        if not loose:
            run[0].doubtful |= any(_may_be_name(left, right) for left, right in pairwise(chunks))
            return run
    out = [Item("words", list(run[0].words))]
    for joint, item in zip(run[1::2], run[2::2], strict=True):
        framed = joint.tag == "and" and (joint.framed or phrases.framed(item.words))
        strong = joint.strong and all(map(phrases.plain_description, (out[-1].words, item.words)))
        if strong or (framed and (phrases.framed(out[-1].words) or phrases.simple(out[-1].words))):
            out += [joint, Item("words", list(item.words))]
        else:
            out[-1].words.extend((*joint.words, *item.words))
    return out


def _may_be_name(left: Chunk, right: Chunk) -> bool:
    """Whether two things may be one name: `Harley and Davidson museum`."""
    return len(left) == 1 < len(right) and left[0].capital and right[0].capital


def _balanced(items: Sequence[Item], at: int) -> bool:
    """Whether `or` stands between two contrasts: `a cat but no dog or a dog but no cat`."""
    left = tag_at(items, at - 3) == "but" and is_negation(items, at - 2) and is_words(items, at - 1)
    return left and is_words(items, at + 1) and tag_at(items, at + 2) == "but" and is_negation(items, at + 3)


def read_commas(items: list[Item]) -> list[Item]:
    """Say of every comma what it stands for: `and`, `or`, a weaker `and` or `or`, or nothing but a list."""
    out = list(items)
    for at in range(len(items) - 1, -1, -1):
        item = out[at]
        if item.tag == "or" and _balanced(out, at):
            item.tag = "weak or"
        elif item.tag == "nor" and is_negation(out, at + 1):  # "no dogs nor without cats"
            out[at] = Item("and", item.words)
        elif item.tag in ("and", "or") and item.comma:
            serial = tag_at(out, at - 1) == "words" and tag_at(out, at - 2) == "comma"
            if not serial:
                item.tag = f"weak {item.tag}"
        elif item.tag == "comma" and is_words(out, at + 1):
            closing = tag_at(out, at + 2) if out[at + 1].words[0].low not in _ONLY else ""  # ", only birds or fish"
            out[at] = Item(closing if closing in ("and", "or", "nor") else "list", item.words)
        elif item.tag == "comma":
            out[at] = Item("weak and", item.words)
    return out
