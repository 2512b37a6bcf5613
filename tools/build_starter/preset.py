"""Choosing μ and β by what users see: the ranking of images the heads were not trained on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import cast

import numpy as np
from figures import PHRASINGS, Floats, Question, area_under_curve, forced_choice, questions, tree
from numpy.typing import NDArray

from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.config import Mode, ScoringConfig
from lcse_plugins.scoring.edit import score_arrays

MUS = (0.12, 0.16, 0.20, 0.24, 0.28, 0.32, 0.36, 0.40)
BETAS = (3.0, 5.0, 8.0, 12.0, 20.0, 30.0)
QUESTIONS_OF_EACH_KIND = 150
KINDS = ("not", "and", "or", "but_not", "neither")
AFFIRMED = {"and": "a {a} and a {b}", "or": "a {a} or a {b}"}
"""What a text says when its denied part is left out; one that affirms nothing has no part in the anchored score."""

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
    made: list[Search] = []
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
    """The pair with the best sum of P@10, AUC and two-way accuracy over two modes, and the whole grid.

    The modes are the published method and the anchored one. Retrieval under the first wants a large μ, two-way
    questions a small one; a user has one preset for all.
    """
    classes = list(concepts)
    asked = searches(labels, classes)
    shown = [{classes[j]: 1 for j in np.flatnonzero(row)} for row in labels]
    paired = questions(shown, classes, each=QUESTIONS_OF_EACH_KIND, seed=1)
    work = {
        "lcse": (asked, paired),
        "anchored": (
            [replace(search, text=_affirmed(search.kind, search.a, search.b)) for search in asked],
            [replace(q, texts=(_affirmed(q.kinds[0], q.a, q.b), _affirmed(q.kinds[1], q.a, q.b))) for q in paired],
        ),
    }
    texts = sorted({text for some, both in work.values() for text in _texts(some, both)})
    vectors = dict(zip(texts, encode(texts), strict=True))
    similarities = {name: images @ vector for name, vector in concepts.items()}
    grid = []
    for mu, beta in product(MUS, BETAS):
        calibration, row = Calibration(mu=mu, beta=beta), {"mu": mu, "beta": beta}
        for mode, (some, both) in work.items():
            config = ScoringConfig(mode=cast(Mode, mode))
            holistic = {search.text: images @ vectors[search.text] for search in some}
            row[f"{mode} P@10"], row[f"{mode} AUC"] = retrieval(some, similarities, holistic, calibration, config)
            row[f"{mode} two-way"] = forced_choice(
                both, images, vectors, concepts, calibration=calibration, config=config
            )
        grid.append(row)
    best = max(grid, key=lambda row: sum(row.values()) - row["mu"] - row["beta"])
    return Calibration(mu=best["mu"], beta=best["beta"]), grid


def _affirmed(kind: str, a: str, b: str) -> str:
    return AFFIRMED.get(kind, "a {a}").format(a=a, b=b)


def _texts(asked: Sequence[Search], paired: Sequence[Question]) -> set[str]:
    return {search.text for search in asked} | {text for question in paired for text in question.texts}
