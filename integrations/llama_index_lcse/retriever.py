"""`LogicRetriever`: fetches candidates by what the query says, not by its words, and ranks them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, TypeAlias, get_args

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.embeddings import MultiModalEmbedding
from llama_index.core.indices import MultiModalVectorStoreIndex, VectorStoreIndex
from llama_index.core.indices.multi_modal.retriever import MultiModalVectorIndexRetriever
from llama_index.core.indices.vector_store.retrievers import VectorIndexRetriever
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import BasePydanticVectorStore, MetadataFilters

from lcse_plugins.encoders.protocol import Encoder
from lcse_plugins.errors import InvalidOption, LcseError
from lcse_plugins.hosts.logic_queries import DatabaseQueries, LogicQueries
from lcse_plugins.hosts.notices import Notices
from lcse_plugins.hosts.reranking import usable_vector
from lcse_plugins.hosts.result_metadata import ResultDescriber
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.arguments import check_limits
from lcse_plugins.scoring.config import Mode
from lcse_plugins.scoring.results import Ranking
from llama_index_lcse.database import node_of, qdrant_filter
from llama_index_lcse.embedding import EmbeddingEncoder, LcseEmbedding, embedding_name
from llama_index_lcse.nodes import packed, picture_of, stored_result
from llama_index_lcse.postprocessor import LogicPostprocessor
from llama_index_lcse.two_ways import AWAITING, BLOCKING, Way, run_blocking

__all__ = ["CandidateSearch", "LogicRetriever"]

logger = logging.getLogger(__name__)

CandidateSearch: TypeAlias = Literal["auto", "logic", "words"]
"""How candidates are fetched; see `LogicRetriever`."""

SAME_PICTURE = 0.99
"""A stored vector with a cosine above this to that of its picture was made by the same encoder."""

_Nodes: TypeAlias = list[NodeWithScore]


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
        if candidates not in get_args(CandidateSearch):
            raise InvalidOption(f"candidates is one of {', '.join(get_args(CandidateSearch))}, not {candidates!r}")
        check_limits(top_n, min_truth, name="top_n")
        super().__init__(callback_manager=callback_manager)
        self.source, self.candidates = source, candidates
        self._notices = Notices(logger)
        self._queries: DatabaseQueries | None = None
        self._leaves: list[_VectorSearch] = []
        if isinstance(source, BaseRetriever):
            if filters is not None or search_options:
                raise InvalidOption("a retriever has its own filters: index.as_retriever(filters=…), or from_index")
            self._leaves = _vector_searches(source)
            scorer = _scorer_of(self._leaves) if scorer is None else scorer
        else:
            self._queries, options = _database(source, scorer, mode, filters, search_options or {})
            self._arguments = {**options, "limit": top_n, "min_truth": min_truth}
            scorer, mode = self._queries.scorer or scorer or "starter", None
        self.postprocessor = LogicPostprocessor(scorer=scorer, mode=mode, top_n=top_n, min_truth=min_truth, **ranking)
        depth = min((leaf.depth for leaf in self._leaves), default=top_n)
        if depth < top_n:
            self._notices.warn(
                "top_n is %d, but the retriever fetches %d candidates a search; use "
                "index.as_retriever(similarity_top_k=100), or LogicRetriever.from_index(index, top_n=…)",
                top_n,
                depth,
            )

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
        check_limits(top_n, None, name="top_n")
        depth = {"similarity_top_k": similarity_top_k or max(100, 10 * top_n)}
        if isinstance(index, MultiModalVectorStoreIndex):
            depth = {"similarity_top_k": top_n, "image_similarity_top_k": depth["similarity_top_k"]}
        return cls(index.as_retriever(**depth, filters=filters), top_n=top_n, **options)

    def _get_prompt_modules(self) -> PromptMixinType:
        inner = {"source": self.source} if isinstance(self.source, BaseRetriever) else {}
        return {**inner, **self.postprocessor._get_prompt_modules()}

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self._queries is not None:
            return self._points(self._queries.ask(query_bundle.query_str, self._arguments))
        return run_blocking(self._found(BLOCKING, query_bundle))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self._queries is not None:
            ranking = await self._queries.aask(query_bundle.query_str, self._arguments)
            return await asyncio.to_thread(self._points, ranking)
        return await self._found(AWAITING, query_bundle)

    async def _found(self, way: Way, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """By words unless all of the source is searched by logic, then by logic what fits; ranked together."""
        post, source = self.postprocessor, self.source
        assert isinstance(source, BaseRetriever)
        encoded = await way.encode(post.logic_scorer, query_bundle.query_str)
        whole = len(self._leaves) == 1 and self._leaves[0].retriever is source
        fits = self.candidates == "auto" and whole and self._leaves[0].fits(self._encoder) is True
        words = [] if fits or self.candidates == "logic" else [(source, replace(query_bundle))]
        by_words = await way.retrieve(words)
        found = _distinct(by_words)
        known = [await post.stored_vectors(way, found, leaf.stores) for leaf in self._unknown()]
        fitting = await way.run(self._fitting, found, known)
        vectors = [vector.tolist() for vector in encoded.plan.search_vectors if vector.any()] if fitting else []
        by_logic = await way.retrieve(
            [(leaf.by_embedding(), replace(query_bundle, embedding=vector)) for leaf in fitting for vector in vectors]
        )
        texts = await way.retrieve([(half, query_bundle) for leaf in fitting for half in leaf.texts()])
        ids = {one.node_id for nodes in by_logic for one in nodes} if fitting else None
        nodes = _distinct([*by_logic, *by_words, *texts])
        return await post.rerank(
            way, nodes, query_bundle, encoded, ids, [s for leaf in self._leaves for s in leaf.stores]
        )

    def _unknown(self) -> list[_VectorSearch]:
        """Searches of which only their vectors can tell whether they fit."""
        return [leaf for leaf in self._leaves if self.candidates == "auto" and leaf.fits(self._encoder) is None]

    def _fitting(self, by_words: _Nodes, known: Sequence[Mapping[str, Any] | None]) -> list[_VectorSearch]:
        """The searches to be made by logic; the log tells once why there is none."""
        if self.candidates == "words":
            return []
        if self.candidates == "logic":
            return self._leaves or [_VectorSearch(self.source)]  # type: ignore[arg-type]
        for leaf, stored in zip(self._unknown(), known, strict=True):
            leaf.verdict = self._compare(by_words, stored or {})
        fitting = [leaf for leaf in self._leaves if leaf.fits(self._encoder)]
        if not fitting and by_words:
            made_with = ", ".join(sorted({embedding_name(leaf.model) for leaf in self._leaves})) or "unknown vectors"
            self._notices.warn(
                "candidates are fetched by the words of the query, which favours what it excludes: %s searches %s, and "
                "the scorer's encoder is %s. Build the index with embed_model=LcseEmbedding(…) of that encoder, pass "
                "scorer=EmbeddingEncoder(…) of the index's embedding, or candidates='logic' if you know that they fit",
                type(self.source).__name__,
                made_with,
                self._encoder.encoder_id,
            )
        return fitting

    def _compare(self, nodes: _Nodes, stored: Mapping[str, Any]) -> bool | None:
        """Whether stored vectors are those of the pictures by the scorer's encoder; None if none can be compared."""
        post = self.postprocessor
        places = {one.node_id: place for one in nodes if (place := picture_of(one.node, post.image_access)) is not None}
        known = {key: usable_vector(stored.get(key), self._encoder.dimension) for key in places if key in stored}
        if known and all(vector is None for vector in known.values()):
            return False
        compared = {key: vector for key, vector in list(known.items())[:3] if vector is not None}
        made = post.image_cache.vectors_at([places[key] for key in compared], access=post.image_access)
        cosines = [
            float(vector @ own / (vector @ vector) ** 0.5)
            for vector, own in zip(compared.values(), made, strict=True)
            if not isinstance(own, LcseError)
        ]
        return all(cosine > SAME_PICTURE for cosine in cosines) if cosines else None

    @property
    def _encoder(self) -> Encoder:
        return self.postprocessor.logic_scorer.encoder

    def _points(self, ranking: Ranking) -> list[NodeWithScore]:
        """The nodes of a database's ranking, without those whose vectors are of texts."""
        access, check = self.postprocessor.image_access, self.postprocessor.text_vector_check
        nodes = [node_of(result, access) for result in ranking]
        wrong: Sequence[int] = ()
        if check is not None and self._queries is not None and self._queries.scorer is not None:
            pairs = zip(nodes, ranking, strict=True)
            wrong = check.find_text_vectors(
                [stored_result(node, result.candidate.vector, picture_of(node, access)) for node, result in pairs]
            )
        describe = ResultDescriber(ranking, fetched="logic")
        return [
            packed(node, result.score, describe.ranked(result, str(result.id)))
            for place, (node, result) in enumerate(zip(nodes, ranking, strict=True))
            if place not in wrong
        ]


@dataclass
class _VectorSearch:
    """A retriever that searches one vector index, and what is known of the vectors in it."""

    retriever: BaseRetriever
    verdict: bool | None = None

    @property
    def model(self) -> Any:
        """The embedding that the index is searched with."""
        return getattr(self.retriever, "_image_embed_model", getattr(self.retriever, "_embed_model", None))

    @property
    def stores(self) -> list[BasePydanticVectorStore]:
        """The store that holds the vectors, if it is known."""
        store = getattr(self.retriever, "_image_vector_store", getattr(self.retriever, "_vector_store", None))
        return [store] if isinstance(store, BasePydanticVectorStore) else []

    @property
    def depth(self) -> int:
        images: int | None = getattr(self.retriever, "image_similarity_top_k", None)
        return images or self.retriever.similarity_top_k  # type: ignore[attr-defined]

    def fits(self, encoder: Encoder) -> bool | None:
        """Whether the index holds vectors of an encoder; None if only a look at them can tell."""
        if self.verdict is None and embedding_name(self.model) == encoder.encoder_id:
            self.verdict = True
        return self.verdict

    def by_embedding(self) -> BaseRetriever:
        """A retriever that searches with the embedding of a query bundle."""
        return _Half(self.retriever) if isinstance(self.retriever, MultiModalVectorIndexRetriever) else self.retriever

    def texts(self) -> list[BaseRetriever]:
        """The text half of a multi-modal index, searched by words."""
        whole = self.retriever
        return [_Half(whole, texts=True)] if isinstance(whole, MultiModalVectorIndexRetriever) else []


class _Half(BaseRetriever):
    """One half of a multi-modal retriever: texts by words, or images with a given embedding, which it would replace."""

    def __init__(self, whole: MultiModalVectorIndexRetriever, *, texts: bool = False) -> None:
        super().__init__(callback_manager=whole.callback_manager)
        self.whole, self.of_texts = whole, texts

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self.of_texts:
            return self.whole.text_retrieve(replace(query_bundle, embedding=None))
        empty = self.whole._index.is_image_vector_store_empty
        return [] if empty else self.whole._get_nodes_with_embeddings(query_bundle, *self._searched())

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self.of_texts:
            return await self.whole.atext_retrieve(replace(query_bundle, embedding=None))
        empty = self.whole._index.is_image_vector_store_empty
        return [] if empty else await self.whole._aget_nodes_with_embeddings(query_bundle, *self._searched())

    def _searched(self) -> tuple[int, BasePydanticVectorStore]:
        return self.whole.image_similarity_top_k, self.whole._image_vector_store


def _vector_searches(retriever: BaseRetriever) -> list[_VectorSearch]:
    """The searches in vector indexes that a retriever is made of."""
    match retriever:
        case MultiModalVectorIndexRetriever():
            return [_VectorSearch(retriever)]
        case VectorIndexRetriever() if retriever._needs_embedding():
            return [_VectorSearch(retriever)]
        case QueryFusionRetriever():
            return [search for inner in retriever._retrievers for search in _vector_searches(inner)]
    return []


def _scorer_of(leaves: Sequence[_VectorSearch]) -> LogicScorer | Encoder | str:
    """The scorer of the embedding that an index was made with."""
    for leaf in leaves:
        if isinstance(leaf.model, LcseEmbedding):
            return leaf.model.scorer
        if isinstance(leaf.model, MultiModalEmbedding):
            return EmbeddingEncoder(leaf.model)
    return "starter"


def _database(
    search: LogicQueries,
    scorer: LogicScorer | Encoder | str | None,
    mode: Mode | None,
    filters: MetadataFilters | None,
    options: Mapping[str, Any],
) -> tuple[DatabaseQueries, dict[str, Any]]:
    """The search, and more arguments of its queries."""
    if not isinstance(search, LogicQueries):
        raise InvalidOption(
            "a source is a retriever, such as index.as_retriever(similarity_top_k=100), or a LogicSearch, "
            f"not {type(search).__name__}; LogicRetriever.from_index takes an index"
        )
    queries = DatabaseQueries(search, blocking="retrieve", awaited="aretrieve")
    if queries.scorer is not None and (mode or (scorer is not None and scorer is not queries.scorer)):
        raise InvalidOption("the search scores: give scorer= and mode= to it, LogicSearch(client, name, scorer)")
    for name in ("limit", "min_truth"):
        if name in options:
            raise InvalidOption(f"{name} is not a search option; use {'top_n' if name == 'limit' else name}= instead")
    unknown = [] if queries.options is None else sorted(set(options) - queries.options)
    if unknown:
        raise InvalidOption(f"the search does not take {', '.join(unknown)}; it takes {', '.join(queries.named)}")
    if filters is None:
        return queries, dict(options)
    if options.get("query_filter") is not None:
        raise InvalidOption("filters and search_options['query_filter'] are two filters; give one")
    return queries, {**options, "query_filter": qdrant_filter(filters)}


def _distinct(found: Sequence[_Nodes]) -> list[NodeWithScore]:
    kept: dict[str, NodeWithScore] = {}
    for retrieved in chain.from_iterable(found):
        kept.setdefault(retrieved.node_id, retrieved)
    return list(kept.values())
