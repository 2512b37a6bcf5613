"""Choosing μ and β by what users see: the ranking of images the heads were not trained on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from figures import PHRASINGS, Floats, area_under_curve, forced_choice, questions, tree
from numpy.typing import NDArray

from lcse_plugins.calibrate import Calibration
from lcse_plugins.config import ScoringConfig
from lcse_plugins.edit import score_arrays

MUS = (0.12, 0.16, 0.20, 0.24, 0.28, 0.32, 0.36, 0.40)
BETAS = (3.0, 5.0, 8.0, 12.0, 20.0, 30.0)
QUESTIONS_OF_EACH_KIND = 150
KINDS = ("not", "and", "or", "but_not", "neither")
PAIRS = 60
FEWEST = 4


@dataclass(frozen=True, kw_only=True)
class Search:
    """One query over all images: its kind, its concepts, its text, and which images satisfy it."""

    kind: str
    a: str
    b: str
    text: str
    relevant: NDArray[np.bool_]


def searches(labels: NDArray[np.bool_], classes: Sequence[str]) -> list[Search]:
    """Queries of five kinds over the pairs of classes that occur together most often."""
    together = [
        (int((labels[:, i] & labels[:, j]).sum()), i, j)
        for i, j in combinations(range(len(classes)), 2)
        if "person" not in (classes[i], classes[j])
    ]
    pairs = [(i, j) for count, i, j in sorted(together, reverse=True)[:PAIRS] if count >= FEWEST]
    made = []
    for i, j in pairs:
        a, b = labels[:, i], labels[:, j]
        relevant = {"not": ~a, "and": a & b, "or": a | b, "but_not": a & ~b, "neither": ~a & ~b}
        for kind in KINDS:
            if FEWEST <= relevant[kind].sum() < len(labels):
                text = PHRASINGS[kind][0].format(a=classes[i], b=classes[j])
                made.append(Search(kind=kind, a=classes[i], b=classes[j], text=text, relevant=relevant[kind]))
    return made


def retrieval(
    asked: Sequence[Search],
    similarities: dict[str, Floats],
    holistic: dict[str, Floats],
    calibration: Calibration,
    config: ScoringConfig,
) -> tuple[float, float]:
    """Mean P@10 and mean AUC; each kind of query counts the same."""
    figures: dict[str, list[tuple[float, float]]] = {}
    for search in asked:
        scores = score_arrays(
            tree(search.kind, search.a, search.b),
            holistic[search.text],
            {name: similarities[name] for name in (search.a, search.b)},
            calibration=calibration,
            config=config,
        )
        top = np.argsort(-scores, kind="stable")[:10]
        precision = search.relevant[top].mean() / min(1.0, search.relevant.sum() / 10)
        figures.setdefault(search.kind, []).append((precision, area_under_curve(scores, search.relevant)))
    means = np.array([np.mean(values, axis=0) for values in figures.values()])
    return float(means[:, 0].mean()), float(means[:, 1].mean())


def choose_preset(
    images: Floats,
    labels: NDArray[np.bool_],
    concepts: Mapping[str, Floats],
    encode: Callable[[Sequence[str]], Floats],
) -> tuple[Calibration, list[dict[str, float]]]:
    """The pair with the best mean of P@10, AUC and two-way accuracy under the published method, and the whole grid.

    Retrieval hardly sees μ (a single negation ranks the same for all of them), two-way questions hardly see β; together
    they settle both.
    """
    classes = list(concepts)
    asked = searches(labels, classes)
    shown = [{classes[j]: 1 for j in np.flatnonzero(row)} for row in labels]
    paired = questions(shown, classes, each=QUESTIONS_OF_EACH_KIND, seed=1)
    texts = sorted({search.text for search in asked} | {text for question in paired for text in question.texts})
    vectors = dict(zip(texts, encode(texts), strict=True))
    holistic = {search.text: images @ vectors[search.text] for search in asked}
    similarities = {name: images @ vector for name, vector in concepts.items()}
    config, grid = ScoringConfig(mode="lcse"), []
    for mu in MUS:
        for beta in BETAS:
            calibration = Calibration(mu=mu, beta=beta)
            precision, area = retrieval(asked, similarities, holistic, calibration, config)
            accuracy = forced_choice(paired, images, vectors, concepts, calibration=calibration, config=config)
            grid.append({"mu": mu, "beta": beta, "precision_at_10": precision, "auc": area, "two_way": accuracy})
    best = max(grid, key=lambda row: row["precision_at_10"] + row["auc"] + row["two_way"])
    return Calibration(mu=best["mu"], beta=best["beta"]), grid
