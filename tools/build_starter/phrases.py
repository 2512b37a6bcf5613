"""The texts the student is distilled on: captions, and phrases made from a large vocabulary."""

from __future__ import annotations

import gzip
import importlib.util
import random
import re
import runpy
from collections.abc import Iterator, Sequence
from pathlib import Path

from wordfreq import zipf_frequency

COMMON_ENOUGH = 2.3
"""Nouns rarer than this on the Zipf scale (about one in five million words) are left out."""

TEMPLATES = (
    "{}", "a {}", "a photo of a {}", "an image of a {}", "a {} in the image", "the {}", "there is a {}",
    "a picture of a {}", "a photo of {}", "several {}", "two {}", "a close up of a {}", "a scene with a {}",
)  # fmt: skip
NEGATED = (
    "no {}", "not a {}", "without a {}", "a photo without a {}", "an image with no {}", "a photo with no {}",
    "there is no {}", "a scene without any {}", "{}-free scene", "the image does not contain a {}",
)  # fmt: skip
PAIRS = (
    "{} and {}", "a {} and a {}", "a {} or a {}", "either a {} or a {}", "a {} but no {}", "a {} without a {}",
    "a {} and no {}", "neither a {} nor a {}", "a photo of a {} and a {}", "no {} and no {}", "a {} with a {}",
    "a {} next to a {}", "a {} on a {}", "a {} in a {}", "a {} under a {}", "a {} holding a {}", "a {} near the {}",
    "{} {}", "a photo with a {} but not a {}", "both a {} and a {}",
)  # fmt: skip
ENDINGS = ("without a {}", "with no {}", "and no {}", "but no {}", "without any {}")
ATTRIBUTES = (
    "red", "blue", "green", "yellow", "orange", "black", "white", "brown", "pink", "purple", "grey", "golden", "big",
    "small", "tall", "old", "new", "wooden", "metal", "plastic", "glass", "stone", "leather", "wet", "dirty", "clean",
    "broken", "empty", "full", "open", "closed", "striped", "colorful", "bright", "dark", "young", "happy", "sleeping",
    "running", "standing", "sitting", "flying", "parked", "crowded", "snowy", "sunny", "rainy", "foggy", "vintage",
    "modern", "round", "square", "furry", "fresh", "cooked", "painted", "rusty", "toy", "giant", "tiny",
)  # fmt: skip
SETTINGS = (
    "on a table", "on the beach", "in a kitchen", "at night", "in the snow", "in the street", "in a field", "in water",
    "in the forest", "at sunset", "in a living room", "in a city", "against a blue sky", "on a shelf", "in the park",
    "under a tree", "on the ground", "in an office", "in black and white", "by the window", "at the airport",
)  # fmt: skip


def _package_folder(package: str) -> Path:
    """Where a package is installed; it is not imported."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise SystemExit(f"{package} is not installed: pip install -r tools/build_starter/requirements.txt")
    return Path(found.origin).parent


def imagenet_names() -> list[str]:
    """The 1,000 class names of ImageNet in the order of the classifier."""
    names = runpy.run_path(str(_package_folder("open_clip") / "zero_shot_metadata.py"))["IMAGENET_CLASSNAMES"]
    return [name.lower() for name in names]


def action_names() -> list[str]:
    """The 400 actions of Kinetics, such as "playing violin"."""
    names = runpy.run_path(str(_package_folder("torchvision") / "models" / "_meta.py"))["_KINETICS400_CATEGORIES"]
    return [name.lower() for name in names]


def common_nouns() -> list[str]:
    """English nouns in everyday use, sorted."""
    table = _package_folder("lemminflect") / "resources" / "infl_lu.csv.gz"
    with gzip.open(table, "rt", encoding="utf-8") as lines:
        nouns = {line.split(",")[0] for line in lines if line.split(",")[1] == "noun"}
    usable = (noun for noun in nouns if re.fullmatch(r"[a-z]{3,}", noun))
    return sorted(noun for noun in usable if zipf_frequency(noun, "en") >= COMMON_ENOUGH)


def phrases(
    captions: Sequence[str], classes: Sequence[str], pieces: Sequence[str], *, made: int, seed: int
) -> list[str]:
    """Distinct texts: the captions, every whole word among the pieces, and `made` phrases of several kinds."""
    rng = random.Random(seed)
    nouns, named, actions = common_nouns(), [*imagenet_names(), *classes], action_names()
    seen_words = sorted({word for caption in captions for word in re.findall(r"[a-z]{3,}", caption.lower())})
    words = [piece for piece in pieces if re.fullmatch(r"[a-z]{3,}", piece)]

    def thing() -> str:
        pool = rng.choices((nouns, named, seen_words), weights=(5, 3, 2))[0]
        return rng.choice(pool)

    def make() -> Iterator[str]:
        while True:
            yield rng.choice(TEMPLATES).format(rng.choice(nouns))
            yield rng.choice(TEMPLATES).format(thing())
            yield rng.choice(NEGATED).format(thing())
            yield rng.choice(PAIRS).format(thing(), thing())
            yield rng.choice(PAIRS).format(thing(), thing())
            yield rng.choice(TEMPLATES[:7]).format(f"{rng.choice(ATTRIBUTES)} {thing()}")
            yield f"{rng.choice(TEMPLATES[:7]).format(thing())} {rng.choice(SETTINGS)}"
            yield f"{rng.choice(('', 'a person ', 'a man ', 'a woman ', 'people '))}{rng.choice(actions)}"
            yield f"{rng.choice(captions).rstrip('. ')} {rng.choice(ENDINGS).format(thing())}"

    texts = dict.fromkeys(captions)
    texts |= dict.fromkeys(template.format(name) for name in classes for template in TEMPLATES + NEGATED)
    texts |= dict.fromkeys(template.format(name) for name in named for template in rng.sample(TEMPLATES, 3))
    texts |= dict.fromkeys(rng.choice(TEMPLATES[:7]).format(word) for word in words)
    maker = make()
    target = len(texts) + made
    while len(texts) < target:
        text = next(maker)
        texts[re.sub(r"\ba (?=[aeiou])", "an ", text) if rng.random() < 0.5 else text] = None
    return list(texts)
