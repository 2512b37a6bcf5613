"""What blocks in one method and is awaited in another is written once: as a coroutine that is told how to call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from lcse_plugins.errors import InvalidOption
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.encoded import EncodedQuery

__all__ = ["AWAITING", "BLOCKING", "VectorLookup", "Way", "only_computes", "run_blocking"]

T = TypeVar("T")

VectorLookup: TypeAlias = BasePydanticVectorStore | Callable[[Sequence[str]], Mapping[str, Sequence[float]]]
"""Where stored vectors are found: a vector store, or a function from node ids to the vectors it knows."""


class Way:
    """How a coroutine makes its calls: blocking, so that it never waits, or leaving the event loop free."""

    def __init__(self, *, blocking: bool) -> None:
        self._blocking = blocking

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """What a function that computes or reads gives back."""
        return function(*args) if self._blocking else await asyncio.to_thread(function, *args)

    async def encode(self, scorer: LogicScorer, query: str) -> EncodedQuery:
        """The query, parsed and encoded."""
        return scorer.encode(query) if self._blocking else await scorer.aencode(query)

    async def retrieve(self, searches: Sequence[tuple[BaseRetriever, QueryBundle]]) -> list[list[NodeWithScore]]:
        """What each search finds."""
        if self._blocking:
            return [retriever.retrieve(bundle) for retriever, bundle in searches]
        return await asyncio.gather(*(retriever.aretrieve(bundle) for retriever, bundle in searches))

    async def look_up(self, store: VectorLookup, node_ids: list[str]) -> Mapping[str, Any]:
        """The vectors that are stored for some of the ids; InvalidOption if the store cannot give them back."""
        if isinstance(store, SimpleVectorStore):
            known = store.data.embedding_dict
            return {node_id: known[node_id] for node_id in node_ids if node_id in known}
        if not isinstance(store, BasePydanticVectorStore):
            return await self.run(store, node_ids)
        try:
            if self._blocking or store.client:
                nodes = await self.run(store.get_nodes, node_ids)
            else:
                nodes = await store.aget_nodes(node_ids)
        except NotImplementedError as error:
            kind = type(store).__name__
            raise InvalidOption(
                f"{kind} does not give nodes back; pass vector_store=, a function from node ids to vectors"
            ) from error
        return {node.node_id: node.embedding for node in nodes}


def only_computes(retriever: BaseRetriever) -> bool:
    """Whether `aretrieve` would block the event loop: retriever or store fall back on what they do without it."""
    store = getattr(retriever, "_vector_store", None)
    falls_back = isinstance(store, BasePydanticVectorStore) and type(store).aquery is BasePydanticVectorStore.aquery
    return falls_back or type(retriever)._aretrieve is BaseRetriever._aretrieve


BLOCKING, AWAITING = Way(blocking=True), Way(blocking=False)


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that makes only blocking calls."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("a blocking way was awaited")
