"""Points of a database as LlamaIndex nodes, and LlamaIndex's metadata filters as a Qdrant filter."""

from __future__ import annotations

import base64
import logging
from typing import TYPE_CHECKING, Any

from llama_index.core.schema import BaseNode, ImageNode
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.utils import metadata_dict_to_node

from lcse_plugins.errors import InvalidOption
from lcse_plugins.hosts.payloads import read_payload
from lcse_plugins.hosts.pictures import permitted
from lcse_plugins.images.keys import find_picture, holds_picture
from lcse_plugins.images.locations import ImageAccess, ImageLocation, is_web_url
from lcse_plugins.scoring.results import Ranked

if TYPE_CHECKING:
    from qdrant_client import models

__all__ = ["node_of", "qdrant_filter"]

logger = logging.getLogger(__name__)


def node_of(result: Ranked, access: ImageAccess) -> BaseNode:
    """The node that llama-index-vector-stores-qdrant wrote; else an image node with the payload as metadata.

    The picture is the one the payload names, if `access` allows to read it. Models see no metadata that are pictures.
    """
    payload = dict(result.candidate.payload or {})
    if "_node_content" in payload:
        try:
            return metadata_dict_to_node(payload)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            logger.warning("point %s holds a damaged node, so its payload is shown instead: %s", result.id, error)
            payload = {key: value for key, value in payload.items() if not key.startswith("_node_")}
    stored = read_payload(payload)
    hidden = [key for key, value in stored.metadata.items() if holds_picture(value)]
    picture = find_picture(stored.metadata, stored.text, access=access)
    return ImageNode(
        id_=str(result.id),
        text="" if holds_picture(stored.text) else stored.text,
        metadata=stored.metadata,
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=hidden,
        **_shown(None if picture is None else permitted(picture, access=access)),
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


def qdrant_filter(filters: MetadataFilters) -> models.Filter:
    """The filter that Qdrant applies; keys are those of the payload, dots lead into records."""
    from qdrant_client import models

    conditions = [
        qdrant_filter(one) if isinstance(one, MetadataFilters) else _condition(one, models) for one in filters.filters
    ]
    match filters.condition:
        case FilterCondition.OR:
            return models.Filter(should=conditions)
        case FilterCondition.NOT:
            return models.Filter(must_not=conditions)
    return models.Filter(must=conditions)


def _condition(one: MetadataFilter, models: Any) -> Any:
    value, values = one.value, one.value if isinstance(one.value, list) else [one.value]
    ranges = {FilterOperator.GT: "gt", FilterOperator.GTE: "gte", FilterOperator.LT: "lt", FilterOperator.LTE: "lte"}

    def field(**test: Any) -> Any:
        return models.FieldCondition(key=one.key, **test)

    match one.operator:
        case FilterOperator.EQ if isinstance(value, float):
            return field(range=models.Range(gte=value, lte=value))
        case FilterOperator.EQ | FilterOperator.CONTAINS:
            return field(match=models.MatchValue(value=value))
        case FilterOperator.NE | FilterOperator.NIN:
            return models.Filter(must_not=[field(match=models.MatchAny(any=values))])
        case FilterOperator.IN | FilterOperator.ANY:
            return field(match=models.MatchAny(any=values))
        case FilterOperator.ALL:
            return models.Filter(must=[field(match=models.MatchValue(value=each)) for each in values])
        case FilterOperator.TEXT_MATCH | FilterOperator.TEXT_MATCH_INSENSITIVE:
            return field(match=models.MatchText(text=str(value)))
        case FilterOperator.IS_EMPTY:
            return models.IsEmptyCondition(is_empty=models.PayloadField(key=one.key))
        case operator if operator in ranges:
            return field(range=models.Range(**{ranges[operator]: value}))
    raise InvalidOption(f"Qdrant has no counterpart of the filter operator {one.operator!r}")
