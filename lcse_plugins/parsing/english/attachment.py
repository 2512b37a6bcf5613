"""What a negation does not reach of the words behind it: they speak about the phrase in front, its host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from lcse_plugins.parsing.english.cuts import Cut
from lcse_plugins.parsing.english.items import GROUPS, NEGATIONS, Item, is_words, negation_of, tag_at
from lcse_plugins.parsing.english.phrases import Phrases
from lcse_plugins.parsing.english.reach import negation_goes_on
from lcse_plugins.parsing.english.words import Chunk

__all__ = ["end_keywords", "give_back", "give_to_pictures"]


_CLAUSES = frozenset({"where", "which", "while", "because", "whom"})


def end_keywords(items: list[Item], phrases: Phrases) -> list[Item]:
    """End what a bare cue reaches where the wish goes on: `no people | beach`, `a not crowded | beach`."""
    out: list[Item] = []
    for at, item in enumerate(items):
        out.append(item)
        if not at or not is_words(items, at) or len(items[at - 1].words) != 1:
            continue
        cue, led = items[at - 1], items[at - 2].words if is_words(items, at - 2) else []
        end = phrases.offer_split(led, item.words) if cue.tag in ("no", "not", "without") else 0
        doubtful = end > 0
        if not end and cue.tag == "no":
            end, doubtful = _keyword_end(items, at, led, phrases)
        elif not end:
            end = phrases.quality_end(item.words) if cue.tag == "not" else 0
            doubtful = end > 0
        if end:
            out[-1:] = [Item("words", item.words[:end], doubtful=True), Item("words", item.words[end:])]
        elif doubtful:
            out[-1] = replace(item, doubtful=True)
        elif cue.tag == "not" and led and led[-1].low in ("a", "an") and phrases.starts_with_attribute(item.words):
            end = phrases.count_attributes(item.words)
            out[-3:] = [Item("words", [*led, *item.words[end:]]), cue, Item("words", item.words[:end])]
    return out


def _keyword_end(items: list[Item], at: int, led: Chunk, phrases: Phrases) -> tuple[int, bool]:
    """Where the keywords at `at` go on behind what is absent, and whether one may doubt that they do or do not.

    They do not in a list (`no cats dogs or birds`), and in a phrase that `led` up to them (`a plate with no eggs
    benedict`).
    """
    words = items[at].words
    end = phrases.keyword_split(words)
    keywords = len(phrases.without_dangling(led)) == len(led)
    if tag_at(items, at + 1) in ("and", "or", "nor") or not (keywords or phrases.starts_with_attribute(words[end:])):
        end = 0
    return end, end > 0 or (keywords and phrases.may_go_on(words))


def give_to_pictures(items: list[Item], phrases: Phrases) -> list[Item]:
    """Give to a picture what it shows: `a photo without people | of a lake`, `not blurry | photo of a cat`."""
    out: list[Item] = []
    for at, item in enumerate(items):
        out.append(item)
        if tag_at(items, at - 1) not in ("no", "without", "not") or not is_words(items, at):
            continue
        led = out[-3].words if is_words(out, len(out) - 3) else []
        host = phrases.without_dangling(led)
        end = phrases.depiction_split(host, item.words)
        start = len(out) - (3 if led else 2)
        first = start == 0 and not phrases.content(led)
        if not end and first and [word.low for word in items[at - 1].words] == ["not"]:
            end = phrases.picture_split(item.words)
        if end:
            shown = Item("words", [*host, *item.words[end:]], doubtful=True)
            out[start:] = [shown, items[at - 1], Item("words", item.words[:end])]
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
        told = is_words(items, at) and _is_subject(items, at - 1) and phrases.says_clause(items[at].words)
        place, joined = _host(out, hosts, phrases)
        hosts[len(out) - 1] = place
        listed = item.tag in ("no", "without", "not", "neither") and is_words(items, at)
        if not listed or not is_words(out, place) or not phrases.content(out[place].words):
            out[-1] = replace(item, doubtful=item.doubtful or (item.order and listed and _may_take(items[at], phrases)))
            continue
        host, thing = out[place], items[at].words
        words = host.words
        if item.tag == "not" and (joined or place == len(out) - 2) and phrases.takes_noun_of_next(words, thing):
            (words, _), _ = phrases.share([words, thing], marked=True)  # "a black but not big dog"
        given = _Given([], [], at, False) if told else _given_back(items, at, words, phrases)
        doubtful = host.doubtful or given.doubtful or phrases.may_lack(words, item.words, thing)
        out[place] = Item("words", [*words, *given.rest], doubtful=doubtful)
        out.extend(given.kept)
        at = given.end
    return out


def _is_subject(items: list[Item], cue: int) -> bool:
    """Whether what is negated begins a clause of its own: `a street where | no cars are parked`."""
    if items[cue].words[0].low == "none":
        return True
    if [word.low for word in items[cue].words] != ["no"]:
        return False
    led = items[cue - 1].words[-1].low if is_words(items, cue - 1) else ""
    return led in _CLAUSES


def _may_take(item: Item, phrases: Phrases) -> bool:
    """Whether it is named from where a thing is to be taken: `(remove) people from beach photos`."""
    return any(word.low == "from" for word in phrases.without_closing(item.words, absent=True))


class _Given(NamedTuple):
    """What of a row stays behind its negation, what goes back to the host, and where the row goes on."""

    kept: list[Item]
    rest: Chunk
    end: int
    doubtful: bool


def _given_back(items: list[Item], at: int, host: Chunk, phrases: Phrases) -> _Given:
    """What goes back to the host of the list that begins at `at`: from its first thing, its last, or behind it."""
    first = phrases.split_reach(phrases.without_leading(items[at].words), host)
    if first.rest:
        return _from_first(items, at, first)
    last = _last_of_list(items, at, phrases)
    if last == at:
        return _from_clause(items, at, last, first.doubtful)
    if tag_at(items, last - 1) == "comma":
        return _Given([], [], at, first.doubtful)
    cut = phrases.split_reach(phrases.without_request(items[last].words), host)
    if cut.rest:  # "without a hat or a shirt | in a park"
        doubtful = cut.doubtful or _may_be_wish(items, at, last, cut.reach, phrases)
        return _Given([*items[at:last], Item("words", cut.reach)], cut.rest, last + 1, doubtful)
    return _from_clause(items, at, last, cut.doubtful)


def _last_of_list(items: list[Item], first: int, phrases: Phrases) -> int:
    """Where the last thing of the list stands: `no boats, cars or | people`, and not `no boats, | at night`."""
    at = first
    while tag_at(items, at + 1) in ("or", "nor", "comma", "and") and is_words(items, at + 2):
        if tag_at(items, at + 1) == "comma" and phrases.sets_scene(items[at + 2].words):
            break
        if tag_at(items, at + 1) == "and" and not negation_goes_on(items, first - 1, at + 1, phrases)[0]:
            break
        at += 2
    return at


def _may_be_wish(items: list[Item], at: int, last: int, thing: Chunk, phrases: Phrases) -> bool:
    """Whether the last thing of a list may be wanted where it is: `without a hat and | a dog on a leash`."""
    joints = [item.tag for item in items[at + 1 : last : 2]]
    if joints[-1] != "and":
        return False
    return joints.count("and") > 1 or (phrases.moves(thing) and not phrases.moves(items[at].words))


def _from_first(items: list[Item], at: int, cut: Cut) -> _Given:
    """`without a shirt | in a park and on a bench`."""
    rest, end = cut.rest, at + 1
    while tag_at(items, end) in ("and", "comma") and is_words(items, end + 1):
        rest = [*rest, *items[end].words, *items[end + 1].words]
        end += 2
    return _Given([Item("words", cut.reach)], rest, end, cut.doubtful)


def _from_clause(items: list[Item], at: int, last: int, doubtful: bool) -> _Given:
    """`without boats or people, | at night`."""
    if tag_at(items, last + 1) != "comma" or not is_words(items, last + 2):
        return _Given([], [], at, doubtful)
    return _Given(items[at : last + 1], items[last + 2].words, last + 3, doubtful)


def _host(out: list[Item], hosts: Mapping[int, int], phrases: Phrases) -> tuple[int, bool]:
    """Where the phrase stands that the last item speaks about, and whether only a joint is between them.

    The words that led up to the item are cut off. What is itself negated is no host; `hosts` knows whose it is:
    `a bridge, no boats, no people | , at night`.
    """
    place = len(out) - 2
    if is_words(out, place) and not (out[-1].tag in GROUPS and phrases.ends_in_verb(out[place].words)):
        kept = phrases.without_dangling(out[place].words)
        dropped = out[place].words[len(kept) :]
        joint = [Item("and", dropped)] if kept and any(word.low == "and" for word in dropped) else []
        host = [replace(out[place], words=kept)] if kept else []
        out[place : place + 1] = [*host, *joint]  # "cats and I do not want"
        place = len(out) - 2
    joined = tag_at(out, place) in ("and", "but", "comma")
    if joined:
        place -= 1
    if is_words(out, place) and (joined or tag_at(out, place - 1) in NEGATIONS):
        negation = negation_of(out, place)
        if negation is not None:
            return hosts.get(negation, -1), False
    return place, joined
