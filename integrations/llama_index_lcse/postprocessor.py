"""`LogicPostprocessor`: reorders retrieved image nodes by what the query says, operators included."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import llama_index.core.instrumentation as instrument
from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr, model_validator
from llama_index.core.callbacks import CBEventType, EventPayload
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import ImageNode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from pydantic import BeforeValidator, SkipValidation

from lcse_plugins.errors import InvalidOption, QueryError
from lcse_plugins.hosts.checked_options import CheckedOptions, OptionalCount
from lcse_plugins.hosts.notices import Notices
from lcse_plugins.hosts.reranking import OnMissing, rerank
from lcse_plugins.hosts.result_metadata import Fetched, ResultDescriber, fetched_by
from lcse_plugins.hosts.text_vectors import TextVectorCheck
from lcse_plugins.images.cache import ImageVectorCache
from lcse_plugins.images.locations import DEFAULT_ACCESS, ImageAccess
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.config import Mode
from lcse_plugins.scoring.encoded import EncodedQuery
from llama_index_lcse.embedding import ScorerField
from llama_index_lcse.nodes import image_vectors, packed, picture_of, stored_result
from llama_index_lcse.two_ways import AWAITING, BLOCKING, VectorLookup, Way, run_blocking

__all__ = ["LogicPostprocessor"]

logger = logging.getLogger(__name__)
dispatcher = instrument.get_dispatcher(__name__)  # type: ignore[attr-defined]  # exported, but not explicitly

ADVICE = (
    "embed the pictures: IngestionPipeline(transformations=[LcseEmbedding()]) does, and a MultiModalVectorStoreIndex "
    "with image_embed_model=LcseEmbedding()"
)


def _checked_store(store: Any) -> Any:
    if store is None or callable(store) or isinstance(store, BasePydanticVectorStore):
        return store
    raise InvalidOption(
        "vectors are looked up in a vector store, or by a function from node ids to vectors, "
        f"not in {type(store).__name__}; of an index, pass index.vector_store"
    )


class LogicPostprocessor(CheckedOptions, BaseNodePostprocessor):
    """Ranks image nodes by how well they satisfy the query, its *and*, *or* and *not* included.

        >>> reranker = LogicPostprocessor(top_n=5, vector_store=index.vector_store)
        >>> engine = index.as_query_engine(similarity_top_k=100, node_postprocessors=[reranker])

    Results are new nodes. `metadata["lcse"]` of each picture says why it stands where it does
    (`lcse_plugins.hosts.result_metadata.ResultMetadata`), and is kept out of the text for LLMs and embeddings.
    Scores are not cosines: for a threshold use `min_truth`.

    It can only order what was fetched, and the words of "no dog" fetch dogs: prefer `LogicRetriever`, which fetches by
    logic. Retrieved nodes seldom carry their embeddings; `vector_store` says where they are, else pictures are encoded
    anew. Called without a query it raises `QueryError`; arguments out of range raise `InvalidOption`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    top_n: OptionalCount = Field(default=None, description="Most nodes returned; None returns all.")
    scorer: ScorerField = Field(
        default="starter",
        frozen=True,
        description="A LogicScorer, which holds encoder, parser, calibration and mode; or an encoder, or its name.",
    )
    mode: Mode | None = Field(
        default=None, frozen=True, description="How to score, such as 'lcse'; by default as the scorer does."
    )
    min_truth: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Leave out pictures that satisfy the query less than this, or that cannot be read.",
    )
    on_missing: OnMissing = Field(
        default="keep_last",
        description="What becomes of nodes without a readable picture: they follow the pictures, with lower scores; "
        "they are left out ('drop'); or the error is raised ('raise'). The log tells of pictures among them.",
    )
    keep_texts: int = Field(
        default=0, ge=0, description="How many of the top_n places are kept for nodes that have no picture."
    )
    check_vectors: bool = Field(
        default=True, frozen=True, description="Notice vectors that were made of a text instead of the picture."
    )
    image_access: ImageAccess = Field(
        default=DEFAULT_ACCESS, frozen=True, description="Where pictures may be read from: a root, URLs or not, limits."
    )
    vector_store: Annotated[VectorLookup | None, SkipValidation, BeforeValidator(_checked_store)] = Field(
        default=None,
        exclude=True,
        description="Where the vectors of nodes that carry none are looked up: a vector store, or a function from "
        "node ids to vectors. It is not saved.",
    )
    _scorer: LogicScorer = PrivateAttr()
    _cache: ImageVectorCache = PrivateAttr()
    _check: TextVectorCheck | None = PrivateAttr(default=None)
    _notices: Notices = PrivateAttr(default_factory=lambda: Notices(logger))

    @model_validator(mode="after")
    def _made(self) -> LogicPostprocessor:
        if self.top_n is not None and self.keep_texts >= self.top_n:
            raise InvalidOption(f"keep_texts is less than top_n, {self.top_n}, not {self.keep_texts}")
        self._scorer = LogicScorer.of(self.scorer, mode=self.mode)
        self._cache = ImageVectorCache(self._scorer.encoder)
        if self.check_vectors:
            self._check = TextVectorCheck(self._cache, access=self.image_access, advice=ADVICE)
        return self

    @classmethod
    def class_name(cls) -> str:
        """Name under which the component is written."""
        return "LogicPostprocessor"

    @property
    def logic_scorer(self) -> LogicScorer:
        """The scorer in use, made of `scorer` and `mode`."""
        return self._scorer

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return run_blocking(self._rerank(BLOCKING, nodes, query_bundle))

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return await self._rerank(AWAITING, nodes, query_bundle)

    async def _rerank(
        self,
        way: Way,
        nodes: Sequence[NodeWithScore],
        query_bundle: QueryBundle | None,
        encoded: EncodedQuery | None = None,
        fetched: Fetched | None = None,
        stores: Sequence[VectorLookup] = (),
    ) -> list[NodeWithScore]:
        """The nodes in order. A retriever has encoded the query, and knows how and where they were fetched."""
        with self._announced(nodes, query_bundle) as (text, returned):
            if nodes:
                asked = encoded or await way.encode(self._scorer, text)
                stored = await self._stored_vectors(way, nodes, stores)
                returned.extend(await way.run(self._ranked, nodes, stored, asked, fetched))
        return returned

    async def _stored_vectors(
        self, way: Way, nodes: Sequence[NodeWithScore], stores: Sequence[VectorLookup]
    ) -> dict[str, Any] | None:
        """What stores hold for the nodes that carry no vector themselves; None if there is no store to ask."""
        found: dict[str, Any] = {}
        bare = list(dict.fromkeys(one.node_id for one in nodes if one.node.embedding is None))
        asked = stores if self.vector_store is None else [self.vector_store]
        for store in asked if bare else ():
            try:
                found.update(await way.look_up(store, bare))
            except InvalidOption as error:
                if store is self.vector_store:  # the user named it
                    raise
                self._notices.warn("vectors cannot be read from the index, so pictures are encoded again: %s", error)
        return found if asked else None

    @contextmanager
    def _announced(
        self, nodes: Sequence[NodeWithScore], query_bundle: QueryBundle | None
    ) -> Iterator[tuple[str, list[NodeWithScore]]]:
        """The query's text and a list to fill, between the events that tell of a start and, come what may, an end."""
        returned: list[NodeWithScore] = []
        top_n, model = self.top_n or len(nodes), self._scorer.encoder.encoder_id
        dispatcher.event(ReRankStartEvent(query=query_bundle, nodes=list(nodes), top_n=top_n, model_name=model))
        payload: dict[str, Any] = {
            EventPayload.NODES: nodes,
            EventPayload.MODEL_NAME: model,
            EventPayload.QUERY_STR: query_bundle.query_str if query_bundle else None,
            EventPayload.TOP_K: top_n,
        }
        try:
            with self.callback_manager.event(CBEventType.RERANKING, payload=payload) as event:
                if query_bundle is None:
                    raise QueryError("ranking needs a query; pass query_str= or query_bundle=")
                yield query_bundle.query_str, returned
                event.on_end(payload={EventPayload.NODES: returned})
        finally:
            dispatcher.event(ReRankEndEvent(nodes=returned))

    def _ranked(
        self,
        nodes: Sequence[NodeWithScore],
        stored: Mapping[str, Any] | None,
        encoded: EncodedQuery,
        fetched: Fetched | None,
    ) -> list[NodeWithScore]:
        bare = [retrieved.node for retrieved in nodes]
        places = [picture_of(node, self.image_access) for node in bare]
        pictures = {i for i, node in enumerate(bare) if places[i] is not None or isinstance(node, ImageNode)}
        vectors, read = image_vectors(bare, places, cache=self._cache, access=self.image_access, stored=stored or {})
        if read and stored is None:
            self._notices.warn(
                "%d pictures were read and encoded, since the nodes came without vectors; those of the index are used "
                "by LogicRetriever.from_index(index), or with vector_store=index.vector_store",
                read,
            )
        outcome = rerank(
            encoded,
            range(len(nodes)),
            vectors,
            is_picture=pictures.__contains__,
            limit=self.top_n,
            min_truth=self.min_truth,
            on_missing=self.on_missing,
            keep_texts=self.keep_texts,
            check=self._check,
            stored=lambda i, vector: stored_result(bare[i], vector, places[i]),
        )
        by = fetched or fetched_by([bare[i].metadata for i in pictures], encoded.parse.text)
        told = ResultDescriber(outcome.ranking, fetched=by)
        results = []
        for result in outcome.ranking:
            node = bare[result.candidate.payload]
            results.append(packed(node, result.score, told.ranked(result, node.node_id)))
        for rest in outcome.unranked:
            node, score = bare[rest.found], rest.score if outcome.ranking else nodes[rest.found].score
            is_text = rest.found not in pictures  # and stays the same text to whatever fuses results by their hash
            kept = NodeWithScore(node=node, score=score)
            results.append(kept if is_text else packed(node, score, told.missing(rest.fault, node.node_id)))
        return results
