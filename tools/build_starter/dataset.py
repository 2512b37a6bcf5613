"""The stored features, labels and captions, and how text vectors join them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from heads import Concepts, TrainingSet
from phrases import common_nouns, imagenet_names
from torch import Tensor, nn

from lcse_plugins.scoring.config import DEFAULT_TEMPLATES

TEMPLATES = (*DEFAULT_TEMPLATES, "{}", "there is a {}")
CAPTIONS = 5
FEWEST_MENTIONS = 10
UNMENTIONED = 0.5
"""How far the absence of a word from five captions is trusted to mean the absence of the thing."""

HELD_OUT_EVERY = 8


@dataclass(frozen=True, kw_only=True)
class Source:
    """What the data folder holds: features of each view, classes and captions of each image, and the extra labels."""

    views: Tensor
    shown: list[dict[str, int]]
    captions: list[list[str]]
    classes: list[str]
    extra: Tensor
    extra_labels: Tensor
    extra_known: Tensor

    @property
    def held_out(self) -> list[int]:
        """Rows on which choices are made; their captions are never distilled on."""
        return list(range(0, len(self.shown), HELD_OUT_EVERY))

    @property
    def kept(self) -> list[int]:
        """The other rows."""
        return [i for i in range(len(self.shown)) if i % HELD_OUT_EVERY]


def read_source(folder: Path) -> Source:
    """Read `features*.npz`, `rows.jsonl`, `classes.txt` and `extra_labels.npz`."""
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    files = ("features.npz", "features_flip.npz", "features_crop1.npz")
    ids = [row["id"] for row in rows]
    for file in files:
        if np.load(folder / file)["ids"].tolist() != ids:
            raise SystemExit(f"{folder / file} and rows.jsonl list other images")
    extra = np.load(folder / "extra_labels.npz")
    return Source(
        views=torch.stack([_pooled(folder / file) for file in files]),
        shown=[row["classes"] for row in rows],
        captions=[row["captions"] for row in rows],
        classes=(folder / "classes.txt").read_text(encoding="utf-8").split("\n")[:80],
        extra=_pooled(folder / "extra_labels.npz"),
        extra_labels=torch.from_numpy(extra["labels"]).float(),
        extra_known=torch.from_numpy(extra["known"]).float(),
    )


def _pooled(path: Path) -> Tensor:
    arrays = np.load(path)
    return torch.from_numpy(np.concatenate([arrays["mean_pool"], arrays["max_pool"]], 1).astype(np.float32))


def class_labels(source: Source) -> Tensor:
    """(images, 80) 1 where the class is in the image."""
    return torch.tensor([[float(name in shown) for name in source.classes] for shown in source.shown])


def mentioned_words(source: Source) -> tuple[list[str], Tensor]:
    """Nouns in the captions of ten images or more, besides the classes, and (images, words) who mentions them."""
    nouns = set(common_nouns()) - set(source.classes)

    def singular(word: str) -> str | None:
        stems = (word, word.removesuffix("s"), word.removesuffix("es"), word.removesuffix("ies") + "y")
        return next((stem for stem in stems if stem in nouns), None)

    found = [
        {noun for caption in captions for word in re.findall(r"[a-z]{3,}", caption.lower()) if (noun := singular(word))}
        for captions in source.captions
    ]
    counts = Counter(noun for nouns_here in found for noun in nouns_here)
    words = sorted(noun for noun, count in counts.items() if count >= FEWEST_MENTIONS)
    return words, torch.tensor([[float(word in here) for word in words] for here in found])


def training_set(
    source: Source, rows: Sequence[int], embed: Callable[[Sequence[str]], Tensor], classify: nn.Linear
) -> TrainingSet:
    """The captioned images in `rows` and all extra images, their texts given as vectors by `embed`."""

    def prompts(names: Sequence[str]) -> Tensor:
        texts = [template.format(name) for name in names for template in TEMPLATES]
        return embed(texts).reshape(len(names), len(TEMPLATES), -1)

    words, mentions = mentioned_words(source)
    used = mentions[rows].sum(0) >= FEWEST_MENTIONS
    mentions = mentions[rows][:, used]
    labels = torch.cat([class_labels(source)[rows], source.extra_labels])
    captions = embed([caption for row in rows for caption in source.captions[row][:CAPTIONS]])
    return TrainingSet(
        views=source.views[:, rows],
        captions=captions.reshape(len(rows), CAPTIONS, -1),
        classes=Concepts(
            prompts=prompts(source.classes),
            labels=labels,
            weights=torch.cat([torch.ones(len(rows), len(source.classes)), source.extra_known]),
        ),
        words=Concepts(
            prompts=prompts([word for word, yes in zip(words, used.tolist(), strict=True) if yes]),
            labels=mentions,
            weights=torch.where(mentions > 0, 1.0, UNMENTIONED),
        ),
        extra=source.extra,
        names=prompts(imagenet_names()),
        classify=classify,
    )
