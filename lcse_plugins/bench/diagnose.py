"""Why plain similarity fails at logic, for any encoder: the analysis of the paper.

Everything is measured over pairs of classes (a, b) and labelled images. Text is asked in one phrasing per operator, so
that only the operator differs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.bench.metrics import area_under_curve, spearman
from lcse_plugins.bench.photographs import Progress
from lcse_plugins.bench.phrasing import article, operator_answers, operator_tree, phrase
from lcse_plugins.bench.reports import number_text
from lcse_plugins.bench.rivals import MODES, make_rankers
from lcse_plugins.calibrating.labelled import LabelledImages
from lcse_plugins.encoders.protocol import Encoder, FloatArray, concept_vectors
from lcse_plugins.errors import InvalidOption
from lcse_plugins.parsing.result import Parse, affirmative_text
from lcse_plugins.scoring.calibration import Calibration

__all__ = ["QUADRANTS", "TEXTS", "Diagnosis", "diagnose"]

TEXTS = {
    "AND": "{an_a} and {a_b}",
    "OR": "{an_a} or {a_b}",
    "BUT_NOT": "{an_a} but no {b}",
    "NEITHER": "neither {an_a} nor {a_b}",
}
QUADRANTS = ("both", "only a", "only b", "neither")
QUALITY_BINS = ((0.0, 0.85), (0.85, 0.9), (0.9, 0.95), (0.95, 1.0))

_Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Diagnosis:
    """The analysis; areas and shares lie in [0, 1].

    Attributes:
        detection_auc: how well "a X", as one text, finds images with X.
        polarity_auc: how well "no X" finds images without X; 0.5 is chance, 0 is the opposite of what was said.
        polarity_correlation: rank correlation of "a X" and "no X" over images.
        quadrants: operator → quadrant → mean similarity there, in deviations from the mean over images.
        sensitivity: kind of change to a text → mean absolute change of similarity, in the same deviations; None where
            there are too few classes to change it so.
        gain_by_quality: bin of evidence quality → gain in AUC of each mode over plain similarity.
        pairs: how many pairs of classes.
        images: how many images.
    """

    detection_auc: float
    polarity_auc: float
    polarity_correlation: float
    quadrants: Mapping[str, Mapping[str, float]]
    sensitivity: Mapping[str, float | None]
    gain_by_quality: Mapping[str, Mapping[str, float]]
    pairs: int
    images: int

    def to_json(self) -> dict[str, Any]:
        """The analysis as JSON values."""
        return asdict(self)

    def to_text(self) -> str:
        """The analysis for a terminal."""
        lines = [
            f"{self.images} images, {self.pairs} pairs of classes",
            f'"a X" finds images with X        AUC {self.detection_auc:.3f}',
            f'"no X" finds images without X    AUC {self.polarity_auc:.3f}   (0.5 is chance)',
            f'"a X" and "no X" rank alike      ρ   {self.polarity_correlation:.3f}',
            "",
            "where similarity is highest (deviations from the mean)",
            f"  {'':<9}" + "".join(f"{name:>10}" for name in QUADRANTS),
            *(f"  {op:<9}" + "".join(f"{row[q]:>10.2f}" for q in QUADRANTS) for op, row in self.quadrants.items()),
            "",
            "how far a change of the text moves similarity (deviations)",
            *(f"  {kind:<14} {number_text(value, '.2f')}" for kind, value in self.sensitivity.items()),
            "",
            "gain in AUC over plain similarity, by how well the weaker concept is detected",
            *(
                f"  {label}  {row['queries']:>4.0f} queries"
                + "".join(f"   {name} {value:+.3f}" for name, value in row.items() if name != "queries")
                for label, row in self.gain_by_quality.items()
            ),
        ]
        return "\n".join(lines)


def diagnose(
    encoder: Encoder,
    images: LabelledImages,
    vectors: FloatArray,
    *,
    calibration: Calibration | None = None,
    pairs: int = 60,
    fewest: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> Diagnosis:
    """Analyse an encoder.

    Args:
        encoder: The encoder of the vectors.
        images: Their labels.
        vectors: (n, d) unit rows.
        calibration: For the gains of our modes; by default the encoder's preset.
        pairs: At most this many pairs of classes, drawn at random.
        fewest: Every quadrant of a pair has at least this many images.
        seed: Of the draw.
        progress: Called with (done, total) steps.

    Raises:
        InvalidOption: no pair of classes has enough images in every quadrant.
    """
    steps = iter(range(1, 6))

    def step() -> None:
        if progress is not None:
            progress(next(steps), 5)

    chosen = _pairs(images, pairs=pairs, fewest=fewest, seed=seed)
    concepts = vectors @ concept_vectors(encoder, images.classes).T
    usable = [c for c in range(len(images.classes)) if fewest <= images.labels[:, c].sum() <= len(images) - fewest]
    said = [article(images.classes[c]) for c in usable], [f"no {images.classes[c]}" for c in usable]
    says, denies = (vectors @ encoder.encode_texts(texts).T for texts in said)
    step()
    texts = {op: _text_similarities(encoder, vectors, images, chosen, pattern) for op, pattern in TEXTS.items()}
    step()
    quadrants = _quadrant_preference(images, chosen, texts)
    step()
    sensitivity = _sensitivity(encoder, vectors, images, chosen, texts["AND"], seed=seed)
    step()
    gains = _gain_by_quality(encoder, images, vectors, chosen, concepts, calibration)
    step()
    return Diagnosis(
        detection_auc=_mean(area_under_curve(says[:, i], images.labels[:, c]) for i, c in enumerate(usable)),
        polarity_auc=_mean(area_under_curve(denies[:, i], ~images.labels[:, c]) for i, c in enumerate(usable)),
        polarity_correlation=_mean(spearman(says[:, i], denies[:, i]) for i in range(len(usable))),
        quadrants=quadrants,
        sensitivity=sensitivity,
        gain_by_quality=gains,
        pairs=len(chosen),
        images=len(images),
    )


def _pairs(images: LabelledImages, *, pairs: int, fewest: int, seed: int) -> list[tuple[int, int]]:
    fitting = [
        (a, b)
        for a, b in itertools.permutations(range(len(images.classes)), 2)
        if all(mask.sum() >= fewest for mask in _quadrant_masks(images, a, b).values())
    ]
    if not fitting:
        raise InvalidOption(f"no two classes have {fewest} images each of both, one and none; label more images")
    order = np.random.default_rng(seed).permutation(len(fitting))[:pairs]
    return [fitting[i] for i in sorted(order)]


def _quadrant_masks(images: LabelledImages, a: int, b: int) -> dict[str, NDArray[np.bool_]]:
    one, other = images.labels[:, a], images.labels[:, b]
    return dict(zip(QUADRANTS, (one & other, one & ~other, ~one & other, ~one & ~other), strict=True))


def _answers(images: LabelledImages, a: int, b: int) -> dict[str, NDArray[np.bool_]]:
    return operator_answers(images.labels[:, a], images.labels[:, b])


def _filled(pattern: str, images: LabelledImages, a: int, b: int) -> str:
    return phrase(pattern, images.classes[a], images.classes[b])


def _text_similarities(
    encoder: Encoder, vectors: FloatArray, images: LabelledImages, pairs: Sequence[tuple[int, int]], pattern: str
) -> _Floats:
    """(n, pairs) similarities of one phrasing."""
    return np.asarray(vectors @ encoder.encode_texts([_filled(pattern, images, a, b) for a, b in pairs]).T)


def _quadrant_preference(
    images: LabelledImages, pairs: Sequence[tuple[int, int]], texts: Mapping[str, _Floats]
) -> dict[str, dict[str, float]]:
    preference = {}
    for operator, table in texts.items():
        standard = (table - table.mean(axis=0)) / table.std(axis=0)
        rows = [
            [standard[mask, i].mean() for mask in _quadrant_masks(images, a, b).values()]
            for i, (a, b) in enumerate(pairs)
        ]
        preference[operator] = dict(zip(QUADRANTS, (float(x) for x in np.mean(rows, axis=0)), strict=True))
    return preference


def _sensitivity(
    encoder: Encoder,
    vectors: FloatArray,
    images: LabelledImages,
    pairs: Sequence[tuple[int, int]],
    base: _Floats,
    *,
    seed: int,
) -> dict[str, float | None]:
    rng = np.random.default_rng(seed)
    count = len(images.classes)
    others = [rng.permutation([c for c in range(count) if c not in pair])[:2].tolist() for pair in pairs]
    changed = {
        "paraphrase": [(a, b, "both {an_a} and {a_b}") for a, b in pairs],
        "operator swap": [(a, b, TEXTS["BUT_NOT"]) for a, b in pairs],
        "concept swap": [(a, c, TEXTS["AND"]) for (a, _), drawn in zip(pairs, others, strict=True) for c in drawn[:1]],
        "unrelated": [(*drawn, TEXTS["AND"]) for drawn in others if len(drawn) == 2],
    }
    spread = float(base.std(axis=0).mean())

    def moved(texts: Sequence[tuple[int, int, str]]) -> float:
        similar = vectors @ encoder.encode_texts([_filled(pattern, images, a, b) for a, b, pattern in texts]).T
        return float(np.abs(similar - base).mean()) / spread

    return {kind: moved(texts) if texts else None for kind, texts in changed.items()}


def _gain_by_quality(
    encoder: Encoder,
    images: LabelledImages,
    vectors: FloatArray,
    pairs: Sequence[tuple[int, int]],
    concepts: _Floats,
    calibration: Calibration | None,
) -> dict[str, dict[str, float]]:
    """Mean gain in AUC over plain similarity, by how well the weaker concept of the pair is detected."""
    modes = {name: MODES[name] for name in ("holistic", "lcse", "factored", "anchored")}
    rankers = make_rankers(encoder, vectors, calibration=calibration, modes=modes)
    found: dict[str, list[dict[str, float]]] = {}
    for a, b in pairs:
        quality = min(area_under_curve(concepts[:, c], images.labels[:, c]) for c in (a, b))
        label = next(f"{low:.2f}–{high:.2f}" for low, high in QUALITY_BINS if quality <= high)
        answers = _answers(images, a, b)
        for operator, pattern in TEXTS.items():
            tree = operator_tree(operator, images.classes[a], images.classes[b])
            text = _filled(pattern, images, a, b)
            parse = Parse(text=text, query=tree, affirmative=affirmative_text(tree, text), parser="oracle")
            areas = {name: area_under_curve(rankers[name](parse), answers[operator]) for name in modes}
            found.setdefault(label, []).append({n: areas[n] - areas["holistic"] for n in modes if n != "holistic"})
    return {
        label: {"queries": float(len(rows)), **{name: _mean(row[name] for row in rows) for name in rows[0]}}
        for label, rows in sorted(found.items())
    }


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))
