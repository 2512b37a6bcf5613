"""`LogicRetriever`: fetches candidates by what the query says, not by its words, and ranks them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias, get_args

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.multi_modal.retriever import MultiModalVectorIndexRetriever
from llama_index.core.indices.vector_store.retrievers import VectorIndexRetriever
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from lcse_plugins.errors import InvalidOption
from lcse_plugins.scoring.encoded import EncodedQuery
from llama_index_lcse.embedding import EncoderEmbedding
from llama_index_lcse.node_images import VectorLookup
from llama_index_lcse.postprocessor import LogicPostprocessor

__all__ = ["CandidateSearch", "LogicRetriever"]

CandidateSearch: TypeAlias = Literal["auto", "logic", "words"]
"""How candidates are fetched; see `LogicRetriever`."""

_Nodes: TypeAlias = Sequence[NodeWithScore]


class LogicRetriever(BaseRetriever):
    """Retrieves with another retriever and ranks by LCSE; `as_retriever(node_postprocessors=…)` would not.

        >>> base = index.as_retriever(similarity_top_k=100)
        >>> LogicRetriever(base, LogicPostprocessor(top_n=5)).retrieve("a kitchen but no microwave")

    The words of "no dog" are nearest to dogs: no reranking of what they fetch can find an image without one. So
    candidates are fetched with the search vectors of the query's *logic* instead, wherever the index was built with
    the postprocessor's encoder. Each search is as deep as the base retriever's `similarity_top_k`. An approximate index
    may serve such vectors badly, as they point away from all images: let it search exactly, or widely, if it can. The
    text half of a multi-modal index is searched by words, as each node's account says under `fetched`.

    Args:
        base_retriever: Where candidates come from.
        postprocessor: Ranks them; its `top_n` is how many nodes are returned, all that any search found if it is None.
        candidates: "logic" gives the base retriever a `QueryBundle` with an embedding, which `VectorIndexRetriever`
            and those like it search with; right only if its index holds vectors of the postprocessor's encoder.
            "words" leaves the search to the base retriever. "auto" is "logic" where the index is known to hold such
            vectors, by its `EncoderEmbedding`, and "words" elsewhere.
        callback_manager: As for any retriever.
    """

    def __init__(
        self,
        base_retriever: BaseRetriever,
        postprocessor: LogicPostprocessor,
        *,
        candidates: CandidateSearch = "auto",
        callback_manager: CallbackManager | None = None,
    ) -> None:
        if candidates not in get_args(CandidateSearch):
            raise InvalidOption(f"candidates is one of {', '.join(get_args(CandidateSearch))}, not {candidates!r}")
        for value, kind in ((base_retriever, BaseRetriever), (postprocessor, LogicPostprocessor)):
            if not isinstance(value, kind):
                raise InvalidOption(
                    f"LogicRetriever takes a retriever and a LogicPostprocessor, not {type(value).__name__}; "
                    "LogicRetriever(index.as_retriever(similarity_top_k=100), LogicPostprocessor(top_n=5))"
                )
        super().__init__(callback_manager=callback_manager)
        self.base_retriever = base_retriever
        self.postprocessor = postprocessor
        self.candidates = candidates

    def _get_prompt_modules(self) -> PromptMixinType:
        return {"base_retriever": self.base_retriever, **self.postprocessor._get_prompt_modules()}

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        encoded = self.postprocessor.scorer.encode(query_bundle.query_str)
        if not self._searches_by_logic():
            nodes = self.base_retriever.retrieve(replace(query_bundle))
            return self.postprocessor.rerank(nodes, query_bundle, encoded)
        by_logic, by_words = self._found(query_bundle, encoded)
        nodes, store = _distinct([*by_logic, by_words]), _store(self.base_retriever)
        return self.postprocessor.rerank(nodes, query_bundle, encoded, by_logic=_ids(by_logic), store=store)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        encoded = await self.postprocessor.aencode(query_bundle.query_str)
        if not await asyncio.to_thread(self._searches_by_logic):
            nodes = await self.base_retriever.aretrieve(replace(query_bundle))
            return await self.postprocessor.arerank(nodes, query_bundle, encoded)
        by_logic, by_words = await self._afound(query_bundle, encoded)
        nodes, store = _distinct([*by_logic, by_words]), _store(self.base_retriever)
        return await self.postprocessor.arerank(nodes, query_bundle, encoded, by_logic=_ids(by_logic), store=store)

    def _found(self, query_bundle: QueryBundle, encoded: EncodedQuery) -> tuple[Sequence[_Nodes], _Nodes]:
        """What each search by logic found; and what was found by words, the texts of a multi-modal index."""
        searching = _honours_embedding(self.base_retriever)
        by_logic = [searching.retrieve(search) for search in _searches(query_bundle, encoded)]
        if not isinstance(searching, _ImageHalf):
            return by_logic, ()
        return by_logic, searching.whole.text_retrieve(replace(query_bundle, embedding=None))

    async def _afound(self, query_bundle: QueryBundle, encoded: EncodedQuery) -> tuple[Sequence[_Nodes], _Nodes]:
        searching = _honours_embedding(self.base_retriever)
        searches = [searching.aretrieve(search) for search in _searches(query_bundle, encoded)]
        if not isinstance(searching, _ImageHalf):
            return await asyncio.gather(*searches), ()
        texts = searching.whole.atext_retrieve(replace(query_bundle, embedding=None))
        *by_logic, by_words = await asyncio.gather(*searches, texts)
        return by_logic, by_words

    def _searches_by_logic(self) -> bool:
        if self.candidates != "auto":
            return self.candidates == "logic"
        match self.base_retriever:
            case MultiModalVectorIndexRetriever():
                model: Any = self.base_retriever._image_embed_model
            case VectorIndexRetriever() if self.base_retriever._needs_embedding():
                model = self.base_retriever._embed_model
            case _:
                return False
        scored_with = self.postprocessor.scorer.encoder.encoder_id
        return isinstance(model, EncoderEmbedding) and model.encoder_id == scored_with


class _ImageHalf(BaseRetriever):
    """The image half of a multi-modal retriever, searched with a given embedding: itself, it would replace that."""

    def __init__(self, whole: MultiModalVectorIndexRetriever) -> None:
        super().__init__(callback_manager=whole.callback_manager)
        self.whole = whole

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        empty = self.whole._index.is_image_vector_store_empty
        return [] if empty else self.whole._get_nodes_with_embeddings(query_bundle, *self._searched())

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        empty = self.whole._index.is_image_vector_store_empty
        return [] if empty else await self.whole._aget_nodes_with_embeddings(query_bundle, *self._searched())

    def _searched(self) -> tuple[int, BasePydanticVectorStore]:
        return self.whole.image_similarity_top_k, self.whole._image_vector_store


def _honours_embedding(retriever: BaseRetriever) -> BaseRetriever:
    return _ImageHalf(retriever) if isinstance(retriever, MultiModalVectorIndexRetriever) else retriever


def _store(retriever: BaseRetriever) -> VectorLookup | None:
    match retriever:
        case MultiModalVectorIndexRetriever():
            return retriever._image_vector_store
        case VectorIndexRetriever():
            return retriever._vector_store
        case _:
            return None


def _searches(query_bundle: QueryBundle, encoded: EncodedQuery) -> list[QueryBundle]:
    return [replace(query_bundle, embedding=vector) for vector in encoded.plan.search_vectors.tolist()]


def _distinct(found: Sequence[_Nodes]) -> list[NodeWithScore]:
    kept: dict[str, NodeWithScore] = {}
    for retrieved in (retrieved for nodes in found for retrieved in nodes):
        kept.setdefault(retrieved.node_id, retrieved)
    return list(kept.values())


def _ids(found: Sequence[_Nodes]) -> frozenset[str]:
    return frozenset(retrieved.node_id for nodes in found for retrieved in nodes)
