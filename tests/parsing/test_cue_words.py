"""Words that are a cue in one place and none in another: `exclude`, `missing`, `need not`, `free`, `non`."""

from __future__ import annotations

import pytest

from lcse_plugins import canonical, parse
from lcse_plugins.parsing.grounding.belief import ungrounded
from lcse_plugins.query import Concept, Not, Query, is_constrained, ordered
from tests.parsing.gold import read_tree

READ = """
# -- a verb of exclusion behind a thing, with no comma between
sunset exclude people => sunset & !people
landscape avoid buildings and roads => landscape & !buildings & !roads
find cats exclude kittens => cats & !kittens
include dog exclude leash => dog & !leash
beach please exclude people => beach & !people
photos of cats please remove kittens => cats & !kittens
beach remove people => beach & !people
beach filter out people => beach & !people
beach leave out people => beach & !people
city get rid of cars => city & !cars
beach avoid people, boats => beach & !people & !boats
red car exclude trucks at night => red car at night & !trucks
Beach Exclude People => Beach & !People
include: dog exclude: leash => dog & !leash
exclude: leash, include: dog => !leash & dog
exclude leash include dog => !leash & dog
beach exclude people include dogs => beach & !people & dogs
exclude photos that include cats => !cats
find images that exclude people => !people
I want to exclude people => !people
I'd like to avoid crowds => !crowds
the image should exclude people => !people
make sure to omit text => !text
beach don't exclude people => beach & people
# -- what is missing stands in front, what it is missing from behind
screws missing from hinge => !screws & hinge
tiles missing from roof => !tiles & roof
button missing from shirt => !button & shirt
teeth absent from smile => !teeth & smile
people missing from beach => !people & beach
screws missing from it => !screws
a girl missing a tooth => girl & !tooth
a man who is not from the city => man & !from the city
# -- short and mistyped
beach, excl. people and dogs => beach & !people & !dogs
cats (excl. kittens) => cats & !kittens
all animals excl. dogs & cats => all animals & !dogs & !cats
cats excl kittens => cats & !kittens
beach w.o. people => beach & !people
beach w/0 people => beach & !people
anything other then cats => !cats
cats rather then dogs => cats & !dogs
a dog that dosent have a collar => dog & !collar
a dog that dosen't have a collar => dog & !collar
a dog that does'nt have a collar => dog & !collar
# -- free of something that people want to be left out
watermark free photo of a lion => !watermark & lion
smoke free room => !smoke & room
snow free road => !snow & road
beach, people free => beach & !people
# -- few or none
beach with few or no people => beach & !people
street with few to no cars => street & !cars
a street with no or few cars => street & !cars
very few or no cars => !cars
# -- calling the one who is to look
hey google, find pictures of beaches with no people => beaches & !people
siri, find me a cat that is not black => cat & !black
alexa show me sunsets but no clouds => sunsets & !clouds
hey siri a beach with no people => beach & !people
"""

DOUBTED = """
beach hide people
beach skip the people
beach skip people
party photos remove children
mountains avoid people
cats ignore dogs
deer avoid wolves
sheep avoid dog
cattle avoid water
cat avoid water
man remove snow
a couple remove wallpaper
a crew remove snow
team remove debris from street
background remove tool
a fence to exclude deer
label missing on bottle
keys missing on a keyboard
a hiker missing in the mountains
wheel missing off a car
car that need not be red
a street that needn't have people
a car that doesn't have to be red
a garden, no need for flowers
dogs, I don't mind leashes
I wouldn't mind a cat
mountain lake, people not necessary
a garden, flowers not essential
dogs, not necessarily brown
not opposed to dogs
beach, people don't matter
beach wo people
text free poster
plastic free packaging
rust free car
weed free lawn
a clutter free and tidy desk
street that is car free
a photo that is watermark free
shoes non leather
non-white walls
non blurry photos of dogs
cars, non-red
room with one or no windows
"""

INNOCENT = """
a skip full of rubble
a rubbish skip
hide and seek
kids playing hide and seek
birds hide in trees
two kids hide behind a tree
a cow hide bag
deer hide gloves
a bird hide by a lake
a man trying to hide his face
children skip rope
children skip stones on a lake
students skip class
a man trying to avoid a puddle
a driver swerving to avoid a deer
cars that avoid potholes
children avoid puddles
a man and a dog avoid a puddle
a map to avoid traffic
how to remove a stain
a tool to remove nails
workers remove snow from the road
two men remove a tire
two deer avoid a car
two salmon avoid a net
police remove protesters
fish avoid net
family remove christmas tree
a dad helping his son remove a splinter
a crowd watching a man remove his shirt
remove before flight tag
people who ignore the sign
two women ignore a man
a water filter
autumn leaves out on the lawn
excluded students
a missing dog poster
missing teeth
a woman with a missing tooth
a jigsaw puzzle with a missing piece
missing in action flag
soldiers missing in action memorial
a cat missing for days
a man missing with his dog
child missing in woods
hikers missing in mountains
a plane missing over the ocean
I need a photo of a dog
a person in need
need for speed poster
dogs need water
mind the gap sign
black lives matter protest
essential oils
an excerpt from a book
a nether portal
an exceptional view
a room incl. bed and table
free range chickens
dogs running free
birds free in the sky
a man setting a dog free
buy one get one free
football free kick
basketball free throw
gym free weights
hotel free breakfast buffet
museum free entry sign
duty free shop
gluten free bread
cage free eggs
royalty free image of a dog
smoke free zone sign
dog free zone
gift free with purchase
a non-stick pan
non stick pan
non-fiction books on a shelf
nonfiction bookshelf
non-alcoholic beer
non stop flight board
a non-profit volunteer
a few people on a beach
a beach with few people
one or two dogs
google search page on a laptop
google street view car
alexa device on a table
siri on an iphone
hey arnold cartoon
a hello kitty toy
"""


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize(("text", "tree"), [line.split(" => ") for line in lines(READ)])
def test_a_cue_is_read_for_sure(text: str, tree: str) -> None:
    reading = parse.read(text)
    assert ordered(canonical(reading.query)) == ordered(canonical(read_tree(tree)))
    assert (reading.sure, reading.notes) == (True, ())


@pytest.mark.parametrize("text", lines(DOUBTED))
def test_what_may_be_a_cue_is_noted(text: str) -> None:
    reading = parse.read(text)
    assert not reading.sure
    assert reading.notes


@pytest.mark.parametrize("text", lines(INNOCENT))
def test_what_only_looks_like_a_cue_is_none(text: str) -> None:
    reading = parse.read(text)
    assert not is_constrained(reading.query)
    assert (reading.sure, reading.notes) == (True, ())


@pytest.mark.parametrize("cue", ["without", "excluding", "except"])
def test_a_slip_of_the_finger_is_no_other_cue(cue: str) -> None:
    slips = [cue[:at] + cue[at + 1 :] for at in range(len(cue))]
    slips += [cue[:at] + cue[at : at + 2][::-1] + cue[at + 2 :] for at in range(len(cue) - 1)]
    slips += [cue[:at] + letter + cue[at:] for at in range(len(cue)) for letter in "aeq"]
    meant = parse(f"beach {cue} people")
    assert [slip for slip in slips if parse(f"beach {slip} people") != meant] == []


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("a car that need not be red", Concept("car") & ~Concept("red")),
        ("dogs, I don't mind leashes", Concept("dogs") & ~Concept("leashes")),
        ("not opposed to dogs", Not(Concept("dogs"))),
    ],
)
def test_what_is_left_open_is_not_excluded(text: str, query: Query) -> None:
    assert ungrounded(query, text) != ()
