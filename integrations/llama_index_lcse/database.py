"""`DatabaseRetriever`: nodes of a collection that answers logical queries itself, such as `qdrant_lcse.LogicSearch`."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

from llama_index.core.callbacks import CallbackManager
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, ImageNode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores.utils import metadata_dict_to_node

from lcse_plugins.errors import InvalidCandidate, InvalidOption
from lcse_plugins.hosts.logic_queries import DatabaseQueries, LogicQueries
from lcse_plugins.hosts.payloads import read_payload
from lcse_plugins.hosts.result_metadata import Accounts
from lcse_plugins.hosts.text_vectors import TextVectorCheck
from lcse_plugins.images.cache import ImageVectorCache
from lcse_plugins.images.keys import holds_picture, named_picture, picture_in
from lcse_plugins.images.locations import DEFAULT_ACCESS, ImageAccess, ImageLocation, is_web_url
from lcse_plugins.scoring.arguments import check_limits
from lcse_plugins.scoring.results import Ranked, Ranking
from llama_index_lcse.node_copies import packed
from llama_index_lcse.node_ranking import stored_result

__all__ = ["DatabaseRetriever"]

VECTORS_OF_PICTURES = "write the collection anew with vectors of the pictures, such as EncoderEmbedding() gives"


class DatabaseRetriever(BaseRetriever):
    """Retrieves by the logic of the query, scored in the database.

        >>> search = LogicSearch(client, "photos", LogicScorer(encoder))
        >>> nodes = DatabaseRetriever(search, top_n=5).retrieve("a kitchen but no microwave")

    Collections written by llama-index-vector-stores-qdrant give back their nodes; any other point becomes an image node
    with its payload as metadata and the picture that this names, under `path` or another usual key; payloads as
    langchain-qdrant writes them (`page_content`, `metadata`) give its text and metadata. Models are not shown metadata
    that are pictures themselves. Where the search has a `scorer`, a node whose vector is that of its text is left out.

    Args:
        search: A `qdrant_lcse.LogicSearch`, an `AsyncLogicSearch` (`aretrieve` only), or anything with that `query`.
        top_n: How many nodes to return; 10 if `options` has no `limit` either.
        min_truth: Leave out images for which the query holds less than this.
        options: More arguments of the search's `query`, such as `query_filter` and `candidates`.
        image_access: What may be read to tell the vector of a picture from that of its text.
        callback_manager: As for any retriever.

    Raises:
        InvalidOption: a number is out of range or given twice, or the search does not take an option.
        InvalidCandidate: from `retrieve`: all vectors are those of texts, or a stored node is damaged.
    """

    def __init__(
        self,
        search: LogicQueries,
        *,
        top_n: int | None = None,
        min_truth: float | None = None,
        options: dict[str, Any] | None = None,
        image_access: ImageAccess = DEFAULT_ACCESS,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        self._arguments = _arguments(options or {}, limit=top_n, min_truth=min_truth)
        self._queries = DatabaseQueries(search, blocking="retrieve", awaited="aretrieve")
        _check_options(self._queries, options or {})
        encoder = self._queries.encoder
        self._check = encoder and TextVectorCheck(
            ImageVectorCache(encoder), access=image_access, advice=VECTORS_OF_PICTURES
        )
        super().__init__(callback_manager=callback_manager)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._nodes(self._queries.ask(query_bundle.query_str, self._arguments))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        ranking = await self._queries.aask(query_bundle.query_str, self._arguments)
        return await asyncio.to_thread(self._nodes, ranking)

    def _nodes(self, ranking: Ranking) -> list[NodeWithScore]:
        nodes = [_node(result) for result in ranking]
        found = [stored_result(node, result.candidate.vector) for node, result in zip(nodes, ranking, strict=True)]
        wrong = set(self._check.find_text_vectors(found)) if self._check else ()
        accounts = Accounts(ranking, fetched="logic")
        return [
            packed(NodeWithScore(node=node), result.score, accounts.of(result, str(result.id)))
            for place, (node, result) in enumerate(zip(nodes, ranking, strict=True))
            if place not in wrong
        ]


def _arguments(options: Mapping[str, Any], **given: Any) -> dict[str, Any]:
    arguments = {"limit": 10, "min_truth": None, **options}
    for name, value in given.items():
        if value is not None:
            if options.get(name) not in (None, value):
                raise InvalidOption(f"{name} is given twice: {value!r}, and {options[name]!r} in options")
            arguments[name] = value
    name = "top_n" if given["limit"] is not None else "limit"
    check_limits(arguments["limit"], arguments["min_truth"], name=name)
    return arguments


def _check_options(queries: DatabaseQueries, options: Mapping[str, Any]) -> None:
    unknown = [] if queries.options is None else sorted(set(options) - queries.options)
    if unknown:
        raise InvalidOption(f"the search does not take {', '.join(unknown)}; it takes {', '.join(queries.named)}")


def _node(result: Ranked) -> BaseNode:
    payload = dict(result.candidate.payload or {})
    if "_node_content" not in payload:
        return _image_node(str(result.id), payload)
    try:
        return metadata_dict_to_node(payload)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidCandidate(
            f"point {result.id} holds no LlamaIndex node under '_node_content'; write it anew, or remove that key"
        ) from error


def _image_node(point_id: str, payload: Mapping[str, Any]) -> ImageNode:
    """A node for a payload that holds none; one with `page_content` is read as langchain-qdrant writes it."""
    stored = read_payload(payload)
    text, metadata = stored.text, stored.metadata
    hidden = [key for key, value in metadata.items() if holds_picture(value)]
    return ImageNode(
        id_=point_id,
        text="" if holds_picture(text) else text,
        metadata=metadata,
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=hidden,
        **_shown(picture_in(metadata) or named_picture(text)),
    )


def _shown(picture: ImageLocation | None) -> dict[str, str]:
    """The field of an image node that a picture goes into."""
    match picture:
        case None:
            return {}
        case bytes():
            return {"image": base64.b64encode(picture).decode("ascii")}
        case str() if picture.startswith("data:"):
            return {"image": picture[picture.find(",") + 1 :]}
        case str() if is_web_url(picture):
            return {"image_url": picture}
    return {"image_path": str(picture)}
