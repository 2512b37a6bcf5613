"""`LogicPostprocessor`: reorders retrieved image nodes by what the query says, operators included."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import llama_index.core.instrumentation as instrument
from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr, model_validator
from llama_index.core.callbacks import CBEventType, EventPayload
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts.mixin import PromptMixin, PromptMixinType
from llama_index.core.schema import ImageNode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from pydantic import BeforeValidator, SkipValidation

from lcse_plugins.errors import InvalidOption, QueryError
from lcse_plugins.hosts.checked_options import CheckedOptions, OptionalCount
from lcse_plugins.hosts.notices import Notices
from lcse_plugins.hosts.reranking import OnMissing, rerank
from lcse_plugins.hosts.result_metadata import ResultDescriber, fetched_by
from lcse_plugins.hosts.text_vectors import TextVectorCheck
from lcse_plugins.images.cache import ImageVectorCache
from lcse_plugins.images.locations import DEFAULT_ACCESS, ImageAccess
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.config import Mode
from lcse_plugins.scoring.encoded import EncodedQuery
from llama_index_lcse.embedding import ScorerField
from llama_index_lcse.nodes import image_vectors, packed, picture_of, stored_result
from llama_index_lcse.two_ways import AWAITING, BLOCKING, VectorLookup, Way, run_blocking

__all__ = ["VECTORS_OF_PICTURES", "LogicPostprocessor"]

logger = logging.getLogger(__name__)
dispatcher = instrument.get_dispatcher(__name__)  # type: ignore[attr-defined]  # exported, but not explicitly

VECTORS_OF_PICTURES = (
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


class LogicPostprocessor(CheckedOptions, BaseNodePostprocessor, PromptMixin):
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
            self._check = TextVectorCheck(self._cache, access=self.image_access, advice=VECTORS_OF_PICTURES)
        return self

    @classmethod
    def class_name(cls) -> str:
        """Name under which the component is written."""
        return "LogicPostprocessor"

    @property
    def logic_scorer(self) -> LogicScorer:
        """The scorer in use, made of `scorer` and `mode`."""
        return self._scorer

    @property
    def image_cache(self) -> ImageVectorCache:
        """Vectors of the pictures that were encoded here."""
        return self._cache

    @property
    def text_vector_check(self) -> TextVectorCheck | None:
        """What notices vectors of texts, unless that is switched off."""
        return self._check

    def _get_prompt_modules(self) -> PromptMixinType:
        prompted = _prompted(self._scorer.parser)
        return {} if prompted is None else {"parser": prompted}

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return run_blocking(self.rerank(BLOCKING, nodes, query_bundle))

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return await self.rerank(AWAITING, nodes, query_bundle)

    async def rerank(
        self,
        way: Way,
        nodes: Sequence[NodeWithScore],
        query_bundle: QueryBundle | None,
        encoded: EncodedQuery | None = None,
        by_logic: Collection[str] | None = None,
        stores: Sequence[VectorLookup] = (),
    ) -> list[NodeWithScore]:
        """The nodes in order; for a retriever, which knows more of the query and the nodes.

        Args:
            way: Whether to block.
            nodes: What was retrieved.
            query_bundle: What was asked for.
            encoded: The query, if it has been encoded.
            by_logic: Ids of those that were fetched by the query's logic; None for what they say of it themselves.
            stores: Where they came from; the postprocessor's own `vector_store` goes before.
        """
        with self._reranking(nodes, query_bundle) as (text, returned):
            if nodes:
                asked = encoded or await way.encode(self._scorer, text)
                stored = await self.stored_vectors(way, nodes, stores)
                returned.extend(await way.run(self._ranked, nodes, stored, asked, by_logic))
        return returned

    async def stored_vectors(
        self, way: Way, nodes: Sequence[NodeWithScore], stores: Sequence[VectorLookup]
    ) -> dict[str, Any] | None:
        """What stores hold for the nodes that carry no vector themselves; None if there is no store to ask."""
        found: dict[str, Any] = {}
        bare = list(dict.fromkeys(one.node_id for one in nodes if one.node.embedding is None))
        asked = stores if self.vector_store is None else [self.vector_store]
        for store in asked:
            try:
                found.update(await way.look_up(store, bare))
            except (InvalidOption, NotImplementedError) as error:
                if store is self.vector_store:  # the user named it
                    raise
                self._notices.warn("vectors cannot be read from the index, so pictures are encoded again: %s", error)
        return found if asked else None

    @contextmanager
    def _reranking(
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
        by_logic: Collection[str] | None,
    ) -> list[NodeWithScore]:
        bare = [retrieved.node for retrieved in nodes]
        pictures = [picture_of(node, self.image_access) for node in bare]
        is_picture = [
            place is not None or isinstance(node, ImageNode) for place, node in zip(pictures, bare, strict=True)
        ]
        vectors, encoded_anew = image_vectors(
            bare, pictures, cache=self._cache, access=self.image_access, stored=stored or {}
        )
        if encoded_anew and stored is None:
            self._notices.warn(
                "%d pictures were read and encoded, since the nodes came without vectors; those of the index are used "
                "by LogicRetriever.from_index(index), or with vector_store=index.vector_store",
                encoded_anew,
            )
        outcome = rerank(
            encoded,
            range(len(nodes)),
            vectors,
            is_picture=is_picture.__getitem__,
            limit=self.top_n,
            min_truth=self.min_truth,
            on_missing=self.on_missing,
            keep_texts=self.keep_texts,
            check=self._check,
            stored=lambda i, vector: stored_result(bare[i], vector, pictures[i]),
        )
        if by_logic is None:
            shown = [node for node, ranked in zip(bare, is_picture, strict=True) if ranked]
            said = fetched_by([node.metadata for node in shown], encoded.parse.text)
            by_logic = {node.node_id for node in shown} if said == "logic" else ()
        by_words = ResultDescriber(outcome.ranking, fetched="words")
        as_asked = ResultDescriber(outcome.ranking, fetched="logic")
        told = [as_asked if node.node_id in by_logic else by_words for node in bare]
        results: list[NodeWithScore] = []
        for result in outcome.ranking:
            i = result.candidate.payload
            results.append(packed(bare[i], result.score, told[i].ranked(result, bare[i].node_id)))
        for rest in outcome.unranked:
            i, old = rest.found, nodes[rest.found].score
            score = rest.score if rest.score is not None or old is None or not math.isfinite(old) else old
            results.append(
                packed(bare[i], score, told[i].missing(rest.fault, bare[i].node_id) if is_picture[i] else None)
            )
        return results


def _prompted(parser: Any) -> PromptMixin | None:
    """The parser whose prompts can be changed: itself, or the one that a caching or hybrid parser asks."""
    if parser is None or isinstance(parser, PromptMixin):
        return parser
    return _prompted(getattr(parser, "parser", None) or getattr(parser, "llm", None))
