"""`lcse explain`: the arithmetic of one score, step by step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lcse_plugins.cli.messages import print_notes, printable
from lcse_plugins.cli.options import json_option, make_scorer, print_json, scoring_options
from lcse_plugins.cli.query_command import QueryCommand, check_order
from lcse_plugins.query import canonical, draw

if TYPE_CHECKING:
    from lcse_plugins.retrieval.pool import VectorPool
    from lcse_plugins.scoring.encoded import EncodedQuery
    from lcse_plugins.scoring.results import Ranked

__all__ = ["explain"]


@click.command(cls=QueryCommand, epilog="Example: lcse explain pictures.lcse 'a cup and no cat' kitchen/cup.jpg")
@click.argument("index_path", metavar="INDEX", type=click.Path(path_type=Path))
@click.argument("query")
@click.argument("image")
@scoring_options
@json_option
def explain(index_path: Path, query: str, image: str, as_json: bool, **scoring: Any) -> None:
    """Show how IMAGE, a picture of INDEX, gets its score under QUERY."""
    from lcse_plugins.index import ImageIndex
    from lcse_plugins.retrieval.sources import rank_pool

    check_order(index_path, query, image)
    scorer = make_scorer(**scoring)
    index = ImageIndex.open(index_path, encoder=scorer.encoder)
    pool = index.part([index.position(image)])
    encoded = scorer.encode(query)
    ranking = rank_pool(encoded, pool)
    if as_json:
        reading = {"query": query, "mode": ranking.mode, "notes": list(ranking.parse.notes)}
        print_json({**ranking[0].to_json(), **reading, "error": ranking.parse.error})
    else:
        click.echo("\n".join(_steps(encoded, ranking[0], views=_views(encoded, pool))))
        print_notes(ranking.parse)


def _views(encoded: EncodedQuery, pool: VectorPool) -> list[str]:
    from lcse_plugins.retrieval.tiles import RegionPool

    if not isinstance(pool, RegionPool) or encoded.edits_nothing:
        return []
    scale = pool.scale
    return [
        f"similarity  mean of the {pool.best} best of {1 + pool.regions.shape[1]} views: the picture and its tiles,",
        f"            × {scale.factor:.3f} {scale.offset:+.3f} (carried over to the scale of whole pictures)",
    ]


def _steps(encoded: EncodedQuery, result: Ranked, *, views: list[str]) -> list[str]:
    mu, beta = encoded.calibration.mu, encoded.calibration.beta
    lines = [
        f"picture     {printable(result.id)}",
        f"query       {encoded.parse.text}",
        *(f"            {line}" for line in draw(canonical(encoded.parse.query)).splitlines()),
        f"calibration μ = {mu:g}, β = {beta:g}",
        *views,
        "",
        f"{'concept':<24} {'similarity s':>12} {'x = β(s - μ)':>13} {'p = σ(x)':>9} {'counts as':>10}",
    ]
    for item in result.evidence:
        counted = 1 - item.probability if item.negated else item.probability
        lines.append(
            f"{item.label:<24} {item.similarity:>12.4f} "
            f"{beta * (item.similarity - mu):>13.3f} {item.probability:>9.4f} {counted:>10.4f}"
        )
    lines.append("")
    lines += _sums(encoded, result)
    return lines


def _sums(encoded: EncodedQuery, result: Ranked) -> list[str]:
    from lcse_plugins.scoring.edit import leaf_weights

    mu, beta, mode = encoded.calibration.mu, encoded.calibration.beta, encoded.config.mode
    if encoded.edits_nothing:
        return [f"score       {result.score:.4f}, the plain similarity: the query states no logic, or mode is holistic"]
    truth, soft = _logits(encoded, result)
    lines = [f"truth       p_logic = {result.truth:.4f}, logit {truth:.3f}"]
    if mode == "lcse":
        p_soft = sum(item.probability for item in result.evidence) / len(result.evidence)
        return [
            *lines,
            f"unedited    p_soft  = {p_soft:.4f}, logit {soft:.3f}",
            f"correction  ({truth:.3f} - {soft:.3f}) / {beta:g} = {result.correction:+.4f}",
            f"score       {result.holistic:.4f} {result.correction:+.4f} = {result.score:.4f}",
        ]
    logic = truth / beta + mu
    lines.append(f"logic       {truth:.3f} / {beta:g} + {mu:g} = {logic:.4f}")
    if mode != "anchored":
        return [*lines, f"score       {result.score:.4f}, the logic alone"]
    plain, meaning = result.holistic, "the similarity of what the query affirms"
    if weights := leaf_weights(encoded.tree, encoded.config):
        plain = mu + sum(weights[item.concept] * (item.similarity - mu) for item in result.evidence)
        meaning = "the concepts' mean similarity, negated ones reflected at μ"
    return [
        *lines,
        f"plain       {plain:.4f}, {meaning}",
        f"score       ({logic:.4f} + {plain:.4f}) / 2 = {result.score:.4f}",
    ]


def _logits(encoded: EncodedQuery, result: Ranked) -> tuple[float, float]:
    """Logits of the truth and of the unedited mean, in the precision of the score: probabilities round them off."""
    import numpy as np

    from lcse_plugins.scoring.evidence import gather_logits
    from lcse_plugins.scoring.logic import soft_logit, truth_logit

    similarities = {item.concept: np.array([item.similarity], dtype=np.float32) for item in result.evidence}
    logits = gather_logits(similarities, encoded.calibration)
    truth = truth_logit(encoded.scored_tree, logits, config=encoded.config)
    return float(truth[0]), float(soft_logit(list(logits.values()))[0])
