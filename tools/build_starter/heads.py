"""Training the two projections into the shared space, on stored image features and frozen text vectors."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

DIMENSION = 256
WORDS_A_STEP, NAMES_A_STEP = 160, 300


class ImageHead(nn.Module):
    """Mean and max pooled features to the shared space: square root, standardise, one linear map."""

    def __init__(self, features: Tensor) -> None:
        super().__init__()
        roots = features.sqrt()
        self.register_buffer("mean", roots.mean(0))
        self.register_buffer("spread", roots.std(0) + 1e-2)
        self.dropout = nn.Dropout(0.6)
        self.project = nn.Linear(features.shape[1], DIMENSION)
        nn.init.normal_(self.project.weight, std=features.shape[1] ** -0.5)

    def forward(self, features: Tensor) -> Tensor:
        """(n, 256) unit vectors of pooled features (n, 2560)."""
        return F.normalize(self.project(self.dropout((features.sqrt() - self.mean) / self.spread)), dim=-1)


class TextHead(nn.Module):
    """A sentence vector to the shared space: a small two-layer map beside a linear one."""

    def __init__(self, width: int = 384) -> None:
        super().__init__()
        self.up = nn.Linear(width, 512)
        self.down = nn.Linear(512, DIMENSION)
        self.skip = nn.Linear(width, DIMENSION, bias=False)
        self.dropout = nn.Dropout(0.1)

    def forward(self, vectors: Tensor) -> Tensor:
        """(n, 256) unit vectors of unit sentence vectors (n, 384)."""
        return F.normalize(
            self.skip(vectors) + self.down(self.dropout(F.gelu(self.up(vectors * vectors.shape[-1] ** 0.5)))), dim=-1
        )


@dataclass(frozen=True, kw_only=True)
class Concepts:
    """Prompts, and which images show what they name.

    Attributes:
        prompts: (concepts, templates, 384) sentence vectors.
        labels: (images, concepts) 1 where the concept is there.
        weights: (images, concepts) how far a label is trusted, 0 where it is unknown.
    """

    prompts: Tensor
    labels: Tensor
    weights: Tensor


@dataclass(frozen=True, kw_only=True)
class TrainingSet:
    """What the heads learn from.

    Attributes:
        views: (views, images, 2560) pooled features of each captioned image and of its augmented views.
        captions: (images, 5, 384) sentence vectors.
        classes: labels of the annotated classes over the captioned images, then over the `extra` ones.
        words: caption words over the captioned images.
        extra: (more images, 2560) images with labels but no captions.
        names: (1000, templates, 384) prompts of the classifier's own classes.
        classify: (1280 → 1000) the image tower's own ImageNet classifier.
    """

    views: Tensor
    captions: Tensor
    classes: Concepts
    words: Concepts
    extra: Tensor
    names: Tensor
    classify: nn.Linear


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The choices of the training; the defaults are the ones that did best on held-out rows."""

    epochs: int = 40
    batch: int = 256
    rate: float = 1e-3
    decay: float = 0.2
    too_alike: float = 0.75
    contrast_weight: float = 3.0
    class_weight: float = 10.0
    word_weight: float = 1.0
    imagenet_weight: float = 0.5
    boosted: int = 64
    seed: int = 0


class Pairing(nn.Module):
    """A learned scale and offset that turn cosines into logits."""

    def __init__(self, *, scale: float, offset: float) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(math.log(scale)))
        self.offset = nn.Parameter(torch.tensor(offset))

    def forward(self, cosines: Tensor) -> Tensor:
        """Logits of cosines."""
        return self.log_scale.exp().clamp(max=100) * cosines + self.offset


def _template_of(prompts: Tensor, generator: torch.Generator) -> Tensor:
    """(concepts, 384) one random template for each concept."""
    pick = torch.randint(prompts.shape[1], (prompts.shape[0],), generator=generator)
    return prompts[torch.arange(prompts.shape[0]), pick]


def _concept_loss(pairing: Pairing, images: Tensor, texts: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    losses = F.binary_cross_entropy_with_logits(pairing(images @ texts.T), labels, reduction="none")
    return (losses * weights).sum() / weights.sum() * 10


def boost(features: Tensor, classify: nn.Linear, generator: torch.Generator) -> Tensor:
    """Features pushed towards one random ImageNet class each.

    The captioned images show a small part of what the image tower can tell apart. Adding along the classifier's own
    weights gives features of the rest; the strength is such that the classifier believes in the class by half or more.
    """
    half = features.shape[1] // 2
    wanted = torch.randint(classify.out_features, (len(features),), generator=generator)
    strength = 3.0 + 2.5 * torch.rand(len(features), 1, generator=generator)
    old_mean, old_peak = features[:, :half], features[:, half:]
    mean = 0.7 * old_mean + strength * F.relu(classify.weight[wanted])
    peak = (old_peak + _usual_peak(mean) - _usual_peak(old_mean)).clamp(min=0.0, max=6.0)
    return torch.cat([mean, torch.maximum(peak, mean)], 1)


def _usual_peak(mean: Tensor) -> Tensor:
    """The max over space that goes with a mean over space, by a curve through the stored features."""
    return 6 * torch.tanh(1.7 * mean.pow(0.625))


def train_heads(data: TrainingSet, recipe: Recipe) -> tuple[ImageHead, TextHead]:
    """Sigmoid and InfoNCE contrast with captions, prompts of classes and words, and the ImageNet classifier."""
    torch.manual_seed(recipe.seed)
    generator = torch.Generator().manual_seed(recipe.seed)
    n_views, n_images = data.views.shape[:2]
    image_head, text_head = ImageHead(data.views.flatten(0, 1)), TextHead(data.captions.shape[-1])
    pair, contrast = Pairing(scale=10.0, offset=-5.0), Pairing(scale=14.0, offset=0.0)
    present, mentioned, named = (
        Pairing(scale=10.0, offset=-4.0),
        Pairing(scale=10.0, offset=-4.0),
        Pairing(scale=14.0, offset=0.0),
    )
    modules = nn.ModuleList([image_head, text_head, pair, contrast, present, mentioned, named])
    decayed = [p for p in modules.parameters() if p.ndim > 1]
    others = [p for p in modules.parameters() if p.ndim <= 1]
    optimiser = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": recipe.decay}, {"params": others, "weight_decay": 0.0}], lr=recipe.rate
    )
    per_epoch = n_images // recipe.batch
    steps, step = recipe.epochs * per_epoch, 0
    average = copy.deepcopy(nn.ModuleList([image_head, text_head]))
    for _ in range(recipe.epochs):
        order = torch.randperm(n_images, generator=generator)
        for start in range(0, per_epoch * recipe.batch, recipe.batch):
            for group in optimiser.param_groups:
                group["lr"] = recipe.rate * min(1.0, step / 50) * 0.5 * (1 + math.cos(math.pi * step / steps))
            rows = order[start : start + recipe.batch]
            n = len(rows)
            features = data.views[torch.randint(n_views, (n,), generator=generator), rows]
            more = torch.randint(len(data.extra), (n // 2,), generator=generator)
            few = rows[torch.randint(n, (recipe.boosted,), generator=generator)]
            with torch.no_grad():
                boosted = boost(data.views[0, few], data.classify, generator)
                all_features = torch.cat([features, data.extra[more], boosted])
                beliefs = data.classify(all_features[:, :1280]).softmax(1)
            vectors = image_head(all_features)
            images, labelled = vectors[:n], vectors[: n + len(more)]
            raw = data.captions[rows, torch.randint(data.captions.shape[1], (n,), generator=generator)]
            texts = text_head(raw)
            cosines = images @ texts.T
            same = torch.eye(n, dtype=torch.bool)
            alike = (raw @ raw.T > recipe.too_alike) & ~same
            signs = torch.where(same, 1.0, -1.0)
            sigmoid = -(F.logsigmoid(signs * pair(cosines)) * ~alike).sum() / n
            logits = contrast(cosines).masked_fill(alike, -1e4)
            targets = torch.arange(n)
            info = (F.cross_entropy(logits, targets) + F.cross_entropy(logits.T, targets)) / 2
            loss = sigmoid + recipe.contrast_weight * info
            chosen = torch.cat([rows, n_images + more])
            prompts = text_head(_template_of(data.classes.prompts, generator))
            loss = loss + recipe.class_weight * _concept_loss(
                present, labelled, prompts, data.classes.labels[chosen], data.classes.weights[chosen]
            )
            if recipe.word_weight:
                few_words = torch.randperm(len(data.words.prompts), generator=generator)[:WORDS_A_STEP]
                prompts = text_head(_template_of(data.words.prompts[few_words], generator))
                loss = loss + recipe.word_weight * _concept_loss(
                    mentioned,
                    images,
                    prompts,
                    data.words.labels[rows][:, few_words],
                    data.words.weights[rows][:, few_words],
                )
            if recipe.imagenet_weight:
                few_names = torch.randperm(len(data.names), generator=generator)[:NAMES_A_STEP]
                prompts = text_head(_template_of(data.names[few_names], generator))
                among = beliefs[:, few_names] + 1e-6
                share = among / among.sum(1, keepdim=True)
                surprise = -(share * F.log_softmax(named(vectors @ prompts.T), 1)).sum(1)
                mass = among.sum(1)
                loss = loss + recipe.imagenet_weight * (surprise * mass).sum() / mass.sum()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            step += 1
            keep = min(0.99, step / (step + 10))
            with torch.no_grad():
                for slow, fast in zip(average.parameters(), modules[:2].parameters(), strict=True):
                    slow.lerp_(fast, 1 - keep)
    averaged_image, averaged_text = average
    assert isinstance(averaged_image, ImageHead)
    assert isinstance(averaged_text, TextHead)
    return averaged_image.eval(), averaged_text.eval()
