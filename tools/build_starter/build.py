"""Build the starter encoder's files from public weights and the stored features.

python tools/build_starter/build.py DATA WORK [--out FOLDER]

DATA holds features.npz, rows.jsonl and the rest; WORK keeps what each stage made, so that a stopped build goes on where
it was. The folder written has image.onnx, text.onnx, vocab.txt and manifest.json. README.md explains the stages.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from dataset import Source, class_labels, read_source, training_set
from distill import distil, hidden_states, padded, tokenised
from figures import caption_recall, detection
from heads import ImageHead, Recipe, TextHead, train_heads
from image_tower import IMAGE_SIDE, ImageTower, load_backbone
from photographs import sample_photographs, varied
from phrases import phrases
from preset import choose_preset
from quantise import export, quantise_convolutions, store_weights_as_int8
from text_tower import TextTower, kept_pieces, load_teacher, shrink, teacher_vocabulary
from tokenizers import Tokenizer
from torch import Tensor, nn

from lcse_plugins.encoders.starter import IMAGE_FILE, SHIPPED_MODEL, TEXT_FILE, VOCABULARY_FILE, build_tokenizer
from lcse_plugins.scoring.config import DEFAULT_TEMPLATES

SEED = 0
STUDENT_LAYERS, TABLE_WIDTH = (0, 4, 5), 128
MADE_PHRASES, DISTIL_STEPS = 70_000, 900


class FullText(nn.Module):
    """The student and its head: token ids to the shared space."""

    def __init__(self, tower: TextTower, head: TextHead) -> None:
        super().__init__()
        self.tower, self.head = tower, head

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """(n, 256) unit vectors."""
        vectors: Tensor = self.head(self.tower(ids, mask))
        return vectors


def stage(path: Path, make: Callable[[], Any]) -> Any:
    """What an earlier run saved at `path`, or what `make` makes now."""
    if not path.exists():
        print(f"making {path.name}", flush=True)
        torch.save(make(), path)
    return torch.load(path, weights_only=False)


def distilled_student(source: Source, pieces: list[int], tokenizer: Tokenizer, vocabulary: list[str]) -> TextTower:
    """The student after distillation, on texts without the held-out rows' captions."""
    teacher = load_teacher(pieces)
    captions = [caption for row in source.kept for caption in source.captions[row]]
    rows = tokenised(tokenizer, phrases(captions, source.classes, vocabulary, made=MADE_PHRASES, seed=SEED))
    student = shrink(teacher, layers=STUDENT_LAYERS, table=TABLE_WIDTH)
    distil(student, rows, hidden_states(teacher, rows), steps=DISTIL_STEPS, seed=SEED)
    return student


def embedder(tower: TextTower, tokenizer: Tokenizer) -> Callable[[Sequence[str]], Tensor]:
    """Texts to the tower's vectors, each distinct text encoded once."""
    known: dict[str, Tensor] = {}

    @torch.inference_mode()
    def embed(texts: Sequence[str]) -> Tensor:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        rows = tokenised(tokenizer, new) if new else []
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        for start in range(0, len(order), 512):
            chosen = order[start : start + 512]
            vectors = tower(*padded([rows[i] for i in chosen]))
            known.update((new[i], vector) for i, vector in zip(chosen, vectors, strict=True))
        return torch.stack([known[text] for text in texts]).clone()

    return embed


@torch.no_grad()
def preset_on_held_out(
    source: Source, image_head: ImageHead, text_head: TextHead, embed: Callable[[Sequence[str]], Tensor]
) -> dict[str, Any]:
    """μ and β for heads that never saw the held-out rows, measured on those rows."""
    rows = source.held_out
    labels = class_labels(source)[rows].numpy() > 0
    images = image_head(source.views[0, rows]).numpy()
    prompts = [template.format(name) for name in source.classes for template in DEFAULT_TEMPLATES]
    concepts = text_head(embed(prompts)).reshape(len(source.classes), len(DEFAULT_TEMPLATES), -1).mean(1).numpy()
    by_name = dict(zip(source.classes, concepts, strict=True))
    chosen, grid = choose_preset(images, labels, by_name, lambda texts: text_head(embed(texts)).numpy())
    captions = text_head(embed([caption for row in rows for caption in source.captions[row]])).numpy()
    owners = np.repeat(np.arange(len(rows)), [len(source.captions[row]) for row in rows])
    return {
        "mu": chosen.mu,
        "beta": chosen.beta,
        "held_out_auc": float(np.mean(detection(images @ concepts.T, labels, fewest=2))),
        "held_out_recall_at_10": caption_recall(images, captions, owners),
        "grid": grid,
    }


def write_manifest(folder: Path, *, mu: float, beta: float) -> None:
    """Name the files with their sizes and hashes, and the preset."""
    names = (IMAGE_FILE, TEXT_FILE, VOCABULARY_FILE)
    data = {name: (folder / name).read_bytes() for name in names}
    manifest = {
        "dimension": 256,
        "calibration": {"mu": mu, "beta": beta},
        "files": {name: {"bytes": len(b), "sha256": hashlib.sha256(b).hexdigest()} for name, b in data.items()},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def write_files(work: Path, out: Path, image: ImageTower, text: FullText, vocabulary: list[str]) -> None:
    """The float files into WORK/float, the small ones into `out`."""
    reference = work / "float"
    reference.mkdir(exist_ok=True)
    out.mkdir(parents=True, exist_ok=True)
    export(image, (torch.zeros(1, 3, IMAGE_SIDE, IMAGE_SIDE),), {"image": {0: "n"}}, reference / IMAGE_FILE)
    example = torch.ones(2, 7, dtype=torch.long)
    axes = {0: "n", 1: "length"}
    export(text, (example, example), {"ids": axes, "mask": axes}, reference / TEXT_FILE)
    pixels = varied(sample_photographs(), each=16, side=IMAGE_SIDE, seed=SEED)
    quantise_convolutions(reference / IMAGE_FILE, work / "convolutions.onnx", pixels)
    store_weights_as_int8(work / "convolutions.onnx", out / IMAGE_FILE)
    store_weights_as_int8(reference / TEXT_FILE, out / TEXT_FILE)
    for folder in (reference, out):
        (folder / VOCABULARY_FILE).write_text("\n".join(vocabulary) + "\n", encoding="utf-8")


def main() -> None:
    """All stages in order."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--out", type=Path, default=SHIPPED_MODEL)
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    torch.manual_seed(SEED), np.random.seed(SEED), random.seed(SEED)
    work: Path = chosen.work
    work.mkdir(parents=True, exist_ok=True)

    source = read_source(chosen.data)
    everything = teacher_vocabulary()
    pieces = kept_pieces(everything)
    vocabulary = [everything[i] for i in pieces]
    tokenizer = build_tokenizer(vocabulary)
    student = TextTower(vocabulary=len(pieces), layers=len(STUDENT_LAYERS), table=TABLE_WIDTH).eval()
    student.load_state_dict(
        stage(work / "student.pt", lambda: distilled_student(source, pieces, tokenizer, vocabulary).state_dict())
    )
    backbone = load_backbone()
    embed = embedder(student.requires_grad_(False), tokenizer)

    def heads(rows: Sequence[int]) -> tuple[ImageHead, TextHead]:
        return train_heads(training_set(source, rows, embed, backbone._fc), Recipe(seed=SEED))

    trial = stage(work / "trial_heads.pt", lambda: heads(source.kept))
    preset = stage(work / "preset.pt", lambda: preset_on_held_out(source, *trial, embed))
    (work / "preset.json").write_text(json.dumps(preset, indent=2) + "\n", encoding="utf-8")
    image_head, text_head = stage(work / "heads.pt", lambda: heads(range(len(source.shown))))
    write_files(work, chosen.out, ImageTower(backbone, image_head), FullText(student, text_head), vocabulary)
    for folder in (work / "float", chosen.out):
        write_manifest(folder, mu=preset["mu"], beta=preset["beta"])
    print(f"mu {preset['mu']}, beta {preset['beta']}; files in {chosen.out}")


if __name__ == "__main__":
    main()
