"""Rank: nodes and their vectors to new nodes in order, each with the reason for its place in its metadata."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Sequence

from llama_index.core.schema import BaseNode, ImageNode, MetadataMode, NodeWithScore

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import ImageError
from lcse_plugins.hosts.reranking import OnMissing, kept_last, rank_found
from lcse_plugins.hosts.result_metadata import Accounts, Fetched, fetched_by
from lcse_plugins.hosts.text_vectors import StoredResult, TextVectorCheck
from lcse_plugins.images.locations import location_name
from lcse_plugins.scoring.encoded import EncodedQuery
from llama_index_lcse.node_copies import finite, packed
from llama_index_lcse.node_images import is_image, picture_of

__all__ = ["rank_nodes", "stored_result"]

logger = logging.getLogger(__name__)


def rank_nodes(
    nodes: Sequence[NodeWithScore],
    vectors: Sequence[FloatArray | ImageError],
    encoded: EncodedQuery,
    *,
    check: TextVectorCheck,
    limit: int | None,
    min_truth: float | None,
    on_missing: OnMissing,
    keep_retrieval_score: bool,
    by_logic: Collection[str] | None,
) -> list[NodeWithScore]:
    """New nodes, the best image first; nodes that have an error in the place of a vector are treated as `on_missing`.

    Among the best, a node whose vector is that of its text is one without. `by_logic` holds the ids of those that were
    fetched by the query's logic; None for what they say of it themselves.

    Raises:
        ImageError: a node has no vector and `on_missing` is "raise".
        InvalidCandidate: the vectors are those of the nodes' texts, not of their pictures; with "raise", if one is.
        InvalidOption: `limit` or `min_truth` is out of range.
    """
    ranking, missing = rank_found(
        encoded,
        nodes,
        vectors,
        stored=lambda retrieved, vector: stored_result(retrieved.node, vector),
        check=check,
        limit=limit,
        min_truth=min_truth,
    )
    _tell_of_parts([result.candidate.payload.node for result in ranking])
    unranked = kept_last(
        missing,
        found_count=len(nodes),
        is_picture=lambda retrieved: is_image(retrieved.node),
        on_missing=on_missing,
        min_truth=min_truth,
    )
    by_logic = _said_by_logic(nodes, encoded.parse.text) if by_logic is None else by_logic
    fetched: dict[bool, Fetched] = {True: "logic", False: "words"}
    accounts = {found: Accounts(ranking, fetched=way) for found, way in fetched.items()}
    results: list[NodeWithScore] = []
    for result in ranking:
        retrieved = result.candidate.payload
        account = accounts[retrieved.node_id in by_logic].of(result, retrieved.node_id)
        results.append(packed(retrieved, result.score, account, keep_retrieval_score))
    for retrieved, fault in unranked[: None if limit is None else limit - len(results)]:
        account = accounts[retrieved.node_id in by_logic].of_missing(fault, retrieved.node_id)
        results.append(packed(retrieved, finite(retrieved.score), account, keep_retrieval_score))
    return results


def stored_result(node: BaseNode, vector: FloatArray | None) -> StoredResult:
    """A node as it is stored with a vector: by which text, and of which picture it should be."""
    return StoredResult(f"node {node.node_id}", vector, node.get_content(MetadataMode.EMBED), picture_of(node))


def _tell_of_parts(nodes: Sequence[BaseNode]) -> None:
    """Log when texts among the best are parts of one picture, whose bytes a reader took for a text to be split."""
    named = {node.node_id: place for node in nodes if not isinstance(node, ImageNode) and (place := picture_of(node))}
    for picture, count in Counter(named.values()).most_common(1):
        if count > 1:
            logger.warning(
                "%d of %d ranked nodes are texts that name one picture, %s; if a reader split its bytes as text, read "
                "it as an ImageDocument: SimpleDirectoryReader does so where llama-index-readers-file is installed",
                count,
                len(nodes),
                location_name(picture),
            )


def _said_by_logic(nodes: Sequence[NodeWithScore], query: str) -> set[str]:
    """Ids of the nodes that say they were fetched by the query's logic; none if one of the pictures does not."""
    said = {retrieved.node_id for retrieved in nodes if fetched_by([retrieved.metadata], query) == "logic"}
    return said if all(retrieved.node_id in said for retrieved in nodes if is_image(retrieved.node)) else set()
