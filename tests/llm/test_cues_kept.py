"""A cue of the query is neither dropped nor turned round by a tree, whether or not the grammar is sure of it."""

from __future__ import annotations

import pytest

from lcse_plugins.parsing.grounding.belief import ungrounded
from lcse_plugins.parsing.hybrid import HybridParser
from lcse_plugins.parsing.llm.openai import OpenAIParser
from lcse_plugins.parsing.prompt import load_prompt
from lcse_plugins.query import Query
from tests.llm.server import ScriptedServer
from tests.llm.test_agreement import pairs

DROPPED = """cloudless sky => cloud & sky
cloudless sky => sky
cloudless sky => !sky & cloud
cloudless sky => !cloudless
cloudless sky and no birds => cloud & sky & !birds
riderless horse => horse & rider
riderless horse => horse
shirtless man => man
shirtless man => shirt & man
headless statue => statue
leafless tree => leaf & tree
tourist free temple => tourist & temple
tourist free temple => temple
people: none => people
beach, people: none => beach & people
nothing red => red
nothing blurry => blurry
beach unless crowded => beach & crowded
beach unless crowded => beach
dogs unless they're puppies => dogs
dogs unless they're puppies => dogs & puppies
bike whose chain is missing => !bike
bike whose chain is missing => bike & chain
bike whose chain is missing => bike
no cups or plates on the table => !cups & plates & table
no cups or plates on the table => !cups | !plates
no cups or plates on the table => !cups | plates
no, show me dogs => !dogs
treeless hill => tree & hill
room with nothing on the walls => room & walls
room with nothing on the walls => room
Beach. People: no. Sunset: yes. => Beach & People & Sunset
dog yes leash no => dog & leash
dog=yes, leash=no => dog & leash
cat or dog and bird => cat & dog & bird
I don't care if there are people => !people
I don't care if there are people on the beach => beach & !people
why can't I find photos of foxes => !foxes
barely a cloud => cloud
hardly a person on the beach => person & beach
unlike cats, dogs => cats & dogs
dogs unlike poodles => dogs & poodles
dogs unlike poodles, no people => dogs & poodles & !people
lake that never freezes => lake & freezes
burger with no onion or tomato and extra cheese => burger & !onion & tomato & extra cheese
windowless room => window & room
meatless burger => burger
a starless night sky => night sky
car that need not be red => car & !red
dogs, I don't mind leashes => dogs & !leashes
a garden, no need for flowers => garden & !flowers
sunset exclude people => sunset & people
sunset exclude people => sunset
beach, people free => beach & people
a beardless, hatless man => man & !hat & beard
a dog whose collar is not red => !dog
a dog whose collar is not red => dog & red collar
flowers other than roses or tulips => flowers & !roses & tulips
a bowl of fruit without apples or pears or grapes => bowl of fruit & !apples & !pears & grapes
lawn without dogs or cats, unless asleep => lawn & !dogs & cats
non-white walls => white walls
shoes non leather => leather shoes
shoes non leather => shoes"""

RIGHT = """cloudless sky => sky & !cloud
cloudless sky => cloudless sky
cloudless blue sky over mountains => blue sky over mountains & !cloud
riderless horse => horse & !rider
shirtless man => man & !shirt
shirtless man on a beach => shirtless man on a beach
headless statue => statue & !head
leafless tree => tree & !leaf
leafless tree in winter => tree in winter & !leaves
windowless room => room & !window
meatless burger => burger & !meat
tourist free temple => temple & !tourist
tourist free temple => tourist free temple
tourist-free temple => temple & !tourist
people: none => !people
beach, people: none => beach & !people
nothing red => !red
nothing red => nothing red
nothing red, just blue cars => !red & blue cars
beach unless crowded => beach & !crowded
dogs unless they're puppies => dogs & !puppies
bike whose chain is missing => bike & !chain
bike whose chain is missing => bike whose chain is missing
no cups or plates on the table => !cups & !plates & table
no cups or plates on the table => !cups & !plates
no cups or plates on the table => !cups on the table & !plates on the table
no, show me dogs => dogs
no, I meant dogs => dogs
vegetables besides carrots => vegetables & !carrots
besides a cat there is a dog => cat & dog
room with nothing on the walls => room with nothing on the walls
room with nothing on the walls => room & !walls
table with nothing on it except a vase => table & vase
beach no people sunset => beach & !people & sunset
no dog and cat => !dog & !cat
a street with hardly anyone => street & !anyone
some people wearing masks and some not => people wearing masks & people not wearing masks
one person with a mask and one without => person with a mask & person without a mask
Beach. People: no. Sunset: yes. => Beach & !People & Sunset
dog yes leash no => dog & !leash
dog=yes, leash=no => dog & !leash
cat or dog and bird => (cat | dog) & bird
cat or dog and bird => cat | (dog & bird)
cats and/or dogs without people => (cats | dogs) & !people
I don't care if there are people on the beach => beach
why can't I find photos of foxes => foxes
dogs no older than a year => dogs & !older than a year
dogs no older than a year => dogs no older than a year
living room without tv with fireplace => living room & !tv & fireplace
pizza with no olives, mushrooms, and peppers => pizza & !olives & !mushrooms & !peppers
pizza with no olives, mushrooms, and peppers => pizza & !olives & mushrooms & peppers
barely a cloud => !cloud
hardly a person on the beach => beach & !person
a barely visible man in fog => barely visible man in fog
unlike cats, dogs => dogs & !cats
dogs unlike poodles => dogs & !poodles
lake that never freezes => lake & !freezes
burger with no onion or tomato and extra cheese => burger & !onion & !tomato & extra cheese
kitchen no island white cabinets => kitchen & !island & white cabinets
poster no text red background => poster & !text & red background
woman no hat curly hair => woman & !hat & curly hair
dog portrait not blurry black background => dog portrait & !blurry & black background
shoes, black or brown, not suede => (black shoes | brown shoes) & !suede
a car, red or blue, parked on the street => (red car | blue car) & parked on the street
beach without rocks with palm trees => beach & !rocks & palm trees
a building without windows made of concrete => building made of concrete & !windows
a man without a shirt covered in tattoos => man covered in tattoos & !shirt
mountain lake, people not necessary => mountain lake
a garden, flowers not essential => garden
shoes non leather => shoes & !leather
non-white walls => walls & !white
two men, one without a hat => two men & !hat
several dogs, some without leashes => several dogs & !leashes
no dogs, cats => !dogs & cats
a cat or a dog, unless it's a poodle => (cat | dog) & !poodle
none of the dogs are black => dogs & !black
not a single boat, nothing but sea => sea & !boat
a table with either cups or plates but nothing else => table & (cups | plates)
rarely used kitchen => rarely used kitchen
seldom seen birds => seldom seen birds
a harmless snake on nothing but sand => harmless snake & sand
flowers other than roses or tulips => flowers & !roses & !tulips
beach with no people or few people => beach & (!people | few people)
no people unless they wear hats => !people | hats
cat xor dog => (cat & !dog) | (dog & !cat)
neither red nor blue, but unlike green ones, cars => cars & !red & !blue & !green
nobody in the room unless sitting => room & (!people | sitting)
photos where nothing is moving => !moving
a dog whose collar is not red => dog & !red collar
a dog whose collar is not red => dog & !collar red
a woman whose hair isn't blond => woman & !blond hair
houses whose roof is missing, no people => houses & !roof & !people
a house nowhere near the sea => house & !near the sea
a house nowhere near the sea => house & !sea
a shoeless child => child & !shoe
a beardless, hatless man => man & !beard & !hat
a jobless man, not smiling => jobless man & !smiling
a starless night sky => night sky & !star
a driverless car => driverless car
whether or not there is snow, mountains => mountains
no matter the weather, a beach => beach
a road without a car or a truck => road & !car & !truck
a bowl of fruit without apples or pears or grapes => bowl of fruit & !apples & !pears & !grapes
not sure of the name, a dog with long ears => dog with long ears
I have no idea what it's called, a red bird => red bird
dogs, no cats please, thanks => dogs & !cats
tea, rarely coffee => tea & !coffee
a beach where hardly anyone swims => beach & !people swims
a plate with nothing on it => plate with nothing on it
birds that seldom fly => birds & !fly
flowers besides roses => flowers & !roses
unlike cats or dogs, birds => birds & !cats & !dogs
a boat but nothing in the sky => boat & !sky
not red or blue cars => cars & !red & !blue
not red or blue cars => !red cars & !blue cars
an empty room except for a chair by the window => room & chair by the window
nothing in the room but a piano => room & piano
no animals other than dogs => dogs & !animals
barefoot, hatless child => barefoot child & !hat
a hatless or bald man => man & (!hat | bald)
a hatless or shoeless man => man & (!hat | !shoe)
either no dog or a cat, unless black => (!dog | cat) & !black
a windowless, doorless hut without a roof => hut & !window & !door & !roof
no clouds, or hardly any => !clouds
sky, clouds none => sky & !clouds
snowless mountains? yes. people? no => mountains & !snow & !people
man without a hat, whose dog is not on a leash => man & !hat & !dog on a leash
photos of lions, none sleeping => lions & !sleeping
a bowl with fruit, nothing green => bowl with fruit & !green
car or truck, not both, unless parked => ((car & !truck) | (truck & !car)) & !parked
a sign that says nothing => sign that says nothing
a cat, whether or not it is black => cat
a dog; no matter which breed => dog
non-stick pan => non-stick pan
non-white walls => non-white walls
a non-blurry photo of a dog => dog & !blurry
non smoking room => non smoking room"""


@pytest.mark.parametrize(("text", "reply"), pairs(DROPPED))
def test_a_cue_that_is_dropped_or_turned_round_is_noticed(text: str, reply: Query) -> None:
    assert ungrounded(reply, text) != ()


@pytest.mark.parametrize(("text", "reply"), pairs(RIGHT))
def test_a_right_reply_is_believed(text: str, reply: Query) -> None:
    assert ungrounded(reply, text) == ()


@pytest.mark.parametrize(("text", "reply"), pairs(DROPPED)[::6])
def test_a_reply_without_its_cue_is_asked_about_once_more_and_then_refused(
    server: ScriptedServer, base_url: str, text: str, reply: Query
) -> None:
    server.knows({text: reply})
    with OpenAIParser("m", base_url=base_url, prompt=load_prompt(examples=0)) as llm:
        answer = HybridParser(llm).read(text)
    assert (answer.parser, server.asked[text]) == ("grammar", 2)
    assert answer.error
    assert answer.notes


@pytest.mark.parametrize(("text", "reply"), pairs(RIGHT)[::10])
def test_a_right_reply_passes_at_once_and_without_a_note(
    server: ScriptedServer, base_url: str, text: str, reply: Query
) -> None:
    server.knows({text: reply})
    with OpenAIParser("m", base_url=base_url, prompt=load_prompt(examples=0)) as llm:
        answer = llm.read(text)
    assert (answer.query, answer.error, answer.notes, answer.sure) == (reply, None, (), True)
    assert server.asked[text] == 1
