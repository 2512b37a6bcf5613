"""What a negation does not reach of the words behind it: they speak about the phrase in front, its host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lcse_plugins.parsing.english.items import GROUPS, NEGATIONS, Item, is_words, negation_of, tag_at
from lcse_plugins.parsing.english.phrases import Phrases
from lcse_plugins.parsing.english.words import Chunk

__all__ = ["end_keywords", "give_back", "give_to_pictures"]


def end_keywords(items: list[Item], phrases: Phrases) -> list[Item]:
    """End what a bare `no` or `not` reaches where the wish goes on: `no people | beach`, `a not crowded | beach`."""
    out: list[Item] = []
    for at, item in enumerate(items):
        out.append(item)
        if not at or not is_words(items, at) or len(items[at - 1].words) != 1:
            continue
        led = items[at - 2].words if is_words(items, at - 2) else []
        if items[at - 1].tag == "no" and (end := _keyword_end(items, at, led, phrases)):
            out[-1:] = [Item("words", item.words[:end], doubtful=True), Item("words", item.words[end:])]
        elif items[at - 1].tag == "not" and led and led[-1].low in ("a", "an") and phrases.described(item.words):
            end = phrases.attributes(item.words)
            out[-3:] = [Item("words", [*led, *item.words[end:]]), items[at - 1], Item("words", item.words[:end])]
    return out


def _keyword_end(items: list[Item], at: int, led: Chunk, phrases: Phrases) -> int:
    """Where the keywords at `at` go on behind what is absent; 0 in a list, and in a phrase that `led` up to them."""
    if tag_at(items, at + 1) in ("and", "or", "nor"):  # "no cats dogs or birds"
        return 0
    end = phrases.terse(items[at].words)
    phrase = len(phrases.without_dangling(led)) < len(led)  # "a plate with no eggs benedict"
    return 0 if phrase and not phrases.described(items[at].words[end:]) else end


def give_to_pictures(items: list[Item], phrases: Phrases) -> list[Item]:
    """Give to a picture what it shows: `a photo without people | of a lake`, `not blurry | photo of a cat`."""
    out: list[Item] = []
    for at, item in enumerate(items):
        out.append(item)
        if tag_at(items, at - 1) not in ("no", "without", "not") or not is_words(items, at):
            continue
        led = out[-3].words if is_words(out, len(out) - 3) else []
        host = phrases.without_dangling(led)
        end = phrases.shown(host, item.words)
        first = at == 1 + bool(led) and not phrases.content(led)
        if not end and first and [word.low for word in items[at - 1].words] == ["not"]:
            end = phrases.pictured(item.words)
        if end:
            shown = Item("words", [*host, *item.words[end:]], doubtful=True)
            out[len(out) - 2 - bool(led) :] = [shown, items[at - 1], Item("words", item.words[:end])]
    return out


def give_back(items: list[Item], phrases: Phrases) -> list[Item]:
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
        adjacent = joined or place == len(out) - 2
        if adjacent and item.tag == "not" and phrases.waits(out[place].words, items[at].words):
            (host, _), _ = phrases.share([out[place].words, items[at].words], marked=True)
            out[place] = Item("words", host)  # "a black but not big dog"
        reach, rest, doubtful = phrases.scope(phrases.without_leading(items[at].words))
        doubtful |= phrases.may_lack(out[place].words, item.words, items[at].words)
        end = at
        while tag_at(items, end + 1) in ("or", "nor", "comma") and is_words(items, end + 2):
            if tag_at(items, end + 1) == "comma" and phrases.places(items[end + 2].words):
                break
            end += 2
        if not rest and end > at and tag_at(items, end - 1) != "comma":
            reach, rest, doubtful = phrases.scope(phrases.unrequested(items[end].words))
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
        out[place] = Item("words", [*out[place].words, *rest], doubtful=out[place].doubtful or doubtful)
    return out


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
        host = [replace(out[place], words=kept)] if kept else []
        out[place : place + 1] = [*host, *joint]  # "cats and I do not want"
        place = len(out) - 2
    joined = tag_at(out, place) in ("and", "but", "comma")
    place -= joined
    if is_words(out, place) and (joined or tag_at(out, place - 1) in NEGATIONS):
        negation = negation_of(out, place)
        if negation is not None:
            return hosts.get(negation, -1), False
    return place, joined
