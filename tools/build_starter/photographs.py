"""Photographs that come with Python packages, to show the quantiser the usual range of activations.

None of them is among the photographs the encoder is judged on.
"""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

SAMPLES = {
    "sklearn": ("datasets/images/china.jpg", "datasets/images/flower.jpg"),
    "skimage": ("data/motorcycle_left.png", "data/motorcycle_right.png", "data/hubble_deep_field.jpg"),
    "matplotlib": ("mpl-data/sample_data/grace_hopper.jpg",),
    "gradio": (
        "media_assets/images/cheetah.jpg", "media_assets/images/cheetah1.jpg", "media_assets/images/lion.jpg",
        "media_assets/images/tower.jpg", "test_data/cheetah2.jpg",
    ),
    "imgaug": ("quokka.jpg",),
}  # fmt: skip


def sample_photographs() -> list[Image.Image]:
    """The photographs named above, in RGB."""
    found = []
    for package, paths in SAMPLES.items():
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            raise SystemExit(f"{package} is not installed: pip install -r tools/build_starter/requirements.txt")
        found += [Image.open(Path(spec.origin).parent / path).convert("RGB") for path in paths]
    return found


def varied(photographs: list[Image.Image], *, each: int, side: int, seed: int) -> list[np.ndarray]:
    """(3, side, side) pixels of each photograph as it is, and of random crops, mirrored, darker, brighter, bleaker."""
    rng = random.Random(seed)
    pixels = []
    for photograph in photographs:
        for i in range(each):
            view = photograph
            if i:
                width, height = view.size
                part = rng.uniform(0.3, 1.0) ** 0.5
                left, top = rng.uniform(0, 1 - part) * width, rng.uniform(0, 1 - part) * height
                view = view.crop((int(left), int(top), int(left + part * width), int(top + part * height)))
                view = ImageOps.mirror(view) if rng.random() < 0.5 else view
                for change in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
                    view = change(view).enhance(rng.uniform(0.5, 1.5))
            square = view.resize((side, side), Image.Resampling.BICUBIC)
            pixels.append((np.asarray(square, np.float32).transpose(2, 0, 1) - 127) / 128)
    return pixels
