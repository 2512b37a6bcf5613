"""`LogicPostprocessor`: reorders retrieved image nodes by what the query says, operators included."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import llama_index.core.instrumentation as instrument
from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr, model_validator
from llama_index.core.callbacks import CBEventType, EventPayload
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts.mixin import PromptMixin, PromptMixinType
from llama_index.core.schema import NodeWithScore, QueryBundle

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.encoders.registry import load_encoder
from lcse_plugins.errors import ImageError, QueryError
from lcse_plugins.hosts.checked_options import CheckedOptions, Count, OptionalCount
from lcse_plugins.hosts.made_once import MadeOnce
from lcse_plugins.hosts.reranking import OnMissing
from lcse_plugins.hosts.text_vectors import TextVectorCheck
from lcse_plugins.images.cache import ImageVectorCache
from lcse_plugins.images.locations import DEFAULT_ACCESS
from lcse_plugins.off_loop import compute
from lcse_plugins.parsing.grammar import parse
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.config import DEFAULT_CONFIG
from lcse_plugins.scoring.encoded import EncodedQuery
from llama_index_lcse.fields import (
    AccessField,
    CalibrationField,
    ConfigField,
    EncoderField,
    ParserField,
    StoreField,
    encoder_name,
    without_class_name,
)
from llama_index_lcse.node_images import VectorLookup, alook_up, look_up, node_vectors, without_vector
from llama_index_lcse.node_ranking import rank_nodes

__all__ = ["LogicPostprocessor"]

VECTORS_OF_PICTURES = (
    "build a MultiModalVectorStoreIndex with image_embed_model=EncoderEmbedding(), or give image nodes the embeddings "
    "of their pictures"
)

dispatcher = instrument.get_dispatcher(__name__)  # type: ignore[attr-defined]  # exported, but not explicitly


@dataclass(frozen=True)
class _Engine:
    scorer: LogicScorer
    cache: ImageVectorCache
    check: TextVectorCheck


class LogicPostprocessor(CheckedOptions, BaseNodePostprocessor, PromptMixin):
    """Ranks image nodes by LCSE: the similarity to the query, edited by its logic.

        >>> reranker = LogicPostprocessor(top_n=5)
        >>> engine = index.as_query_engine(similarity_top_k=100, node_postprocessors=[reranker])

    Results are new nodes; those given stay as they are. `metadata["lcse"]` of each says why it stands where it does
    (an `Account` of `lcse_plugins.hosts.result_metadata`; a node that could not be ranked says why under `missing`) and is
    kept out of the text for LLMs and embeddings, and out of the hash by which results are fused. Nodes given twice
    are ranked twice. The scores nodes come with are not used: they may be missing or NaN. Scores are no cosines: for a
    threshold use `min_truth`.

    Retrieved nodes seldom carry their embeddings, and without one a picture is encoded anew. Where the index holds
    vectors of the pictures, `vector_store=index.vector_store` looks them up there; `LogicRetriever` does so itself.

    Called without a query it raises `QueryError`; arguments out of range raise `InvalidOption`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    top_n: OptionalCount = Field(default=None, description="Most nodes returned; None returns all.")
    encoder: EncoderField = Field(
        default="starter", description="Encoder of the image vectors: its name, which can be saved, or an object."
    )
    parser: ParserField = Field(
        default="grammar", description="'grammar', the offline one, or any parser, such as a LlamaIndexParser."
    )
    calibration: CalibrationField | None = Field(
        default=None, description="μ and β, or the file `lcse calibrate` wrote; None for the encoder's preset."
    )
    config: ConfigField = Field(
        default=DEFAULT_CONFIG, description="Mode, aggregation, and which text gives the ordinary similarity."
    )
    min_truth: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Leave out images for which the query holds less than this, or which cannot be read.",
    )
    keep_retrieval_score: bool = Field(
        default=False, description='Keep the incoming score in metadata["retrieval_score"].'
    )
    batch_size: Count = Field(default=32, description="Images decoded and encoded at a time.")
    on_missing: OnMissing = Field(
        default="keep_last",
        description="What becomes of nodes without a readable image: they follow the images, in the order and with "
        "the scores they came with; they are left out; or the error is raised. The log tells of images among them.",
    )
    image_access: AccessField = Field(
        default=DEFAULT_ACCESS, description="Where pictures may be read from: a root for paths, URLs or not, limits."
    )
    vector_store: StoreField = Field(
        default=None,
        exclude=True,
        description="Where the vectors of nodes that carry none are looked up: a vector store, or a function from "
        "node ids to vectors. It is not saved.",
    )
    _engine: MadeOnce[_Engine] = PrivateAttr(default_factory=MadeOnce)

    @model_validator(mode="before")
    @classmethod
    def _fields_of(cls, written: Any) -> Any:
        return without_class_name(written, cls.class_name())

    @classmethod
    def class_name(cls) -> str:
        """Name under which the component is written."""
        return "LogicPostprocessor"

    @property
    def scorer(self) -> LogicScorer:
        """The scorer of the current fields; it is made, and the encoder loaded, on first use."""
        return self._made().scorer

    def _made(self) -> _Engine:
        def make() -> _Engine:
            encoder = load_encoder(self.encoder)
            parser = parse if self.parser == "grammar" else self.parser
            scorer = LogicScorer(encoder, parser=parser, calibration=self.calibration, config=self.config)
            cache = ImageVectorCache(encoder, batch_size=self.batch_size)
            check = TextVectorCheck(cache, access=self.image_access, advice=VECTORS_OF_PICTURES)
            return _Engine(scorer, cache, check)

        made_of = (self.encoder, self.parser, self.calibration, self.config, self.batch_size, self.image_access)
        return self._engine.get(made_of, make)

    def _get_prompt_modules(self) -> PromptMixinType:
        prompted = _prompted(self.parser)
        return {} if prompted is None else {"parser": prompted}

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return self.rerank(nodes, query_bundle)

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return await self.arerank(nodes, query_bundle)

    async def aencode(self, text: str) -> EncodedQuery:
        """The query, read and encoded; the encoder is loaded and run off the event loop."""
        return await (await asyncio.to_thread(self._made)).scorer.aencode(text)

    def rerank(
        self,
        nodes: Sequence[NodeWithScore],
        query_bundle: QueryBundle | None,
        encoded: EncodedQuery | None = None,
        *,
        by_logic: Collection[str] | None = None,
        store: VectorLookup | None = None,
    ) -> list[NodeWithScore]:
        """The nodes in order; `postprocess_nodes` for a retriever that knows more of the query and the nodes.

        Args:
            nodes: What was retrieved.
            query_bundle: What was asked for.
            encoded: The query, if it has been encoded.
            by_logic: Ids of those that were fetched by the query's logic; None for what they say of it themselves.
            store: Where they came from, to look up vectors if the postprocessor has no store of its own.
        """
        with self._reranking(nodes, query_bundle) as (text, returned):
            if nodes:
                asked = encoded or self.scorer.encode(text)
                vectors = self._vectors(nodes, self._stored(nodes, store))
                returned.extend(self._ranked(nodes, vectors, asked, by_logic))
        return returned

    async def arerank(
        self,
        nodes: Sequence[NodeWithScore],
        query_bundle: QueryBundle | None,
        encoded: EncodedQuery | None = None,
        *,
        by_logic: Collection[str] | None = None,
        store: VectorLookup | None = None,
    ) -> list[NodeWithScore]:
        """As `rerank`, off the event loop."""
        with self._reranking(nodes, query_bundle) as (text, returned):
            if nodes:
                asked = encoded or await self.aencode(text)
                vectors = await asyncio.to_thread(self._vectors, nodes, await self._astored(nodes, store))
                returned.extend(await compute(self._ranked, nodes, vectors, asked, by_logic))
        return returned

    @contextmanager
    def _reranking(
        self, nodes: Sequence[NodeWithScore], query_bundle: QueryBundle | None
    ) -> Iterator[tuple[str, list[NodeWithScore]]]:
        """The query's text and a list to fill, between the events that tell of a start and, come what may, an end."""
        returned: list[NodeWithScore] = []
        top_n, model = self.top_n or len(nodes), encoder_name(self.encoder)
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

    def _stored(self, nodes: Sequence[NodeWithScore], store: VectorLookup | None = None) -> Mapping[str, Any]:
        store = store if self.vector_store is None else self.vector_store
        return {} if store is None else look_up(store, self._without_vector(nodes))

    async def _astored(self, nodes: Sequence[NodeWithScore], store: VectorLookup | None = None) -> Mapping[str, Any]:
        store = store if self.vector_store is None else self.vector_store
        return {} if store is None else await alook_up(store, self._without_vector(nodes))

    def _without_vector(self, nodes: Sequence[NodeWithScore]) -> list[str]:
        return without_vector([retrieved.node for retrieved in nodes], dimension=self.scorer.encoder.dimension)

    def _vectors(self, nodes: Sequence[NodeWithScore], stored: Mapping[str, Any]) -> list[FloatArray | ImageError]:
        bare = [retrieved.node for retrieved in nodes]
        return node_vectors(bare, cache=self._made().cache, access=self.image_access, stored=stored)

    def _ranked(
        self,
        nodes: Sequence[NodeWithScore],
        vectors: Sequence[FloatArray | ImageError],
        encoded: EncodedQuery,
        by_logic: Collection[str] | None,
    ) -> list[NodeWithScore]:
        return rank_nodes(
            nodes,
            vectors,
            encoded,
            check=self._made().check,
            limit=self.top_n,
            min_truth=self.min_truth,
            on_missing=self.on_missing,
            keep_retrieval_score=self.keep_retrieval_score,
            by_logic=by_logic,
        )


def _prompted(parser: Any) -> PromptMixin | None:
    """The parser whose prompts can be changed: itself, or the one that a caching or hybrid parser asks."""
    if parser is None or isinstance(parser, PromptMixin):
        return parser
    return _prompted(getattr(parser, "parser", None) or getattr(parser, "llm", None))
