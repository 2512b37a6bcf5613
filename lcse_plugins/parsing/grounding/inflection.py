"""Whether two English words are forms of one word: `dogs`/`dog`, `running`/`run`, `children`/`child`.

Each word is given the small set of base forms it may come from; two words match when the sets meet. The rules
prefer to miss a rare pair over joining different words: `car` is not `caring`, `bus` is not `bu`, `news` is not `new`.
"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["base_forms", "same_word"]

_IRREGULAR = {
    form: base
    for base, forms in {
        "person": "people persons", "man": "men", "woman": "women", "child": "children", "foot": "feet",
        "tooth": "teeth", "goose": "geese", "mouse": "mice", "ox": "oxen", "die": "dice", "cactus": "cacti",
        "leaf": "leaves", "loaf": "loaves", "knife": "knives", "wife": "wives", "life": "lives", "wolf": "wolves",
        "calf": "calves", "half": "halves", "shelf": "shelves", "scarf": "scarves", "hoof": "hooves",
        "thief": "thieves", "elf": "elves", "wharf": "wharves", "dwarf": "dwarves",
        "be": "is are was were am been being", "have": "has had having", "do": "does did done doing",
        "go": "goes went gone", "run": "ran", "sit": "sat", "stand": "stood", "lie": "lay lain lying",
        "hold": "held", "wear": "wore worn", "ride": "rode ridden", "drive": "drove driven", "fly": "flew flown",
        "eat": "ate eaten", "drink": "drank drunk", "swim": "swam swum", "sleep": "slept", "throw": "threw thrown",
        "catch": "caught", "fall": "fell fallen", "hang": "hung", "break": "broke broken", "build": "built",
        "make": "made", "take": "took taken", "write": "wrote written", "draw": "drew drawn", "hide": "hid hidden",
        "fight": "fought", "sing": "sang sung", "ring": "rang rung", "blow": "blew blown", "grow": "grew grown",
        "bite": "bit bitten", "shine": "shone", "sell": "sold", "buy": "bought", "read": "reading reads",
        "lead": "led", "feed": "fed", "leave": "left", "keep": "kept", "tear": "tore torn", "freeze": "froze frozen",
        "steal": "stole stolen", "speak": "spoke spoken", "shake": "shook shaken", "rise": "rose risen",
    }.items()
    for form in forms.split()
}  # fmt: skip
_HEADS = {
    form: _IRREGULAR[form] for form in "people men children feet teeth mice geese shelves wolves wives knives".split()
}
"""Irregular plurals that other words end in: `firemen`, `grandchildren`, `bookshelves`."""
_UNCHANGING = frozenset("news lens gas bus glass grass this his its series species always tennis iris canvas".split())
_VOWELS = "aeiou"
_SHORT = re.compile(r"[^aeiou]*[aeiou][^aeiouwxy]")
"""One syllable with a short vowel: such a verb doubles its last letter (`run`, `running`)."""


def same_word(one: str, other: str) -> bool:
    """Whether the two words, in lower case, are forms of one word."""
    return one == other or not base_forms(one).isdisjoint(base_forms(other))


@lru_cache(maxsize=8192)
def base_forms(word: str) -> frozenset[str]:
    """The word itself and the forms it may be an inflection of."""
    word = word.replace("’", "'")
    word = word.removesuffix("'s").removesuffix("'")
    forms = {word}
    if word in _IRREGULAR:
        forms.add(_IRREGULAR[word])
    if word not in _UNCHANGING and word.isascii():
        forms.update(_singulars(word))
        forms.update(
            word.removesuffix(end) + base
            for end, base in _HEADS.items()
            if len(word) > len(end) + 2 and word.endswith(end)
        )
        for ending in ("ing", "ed"):
            if word.endswith(ending):
                forms.update(_verbs(word[: -len(ending)]))
        if word.endswith(("ied", "ued", "yed")) or (word.endswith("eed") and len(word) > 4):
            forms.add(word[:-1])
    return frozenset(forms)


def _singulars(word: str) -> set[str]:
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us")):
        return {word[:-1]} if len(word) == 3 and word.endswith("s") and word[1] not in "aiu" else set()
    found = {word[:-1]}
    if word.endswith("ies") and len(word) > 4:
        found.add(word[:-3] + "y")
    elif word.endswith(("ses", "xes", "zes", "ches", "shes", "oes")):
        found.add(word[:-2])
        if word.endswith("zzes"):
            found.add(word[:-3])
    return found


def _verbs(stem: str) -> set[str]:
    if len(stem) < 2 or not any(letter in _VOWELS + "y" for letter in stem):
        return set()
    found = set()
    if stem[-1] not in _VOWELS:
        found.add(stem + "e")
    if stem.endswith("i"):
        found.add(stem[:-1] + "y")
    if not _SHORT.fullmatch(stem):
        found.add(stem)
    if len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in _VOWELS:
        found.add(stem[:-1])
    return found
