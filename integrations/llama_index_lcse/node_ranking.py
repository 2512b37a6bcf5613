"""Rank and pack: nodes and their vectors to new nodes in order, each with the reason for its place in its metadata."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore

from lcse_plugins.arguments import check_limits
from lcse_plugins.encoded import EncodedQuery
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import ImageError
from lcse_plugins.images.text_vectors import LOOKED_AT, PictureCheck, Stored
from lcse_plugins.pool import VectorPool
from lcse_plugins.query import leaves
from lcse_plugins.results import Candidate, Ranked
from lcse_plugins.search import rank_pool
from llama_index_lcse.node_images import picture_of

__all__ = ["METADATA_KEY", "RETRIEVAL_SCORE_KEY", "OnMissing", "packed", "rank_nodes", "told"]

OnMissing: TypeAlias = Literal["keep_last", "drop", "raise"]

METADATA_KEY = "lcse"
"""Metadata key of the account a ranked node gives of itself; no LLM and no embedding model gets to see it."""

RETRIEVAL_SCORE_KEY = "retrieval_score"
"""Metadata key of the score a node was retrieved with, where that is kept."""


def rank_nodes(
    nodes: Sequence[NodeWithScore],
    vectors: Sequence[FloatArray | ImageError],
    encoded: EncodedQuery,
    *,
    check: PictureCheck,
    limit: int | None,
    min_truth: float | None,
    on_missing: OnMissing,
    keep_retrieval_score: bool,
    fetched_by_logic: bool,
) -> list[NodeWithScore]:
    """New nodes, the best image first; nodes that have an error in the place of a vector are treated as `on_missing`.

    Among the best, a node whose vector is that of its text is one without.

    Raises:
        ImageError: a node has no vector and `on_missing` is "raise".
        InvalidCandidate: the vectors are those of the nodes' texts, not of their pictures.
        InvalidOption: `limit` or `min_truth` is out of range.
    """
    check_limits(limit, min_truth)
    found = list(vectors)
    ranked = _best(nodes, found, encoded, limit, min_truth)
    while wrong := _of_texts(nodes, ranked, check):
        found = [wrong.get(place, vector) for place, vector in enumerate(found)]
        ranked = _best(nodes, found, encoded, limit, min_truth)
    missing = [(node, fault) for node, fault in zip(nodes, found, strict=True) if isinstance(fault, ImageError)]
    if missing and on_missing == "raise":
        raise missing[0][1]
    about = json.dumps(_about(encoded, fetched_by_logic=fetched_by_logic))
    results = [
        packed(
            nodes[result.candidate.payload], result.score, {**told(result), **json.loads(about)}, keep_retrieval_score
        )
        for result in ranked
    ]
    kept = missing if on_missing == "keep_last" else []
    for retrieved, error in kept[: None if limit is None else limit - len(results)]:
        account = {"id": retrieved.node_id, "missing": str(error), **json.loads(about)}
        results.append(packed(retrieved, _finite(retrieved.score), account, keep_retrieval_score))
    return results


def _about(encoded: EncodedQuery, *, fetched_by_logic: bool) -> dict[str, Any]:
    notes = list(encoded.parse.notes)
    excluded = dict.fromkeys(leaf.text for leaf, negated in leaves(encoded.tree) if negated)
    if excluded and not fetched_by_logic:
        notes.append(
            f"these candidates were fetched by the words of the query, which favours what it excludes "
            f"({', '.join(excluded)}); LogicRetriever fetches by its logic"
        )
    return {"parse": encoded.parse.to_json(), "mode": encoded.config.mode, "notes": notes}


def _best(
    nodes: Sequence[NodeWithScore],
    vectors: Sequence[FloatArray | ImageError],
    encoded: EncodedQuery,
    limit: int | None,
    min_truth: float | None,
) -> list[Ranked]:
    """The nodes that have a vector, ranked; a candidate's payload is the place of its node."""
    candidates = [
        Candidate(nodes[place].node_id, vector, payload=place)
        for place, vector in enumerate(vectors)
        if not isinstance(vector, ImageError)
    ]
    return rank_pool(encoded, VectorPool.of(candidates), limit=limit, min_truth=min_truth) if candidates else []


def _of_texts(nodes: Sequence[NodeWithScore], ranked: Sequence[Ranked], check: PictureCheck) -> dict[int, ImageError]:
    """Place → what is wrong with a node whose vector is that of its text, among the best."""
    best = [result.candidate for result in ranked[:LOOKED_AT]]
    stored = [_stored(nodes[candidate.payload].node, candidate.vector) for candidate in best]
    wrong = check.of_texts(stored)
    return {best[i].payload: ImageError(stored[i].name, check.told(stored[i])) for i in wrong}


def _stored(node: BaseNode, vector: FloatArray) -> Stored:
    return Stored(f"node {node.node_id}", vector, node.get_content(MetadataMode.EMBED), picture_of(node))


def told(result: Ranked) -> dict[str, Any]:
    """What a result says of itself, as JSON values: its numbers, and the reason in words."""
    return {**result.to_json(), "reason": result.reason}


def packed(
    retrieved: NodeWithScore, score: float | None, account: dict[str, Any], keep_retrieval_score: bool = False
) -> NodeWithScore:
    """A copy of the node with a new score and the account of it, which no LLM and no embedding model gets to see."""
    added: dict[str, Any] = {METADATA_KEY: account}
    if keep_retrieval_score:
        added[RETRIEVAL_SCORE_KEY] = _finite(retrieved.score)
    node = retrieved.node
    copy = node.model_copy(
        update={
            "metadata": {**node.metadata, **added},
            "excluded_llm_metadata_keys": [*dict.fromkeys([*node.excluded_llm_metadata_keys, *added])],
            "excluded_embed_metadata_keys": [*dict.fromkeys([*node.excluded_embed_metadata_keys, *added])],
        }
    )
    return NodeWithScore(node=copy, score=score)


def _finite(score: float | None) -> float | None:
    return score if score is not None and math.isfinite(score) else None
