"""Forms of one word match; different words do not."""

from __future__ import annotations

import pytest

from lcse_plugins.parsing.grounding.inflection import same_word

SAME = """dog dogs, run running, ride riding, child children, people person, box boxes, bus buses, glass glasses,
horse horses, cherry cherries, wolf wolves, skis ski, carry carrying, carry carried, chase chasing, chase chased,
stop stopped, wear wearing, park parked, tomatoes tomato, dog's dog, men man, sitting sit, fishing fish, smile smiling,
pen pens, lying lie, tied tie, agreed agree, wrapped wrap, pulling pull, passing pass, toy toys, tv tvs, worn wear,
fireman firemen, policewoman policewomen, salesperson salespeople, grandchild grandchildren, bookshelf bookshelves,
werewolf werewolves, housewife housewives, penknife penknives, wharf wharves, quiz quizzes, buzz buzzes"""
DIFFERENT = """car caring, bus bu, news new, glass glas, cat dog, wing w, red r, bed b, gas ga, star stare, hop hoping,
man mane, bare bar, tap tape, taping tap, see seed, as a, princess prince, ring bring, hat hate,
omen oman, fireman fire, grandchild child"""


@pytest.mark.parametrize("pair", SAME.replace("\n", " ").split(", "))
def test_forms_of_one_word(pair: str) -> None:
    one, other = pair.split()
    assert same_word(one, other)
    assert same_word(other, one)


@pytest.mark.parametrize("pair", DIFFERENT.replace("\n", " ").split(", "))
def test_different_words(pair: str) -> None:
    one, other = pair.split()
    assert not same_word(one, other)
    assert not same_word(other, one)
