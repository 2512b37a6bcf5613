"""`LogicRetriever`: fetches candidates by what the query says, not by its words, and ranks them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.embeddings import MultiModalEmbedding
from llama_index.core.indices import MultiModalVectorStoreIndex, VectorStoreIndex
from llama_index.core.indices.multi_modal.retriever import MultiModalVectorIndexRetriever
from llama_index.core.indices.vector_store.retrievers import VectorIndexRetriever
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import BasePydanticVectorStore, MetadataFilter, MetadataFilters

from lcse_plugins.encoders.protocol import Encoder
from lcse_plugins.errors import InvalidOption, LcseError
from lcse_plugins.hosts.logic_queries import DatabaseQueries, LogicQueries
from lcse_plugins.hosts.notices import Notices
from lcse_plugins.hosts.reranking import usable_vector
from lcse_plugins.hosts.result_metadata import ResultDescriber
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.arguments import check_choice, check_count
from lcse_plugins.scoring.config import Mode
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.scoring.results import Ranking
from llama_index_lcse.embedding import EmbeddingEncoder, LcseEmbedding, embedding_name
from llama_index_lcse.nodes import node_of, packed, picture_of, stored_result
from llama_index_lcse.postprocessor import LogicPostprocessor
from llama_index_lcse.two_ways import AWAITING, BLOCKING, Way, only_computes, run_blocking

if TYPE_CHECKING:
    from qdrant_client import models

__all__ = ["CandidateSearch", "LogicRetriever"]

logger = logging.getLogger(__name__)

CandidateSearch: TypeAlias = Literal["auto", "logic", "words"]
"""How candidates are fetched; see `LogicRetriever`."""

SAME_PICTURE = 0.99
"""A stored vector with a cosine above this to that of its picture was made by the same encoder."""


class LogicRetriever(BaseRetriever):
    """Finds the pictures that satisfy a query, its *and*, *or* and *not* included.

        >>> retriever = LogicRetriever.from_index(index, top_n=5)
        >>> retriever.retrieve("a kitchen but no microwave")

    The words of "no dog" are nearest to dogs, so candidates are fetched by the query's *logic* wherever the vectors of
    the source fit the scorer's encoder: made with `LcseEmbedding`, with the embedding of an `EmbeddingEncoder`, or seen
    to be those of the pictures. Elsewhere they are fetched by words, and the log says once what would help. Each search
    is as deep as the source's `similarity_top_k`. What the source holds as vectors is not encoded again.

    Args:
        source: A retriever over a vector index, a `QueryFusionRetriever` over such, any other retriever; or a
            `qdrant_lcse.LogicSearch` (`AsyncLogicSearch` for `aretrieve` only), which lets the database score.
        scorer: A `LogicScorer`, an encoder or its name. By default that of the source: of the search, or of the
            embedding the index was made with; "starter" if it cannot be told.
        mode: How to score, such as "lcse"; by default as the scorer does.
        top_n: How many nodes to return.
        min_truth: Leave out pictures that satisfy the query less than this.
        candidates: "logic" searches any retriever with the logic's vectors, right only if its index holds vectors of
            the scorer's encoder; "words" leaves the search to the source; "auto" finds out.
        filters: For a `LogicSearch`, the points to look at; a retriever has its own filters.
        search_options: For a `LogicSearch`, more arguments of its `query`, such as `candidates` and `exact`.
        callback_manager: As for any retriever.
        ranking: Other fields of `LogicPostprocessor`, such as `on_missing`, `keep_texts` and `image_access`.

    Raises:
        InvalidOption: something does not go together, or is out of range.
    """

    def __init__(
        self,
        source: BaseRetriever | LogicQueries,
        *,
        scorer: LogicScorer | Encoder | str | None = None,
        mode: Mode | None = None,
        top_n: int = 10,
        min_truth: float | None = None,
        candidates: CandidateSearch = "auto",
        filters: MetadataFilters | None = None,
        search_options: Mapping[str, Any] | None = None,
        callback_manager: CallbackManager | None = None,
        **ranking: Any,
    ) -> None:
        check_choice("candidates", candidates, get_args(CandidateSearch))
        super().__init__(callback_manager=callback_manager)
        self.source, self.candidates = source, candidates
        self._notices = Notices(logger)
        self._database: DatabaseQueries | None = None
        inner: list[BaseRetriever] = []
        if isinstance(source, BaseRetriever):
            if filters is not None or search_options:
                raise InvalidOption("a retriever has its own filters: index.as_retriever(filters=…), or from_index")
            inner = [*_vector_searches(source)]
            scorer = _scorer_of(inner) if scorer is None else scorer
        else:
            self._database = _database(source, scorer, mode)
            known: dict[str, Any] = {"limit": top_n, "min_truth": min_truth}
            known.update({} if filters is None else {"query_filter": _qdrant_filter(filters)})
            options, takes = search_options or {}, self._database.options
            if wrong := [key for key in options if key in known or (takes is not None and key not in takes)]:
                raise InvalidOption(
                    f"search_options has {', '.join(wrong)}; use top_n=, min_truth= and filters=, "
                    f"or what the search takes: {', '.join(sorted(takes or ()))}"
                )
            self._arguments = {**options, **known}
            scorer, mode = self._database.scorer or scorer or "starter", None
        self.postprocessor = LogicPostprocessor(scorer=scorer, mode=mode, top_n=top_n, min_truth=min_truth, **ranking)
        depth = min((search.similarity_top_k for search in inner), default=top_n)  # type: ignore[attr-defined]
        if depth < top_n:
            self._notices.warn(
                "top_n is %d, but the retriever fetches %d candidates a search; use "
                "index.as_retriever(similarity_top_k=100), or LogicRetriever.from_index(index, top_n=…)",
                top_n,
                depth,
            )
        if candidates == "logic" and isinstance(source, BaseRetriever):
            inner = inner or [source]
        self._searches = [_VectorSearch(search, self._fits(search)) for search in inner]

    @classmethod
    def from_index(
        cls,
        index: VectorStoreIndex,
        *,
        top_n: int = 5,
        similarity_top_k: int | None = None,
        filters: MetadataFilters | None = None,
        **options: Any,
    ) -> LogicRetriever:
        """A retriever over an index, a `MultiModalVectorStoreIndex` too, for those nodes that the filters let pass.

        A search fetches `similarity_top_k` candidates: by default ten for each node returned, 100 at least. `options`
        are other arguments of `LogicRetriever`.
        """
        if not isinstance(index, VectorStoreIndex):
            raise InvalidOption(f"from_index takes a VectorStoreIndex, not {type(index).__name__}")
        check_count("top_n", top_n)
        depth = {"similarity_top_k": similarity_top_k or max(100, 10 * top_n)}
        if isinstance(index, MultiModalVectorStoreIndex):
            depth = {"similarity_top_k": top_n, "image_similarity_top_k": depth["similarity_top_k"]}
        return cls(index.as_retriever(**depth, filters=filters), top_n=top_n, **options)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self._database is not None:
            return self._points(self._database.ask(query_bundle.query_str, self._arguments))
        encoded = self.postprocessor.logic_scorer.encode(query_bundle.query_str)
        return run_blocking(self._found(BLOCKING, query_bundle, encoded))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self._database is not None:
            ranking = await self._database.aask(query_bundle.query_str, self._arguments)
            return await asyncio.to_thread(self._points, ranking)
        encoded = await self.postprocessor.logic_scorer.aencode(query_bundle.query_str)
        searched: list[Any] = [search.retriever for search in self._searches]
        if all(map(only_computes, searched or [self.source])):
            return await asyncio.to_thread(run_blocking, self._found(BLOCKING, query_bundle, encoded))
        return await self._found(AWAITING, query_bundle, encoded)

    async def _found(self, way: Way, query_bundle: QueryBundle, encoded: EncodedQuery) -> list[NodeWithScore]:
        """By words, unless all of the source is searched by logic; then by logic what fits; ranked together."""
        post, source = self.postprocessor, self.source
        assert isinstance(source, BaseRetriever)
        all_fits = [search.retriever for search in self._searches if search.fits] == [source]
        by_words = await way.retrieve([] if all_fits else [(source, replace(query_bundle, embedding=None))])
        for search in self._searches:
            if search.fits is None:
                nodes = _distinct(by_words)
                stored = await post._stored_vectors(way, nodes, search.stores)
                search.fits = await way.run(self._compare, nodes, stored or {})
        fitting = [search for search in self._searches if search.fits]
        if not fitting and any(by_words) and self.candidates == "auto":
            self._tell_misfit()
        vectors = encoded.plan.search_vectors.tolist() if fitting else []
        by_logic = await way.retrieve(
            [(search.retriever, replace(query_bundle, embedding=vector)) for search in fitting for vector in vectors]
        )
        stores = [store for search in self._searches for store in search.stores]
        nodes = _distinct([*by_logic, *by_words])
        return await post._rerank(way, nodes, query_bundle, encoded, "logic" if fitting else None, stores)

    def _fits(self, search: BaseRetriever) -> bool | None:
        """Whether an index holds vectors of the scorer's encoder; None if only a look at them can tell."""
        if self.candidates != "auto":
            return self.candidates == "logic"
        return embedding_name(getattr(search, "_embed_model", None)) == self._encoder.encoder_id or None

    def _compare(self, nodes: Sequence[NodeWithScore], stored: Mapping[str, Any]) -> bool | None:
        """Whether stored vectors are those of the pictures by the scorer's encoder; None if none can be compared."""
        access = self.postprocessor.image_access
        places = {one.node_id: place for one in nodes if (place := picture_of(one.node, access)) is not None}
        known = {key: usable_vector(stored.get(key), self._encoder.dimension) for key in places if key in stored}
        if known and all(vector is None for vector in known.values()):
            return False
        compared = {key: vector for key, vector in list(known.items())[:3] if vector is not None}
        made = self.postprocessor._cache.vectors_at([places[key] for key in compared], access=access)
        cosines = [
            float(vector @ own / (vector @ vector) ** 0.5)
            for vector, own in zip(compared.values(), made, strict=True)
            if not isinstance(own, LcseError)
        ]
        return all(cosine > SAME_PICTURE for cosine in cosines) if cosines else None

    def _tell_misfit(self) -> None:
        models = {embedding_name(getattr(search.retriever, "_embed_model", None)) for search in self._searches}
        self._notices.warn(
            "candidates are fetched by the words of the query, which favours what it excludes: %s searches vectors "
            "of %s, and the scorer's encoder is %s. Build the index with embed_model=LcseEmbedding(…) of that encoder, "
            "pass scorer=EmbeddingEncoder(…) of the index's embedding, or candidates='logic' if you know that they fit",
            type(self.source).__name__,
            ", ".join(sorted(models)) or "an unknown model",
            self._encoder.encoder_id,
        )

    @property
    def _encoder(self) -> Encoder:
        return self.postprocessor.logic_scorer.encoder

    def _points(self, ranking: Ranking) -> list[NodeWithScore]:
        """The nodes of a database's ranking, without those whose vectors are of texts."""
        access, check = self.postprocessor.image_access, self.postprocessor._check
        found = [(node_of(result, access), result) for result in ranking]
        wrong: Sequence[int] = ()
        if check is not None and self._database is not None and self._database.scorer is not None:
            wrong = check.find_text_vectors(
                [stored_result(node, result.candidate.vector, picture_of(node, access)) for node, result in found]
            )
        describe = ResultDescriber(ranking, fetched="logic")
        return [
            packed(node, result.score, describe.ranked(result, str(result.id)))
            for place, (node, result) in enumerate(found)
            if place not in wrong
        ]


@dataclass
class _VectorSearch:
    """A retriever that can be given a vector; `fits` tells whether its index holds vectors of the scorer's encoder."""

    retriever: BaseRetriever
    fits: bool | None

    @property
    def stores(self) -> list[BasePydanticVectorStore]:
        """The store that holds the vectors, if it is known."""
        store = getattr(self.retriever, "_vector_store", None)
        return [store] if isinstance(store, BasePydanticVectorStore) else []


def _vector_searches(retriever: BaseRetriever) -> list[VectorIndexRetriever]:
    """The searches in vector indexes that a retriever is made of."""
    match retriever:
        case MultiModalVectorIndexRetriever() if not retriever._index.is_image_vector_store_empty:
            return [_image_search(retriever)]
        case VectorIndexRetriever() if retriever._needs_embedding():
            return [retriever]
        case QueryFusionRetriever():
            return [search for inner in retriever._retrievers for search in _vector_searches(inner)]
    return []


def _image_search(whole: MultiModalVectorIndexRetriever) -> VectorIndexRetriever:
    """The search for images of a multi-modal retriever, which itself replaces an embedding that it is given."""
    search = VectorIndexRetriever(
        whole._index,
        similarity_top_k=whole.image_similarity_top_k,
        embed_model=whole._image_embed_model,
        filters=whole._filters,
        node_ids=whole._node_ids,
        doc_ids=whole._doc_ids,
        callback_manager=whole.callback_manager,
        vector_store_kwargs=whole._kwargs,
    )
    search._vector_store = whole._image_vector_store
    return search


def _scorer_of(searches: Sequence[Any]) -> LogicScorer | Encoder | str:
    """The scorer of the embedding that an index was made with."""
    for model in (search._embed_model for search in searches):
        if isinstance(model, LcseEmbedding):
            return model.scorer
        if isinstance(model, MultiModalEmbedding):
            return EmbeddingEncoder(model)
    return "starter"


def _database(source: LogicQueries, scorer: LogicScorer | Encoder | str | None, mode: Mode | None) -> DatabaseQueries:
    if not isinstance(source, LogicQueries):
        raise InvalidOption(
            "a source is a retriever, such as index.as_retriever(similarity_top_k=100), or a LogicSearch, "
            f"not {type(source).__name__}; LogicRetriever.from_index takes an index"
        )
    database = DatabaseQueries(source, blocking="retrieve", awaited="aretrieve")
    if database.scorer is not None and (mode or (scorer is not None and scorer is not database.scorer)):
        raise InvalidOption("the search scores: give scorer= and mode= to it, LogicSearch(client, name, scorer)")
    return database


def _distinct(found: Sequence[Sequence[NodeWithScore]]) -> list[NodeWithScore]:
    kept: dict[str, NodeWithScore] = {}
    for retrieved in chain.from_iterable(found):
        kept.setdefault(retrieved.node_id, retrieved)
    return list(kept.values())


def _qdrant_filter(filters: MetadataFilters) -> models.Filter:
    """The filter that Qdrant applies; keys are those of the payload, dots lead into records."""
    from qdrant_client import models

    conditions = [
        _qdrant_filter(one) if isinstance(one, MetadataFilters) else _condition(one, models) for one in filters.filters
    ]
    match filters.condition:
        case "or":
            return models.Filter(should=conditions)
        case "not":
            return models.Filter(must_not=conditions)
    return models.Filter(must=conditions)


def _condition(one: MetadataFilter, models: Any) -> Any:
    value, values = one.value, one.value if isinstance(one.value, list) else [one.value]
    ranges = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}

    def field(**test: Any) -> Any:
        return models.FieldCondition(key=one.key, **test)

    match one.operator.value:
        case "==" if isinstance(value, float):
            return field(range=models.Range(gte=value, lte=value))
        case "==" | "contains":
            return field(match=models.MatchValue(value=value))
        case "in" | "any":
            return field(match=models.MatchAny(any=values))
        case "!=" | "nin":
            return models.Filter(must_not=[field(match=models.MatchAny(any=values))])
        case "all":
            return models.Filter(must=[field(match=models.MatchValue(value=each)) for each in values])
        case "text_match" | "text_match_insensitive":
            return field(match=models.MatchText(text=str(value)))
        case "is_empty":
            return models.IsEmptyCondition(is_empty=models.PayloadField(key=one.key))
        case sign if sign in ranges:
            return field(range=models.Range(**{ranges[sign]: value}))
    raise InvalidOption(f"Qdrant has no counterpart of the filter operator {one.operator!r}")
