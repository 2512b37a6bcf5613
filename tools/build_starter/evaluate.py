"""Print what starter model files can do on a folder of labelled, captioned photographs.

python tools/build_starter/evaluate.py PHOTOS [--model FOLDER]... [--float FOLDER] [--json FILE]

PHOTOS holds `photos.jsonl`, one photograph a line: `file`, `classes` {name: count}, `captions`.
Several models are printed side by side. Without --model it is the model that ships.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from figures import caption_recall, detection, forced_choice, questions

from lcse_plugins.encoders.protocol import concept_vectors
from lcse_plugins.encoders.starter import SHIPPED_MODEL, StarterEncoder
from lcse_plugins.scoring.config import ScoringConfig

UNSEEN_WORDS = (
    "leash", "helmet", "beach", "sunset", "violin", "lighthouse", "castle", "waterfall", "penguin", "camel", "tent",
    "wheelchair", "candle", "rainbow", "microscope",
)  # fmt: skip
QUESTIONS_OF_EACH_KIND = 200


def quality(model: Path, photos: Path, rows: list[dict[str, Any]]) -> tuple[dict[str, float], np.ndarray, np.ndarray]:
    """Detection, caption search and two-way questions, and the vectors of photographs and captions."""
    encoder = StarterEncoder(folder=model)
    images = encoder.encode_images(photos / row["file"] for row in rows)
    classes = sorted({name for row in rows for name in row["classes"]})
    labels = np.array([[name in row["classes"] for name in classes] for row in rows])
    concepts = concept_vectors(encoder, classes)
    areas = detection(images @ concepts.T, labels)
    captions = [caption for row in rows for caption in row["captions"]]
    owners = np.array([i for i, row in enumerate(rows) for _ in row["captions"]])
    caption_rows = encoder.encode_texts(captions)
    denials = encoder.encode_texts([f"no {name}" for name in classes])
    asked = questions([row["classes"] for row in rows], classes, each=QUESTIONS_OF_EACH_KIND, seed=0)
    texts = sorted({text for question in asked for text in question.texts})
    by_text = dict(zip(texts, encoder.encode_texts(texts), strict=True))
    by_name = dict(zip(classes, concepts, strict=True))

    def choice(mode: Any) -> float:
        config = ScoringConfig(mode=mode)
        return forced_choice(asked, images, by_text, by_name, calibration=encoder.calibration, config=config)

    found = {
        "photographs": float(len(rows)),
        "detection AUC, mean over classes": float(np.mean(areas)),
        "detection AUC, worst class": float(np.min(areas)),
        'AUC of "no X" for images without X': float(np.mean(detection(images @ denials.T, ~labels))),
        "caption to image R@1": caption_recall(images, caption_rows, owners, k=1),
        "caption to image R@10": caption_recall(images, caption_rows, owners, k=10),
        "two-way questions, holistic": choice("holistic"),
        "two-way questions, LCSE": choice("lcse"),
        "mu": encoder.calibration.mu,
        "beta": encoder.calibration.beta,
        "model files, MB": sum(path.stat().st_size for path in model.iterdir() if path.suffix != ".md") / 1e6,
    }
    return found, images, caption_rows


def speed(model: Path, photos: Path, rows: list[dict[str, Any]]) -> dict[str, float]:
    """Photographs (decoding included) and captions a second on two threads, the best of three passes."""
    files = [photos / row["file"] for row in rows[:64]]
    texts = [row["captions"][0] for row in rows[:256]]
    figures = {}
    for batch in (1, 16):
        encoder = StarterEncoder(folder=model, threads=2, batch_size=batch)
        encoder.encode_images(files[:2]), encoder.encode_texts(texts[:2])
        best_image = min(_seconds(lambda e=encoder: e.encode_images(files)) for _ in range(3))
        best_text = min(_seconds(lambda e=encoder: e.encode_texts(texts)) for _ in range(3))
        figures[f"images a second, batch {batch}"] = len(files) / best_image
        figures[f"texts a second, batch {batch}"] = len(texts) / best_text
    return figures


def _seconds(work: Any) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def neighbours(model: Path, images: np.ndarray, rows: list[dict[str, Any]]) -> str:
    """For words rare or absent in the training captions: the class names nearest as text, the nearest photographs."""
    encoder = StarterEncoder(folder=model)
    classes = sorted({name for row in rows for name in row["classes"]})
    words = concept_vectors(encoder, UNSEEN_WORDS)
    near_text = np.argsort(-(words @ concept_vectors(encoder, classes).T), axis=1)
    near_image = np.argsort(-(words @ images.T), axis=1)
    lines = ["| word | nearest of the class names | captions of the two nearest photographs |", "|---|---|---|"]
    for i, word in enumerate(UNSEEN_WORDS):
        names = ", ".join(classes[j] for j in near_text[i, :3])
        shown = " / ".join(rows[j]["captions"][0].strip(" .") for j in near_image[i, :2])
        lines.append(f"| {word} | {names} | {shown} |")
    return "\n".join(lines)


def main() -> None:
    """Read the arguments, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path)
    parser.add_argument("--model", type=Path, action="append", help="a folder with manifest.json; may be repeated")
    parser.add_argument("--float", type=Path, dest="reference", help="the float files the first model was made from")
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    parser.add_argument("--no-speed", action="store_true", help="leave out the timings")
    chosen = parser.parse_args()
    rows = [json.loads(line) for line in (chosen.photos / "photos.jsonl").read_text(encoding="utf-8").splitlines()]
    models = chosen.model or [SHIPPED_MODEL]
    columns, first = [], None
    for model in models:
        found, images, captions = quality(model, chosen.photos, rows)
        first = first or (images, captions)
        columns.append(found | ({} if chosen.no_speed else speed(model, chosen.photos, rows)))
    if chosen.reference and first:
        _, images, captions = quality(chosen.reference, chosen.photos, rows)
        columns[0]["cosine to float, images: mean"] = float((images * first[0]).sum(1).mean())
        columns[0]["cosine to float, images: least"] = float((images * first[0]).sum(1).min())
        columns[0]["cosine to float, captions: mean"] = float((captions * first[1]).sum(1).mean())
        columns[0]["cosine to float, captions: least"] = float((captions * first[1]).sum(1).min())
    print(f"onnxruntime {onnxruntime.__version__}, {platform.machine()}, {os.cpu_count()} cores")
    for model, column in zip(models, columns, strict=True):
        print(f"  {StarterEncoder(folder=model).encoder_id}: {len(column)} figures from {model.name}")
    for name in columns[0]:
        print(f"{name:42s}" + "".join(f"{column.get(name, float('nan')):12.4g}" for column in columns))
    if first:
        print("\n" + neighbours(models[0], first[0], rows))
    if chosen.json:
        chosen.json.write_text(json.dumps(columns, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
