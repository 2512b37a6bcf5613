"""Pack: a copy of a node with its new score and the account of it, which to LlamaIndex is the same node."""

from __future__ import annotations

import math
from functools import cache
from types import new_class
from typing import TYPE_CHECKING, Any

from llama_index.core.schema import BaseNode, ImageNode, NodeWithScore, TextNode

from lcse_plugins.hosts.result_metadata import METADATA_KEY, Account

if TYPE_CHECKING:
    _Mixed = TextNode
else:
    _Mixed = object

__all__ = ["RETRIEVAL_SCORE_KEY", "finite", "packed"]

RETRIEVAL_SCORE_KEY = "retrieval_score"
"""Metadata key of the score a node was retrieved with, where that is kept."""


def packed(
    retrieved: NodeWithScore, score: float | None, account: Account, keep_retrieval_score: bool = False
) -> NodeWithScore:
    """A copy of the node with a new score and the account of it, which no LLM and no embedding model gets to see."""
    added: dict[str, Any] = {METADATA_KEY: account}
    if keep_retrieval_score:
        added[RETRIEVAL_SCORE_KEY] = finite(retrieved.score)
    node = retrieved.node
    copy = node.model_copy(
        update={
            "metadata": {**node.metadata, **added},
            "excluded_llm_metadata_keys": [*dict.fromkeys([*node.excluded_llm_metadata_keys, *added])],
            "excluded_embed_metadata_keys": [*dict.fromkeys([*node.excluded_embed_metadata_keys, *added])],
        }
    )
    object.__setattr__(copy, "__class__", _ranked_kind(type(node)))
    return NodeWithScore(node=copy, score=score)


def finite(score: float | None) -> float | None:
    """The score, if it is a number."""
    return score if score is not None and math.isfinite(score) else None


class _Ranked(_Mixed):
    """Goes before a class of nodes: their hash, by which LlamaIndex fuses results, then passes over the account."""

    __slots__ = ()

    @property
    def hash(self) -> str:
        added = (METADATA_KEY, RETRIEVAL_SCORE_KEY)
        metadata = {key: value for key, value in self.metadata.items() if key not in added}
        return str(super(_Ranked, self.model_copy(update={"metadata": metadata})).hash)

    def __reduce__(self) -> tuple[Any, ...]:
        return _blank, type(self).__bases__[1:], self.__getstate__()


@cache
def _ranked_kind(kind: type[BaseNode]) -> type[BaseNode]:
    """The class of ranked nodes of a kind: the kind itself where its hash passes over all metadata."""
    if issubclass(kind, _Ranked) or kind.hash is ImageNode.hash:
        return kind
    named = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    return new_class(kind.__name__, (_Ranked, kind), exec_body=lambda body: body.update(named))


def _blank(kind: type[BaseNode]) -> BaseNode:
    """A ranked node of a kind to be filled from a pickle."""
    ranked = _ranked_kind(kind)
    return ranked.__new__(ranked)
