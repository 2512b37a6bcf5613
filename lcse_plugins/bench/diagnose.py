"""Why plain similarity fails at logic, for any encoder: the analysis of the paper.

Everything is measured over pairs of classes (a, b) and labelled images. Text is asked in one phrasing per operator, so
that only the operator differs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.bench.metrics import area_under_curve, spearman
from lcse_plugins.bench.photographs import Progress, tracked
from lcse_plugins.bench.phrasing import article, class_pairs, operator_answers, operator_tree, phrase
from lcse_plugins.bench.reports import Rows, aligned, number_text
from lcse_plugins.bench.rivals import MODES, make_rankers
from lcse_plugins.calibrating.labelled import LabelledImages
from lcse_plugins.encoders.protocol import Encoder, FloatArray, concept_vectors
from lcse_plugins.parsing.result import Parse, affirmative_text
from lcse_plugins.scoring.calibration import Calibration

__all__ = ["diagnose", "diagnosis_rows", "diagnosis_text"]

TEXTS = {
    "AND": "{an_a} and {a_b}",
    "OR": "{an_a} or {a_b}",
    "BUT_NOT": "{an_a} but no {b}",
    "NEITHER": "neither {an_a} nor {a_b}",
}
QUALITIES = (0.85, 0.9, 0.95, 1.0)
"""Upper ends of the bins of evidence quality."""
GAINING = ("lcse", "factored", "anchored")
"""Modes whose gain over plain similarity is told."""

_Pairs: TypeAlias = Sequence[tuple[int, int]]
_Floats: TypeAlias = NDArray[np.floating]


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
) -> dict[str, Any]:
    """Analyse an encoder; areas and shares lie in [0, 1].

    Args:
        encoder: The encoder of the vectors.
        images: Their labels.
        vectors: (n, d) unit rows.
        calibration: For the gains of our modes; by default the encoder's preset.
        pairs: At most this many pairs of classes, drawn at random.
        fewest: Every quadrant of a pair has at least this many images.
        seed: Of the draw.
        progress: Called with (done, total) pairs.

    Returns:
        `detection_auc`: how well "a X" finds images with X; `polarity_auc`: how well "no X" finds those without (0.5 is
        chance, 0 the opposite of what was said); `polarity_correlation` of the two rankings. `quadrants`: operator →
        where similarity is highest, in deviations from the mean over images. `sensitivity`: kind of change to a text →
        how far similarity moves, in the same deviations; None with too few classes. `gain_by_quality`: the gain in AUC
        of our modes, by how well the weaker concept is detected. The number of `pairs` and of `images`.

    Raises:
        InvalidOption: no pair of classes has enough images in every quadrant.
    """

    def fits(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> bool:
        return all(mask.sum() >= fewest for mask in _quadrants(a, b).values())

    chosen = class_pairs(images, fits, pairs, np.random.default_rng(seed))
    usable = [c for c, shown in enumerate(images.labels.T) if fewest <= shown.sum() <= len(images) - fewest]
    says = vectors @ encoder.encode_texts([article(images.classes[c]) for c in usable]).T
    denies = vectors @ encoder.encode_texts([f"no {images.classes[c]}" for c in usable]).T
    there = images.labels[:, usable]
    every = range(len(usable))

    def similarities(asked: Sequence[tuple[int, int, str]]) -> _Floats:
        """(n, texts) similarities of phrasings over two classes."""
        said = [phrase(pattern, images.classes[a], images.classes[b]) for a, b, pattern in asked]
        return np.asarray(vectors @ encoder.encode_texts(said).T)

    texts = {operator: similarities([(a, b, pattern) for a, b in chosen]) for operator, pattern in TEXTS.items()}
    changes = _changes(chosen, len(images.classes), seed)
    spread = float(texts["AND"].std(axis=0).mean())
    return {
        "detection_auc": float(np.mean([area_under_curve(says[:, i], there[:, i]) for i in every])),
        "polarity_auc": float(np.mean([area_under_curve(denies[:, i], ~there[:, i]) for i in every])),
        "polarity_correlation": float(np.mean([spearman(says[:, i], denies[:, i]) for i in every])),
        "quadrants": {operator: _preference(images, chosen, table) for operator, table in texts.items()},
        "sensitivity": {
            kind: float(np.abs(similarities(asked) - texts["AND"]).mean()) / spread if asked else None
            for kind, asked in changes.items()
        },
        "gain_by_quality": _gains(encoder, images, vectors, chosen, calibration, progress),
        "pairs": len(chosen),
        "images": len(images),
    }


def _quadrants(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> dict[str, NDArray[np.bool_]]:
    return {"both": a & b, "only a": a & ~b, "only b": ~a & b, "neither": ~a & ~b}


def _preference(images: LabelledImages, pairs: _Pairs, table: _Floats) -> dict[str, float]:
    """Quadrant → mean standardised similarity there, over pairs."""
    standard = (table - table.mean(axis=0)) / table.std(axis=0)
    found: dict[str, list[float]] = defaultdict(list)
    for i, (a, b) in enumerate(pairs):
        for name, mask in _quadrants(images.labels[:, a], images.labels[:, b]).items():
            found[name].append(float(standard[mask, i].mean()))
    return {name: float(np.mean(values)) for name, values in found.items()}


def _changes(pairs: _Pairs, classes: int, seed: int) -> dict[str, list[tuple[int, int, str]]]:
    """Kind of change → how "a and b" reads after it, for each pair; nothing where there are too few other classes."""
    rng = np.random.default_rng(seed)
    others = [rng.permutation([c for c in range(classes) if c not in pair])[:2].tolist() for pair in pairs]
    both = list(zip(pairs, others, strict=True))
    return {
        "paraphrase": [(a, b, "both {an_a} and {a_b}") for a, b in pairs],
        "operator swap": [(a, b, TEXTS["BUT_NOT"]) for a, b in pairs],
        "concept swap": [(a, drawn[0], TEXTS["AND"]) for (a, _), drawn in both if drawn],
        "unrelated": [(drawn[0], drawn[1], TEXTS["AND"]) for _, drawn in both if len(drawn) == 2],
    }


def _gains(
    encoder: Encoder,
    images: LabelledImages,
    vectors: FloatArray,
    pairs: _Pairs,
    calibration: Calibration | None,
    progress: Progress | None,
) -> dict[str, dict[str, float]]:
    modes = {name: MODES[name] for name in ("holistic", *GAINING)}
    rankers = make_rankers(encoder, vectors, calibration=calibration, modes=modes)
    concepts = vectors @ concept_vectors(encoder, images.classes).T
    found: dict[float, list[list[float]]] = defaultdict(list)
    for a, b in tracked(pairs, progress):
        weakest = min(area_under_curve(concepts[:, c], images.labels[:, c]) for c in (a, b))
        quality = next(high for high in QUALITIES if weakest <= high)
        names = images.classes[a], images.classes[b]
        answers = operator_answers(images.labels[:, a], images.labels[:, b])
        for operator, pattern in TEXTS.items():
            tree, text = operator_tree(operator, *names), phrase(pattern, *names)
            parse = Parse(text=text, query=tree, affirmative=affirmative_text(tree, text), parser="oracle")
            areas = {name: area_under_curve(rankers[name](parse), answers[operator]) for name in modes}
            found[quality].append([areas[name] - areas["holistic"] for name in GAINING])
    lows = dict(zip(QUALITIES, (0.0, *QUALITIES), strict=False))
    return {
        f"{lows[high]:.2f}–{high:.2f}": {
            "queries": float(len(rows)),
            **dict(zip(GAINING, np.mean(rows, axis=0).tolist(), strict=True)),
        }
        for high, rows in sorted(found.items())
    }


def diagnosis_rows(result: Mapping[str, Any]) -> Rows:
    """What plain similarity hears of a text."""
    return [
        ["plain similarity", "value"],
        ['"a X" finds pictures with X, AUC', f"{result['detection_auc']:.3f}"],
        ['"no X" finds pictures without X, AUC', f"{result['polarity_auc']:.3f}"],
        ['"a X" and "no X" rank alike, ρ', f"{result['polarity_correlation']:.3f}"],
        *(
            [f"similarity moves by, in deviations: {kind}", number_text(moved, ".2f")]
            for kind, moved in result["sensitivity"].items()
        ),
    ]


def diagnosis_text(result: Mapping[str, Any]) -> str:
    """The analysis for a terminal."""
    quadrants, gains = result["quadrants"], result["gain_by_quality"]
    where = [["highest similarity, in deviations", *quadrants["AND"]]]
    where += [[operator, *(f"{value:.2f}" for value in row.values())] for operator, row in quadrants.items()]
    gained = [["gain in AUC, where the weaker concept's is", "queries", *GAINING]]
    gained += [
        [bin_, f"{row['queries']:.0f}", *(f"{row[name]:+.3f}" for name in GAINING)] for bin_, row in gains.items()
    ]
    head = f"{result['images']} images, {result['pairs']} pairs of classes"
    return "\n\n".join([f"{head}\n{aligned(diagnosis_rows(result))}", aligned(where), aligned(gained)])
