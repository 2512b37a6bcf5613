"""Encoder, parser and others as fields of a LlamaIndex component: by name where they are to be written down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

from llama_index.core.bridge.pydantic import BeforeValidator, PlainSerializer
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from pydantic import SkipValidation

from lcse_plugins.encoders.protocol import Encoder
from lcse_plugins.errors import InvalidOption
from lcse_plugins.images.locations import ImageAccess
from lcse_plugins.parsing.result import Parser
from lcse_plugins.scoring.calibration import Calibration, load_calibration
from lcse_plugins.scoring.config import ScoringConfig
from llama_index_lcse.node_images import VectorLookup

__all__ = [
    "AccessField",
    "CalibrationField",
    "ConfigField",
    "EncoderField",
    "ParserField",
    "StoreField",
    "encoder_name",
    "without_class_name",
]


def encoder_name(encoder: str | Encoder) -> str:
    """What an encoder is called: its name, or the identity of the object."""
    return encoder if isinstance(encoder, str) else encoder.encoder_id


def without_class_name(written: Any, name: str) -> Any:
    """What `model_dump` wrote holds the class's name beside the fields; here without it."""
    if isinstance(written, Mapping) and written.get("class_name") == name:
        return {field: value for field, value in written.items() if field != "class_name"}
    return written


def _checked_encoder(encoder: Any) -> Any:
    if isinstance(encoder, str | Encoder):
        return encoder
    raise InvalidOption(f"an encoder is a name, such as 'starter', or an Encoder object, not {type(encoder).__name__}")


def _checked_parser(parser: Any) -> Any:
    if parser == "grammar" or (callable(parser) and not isinstance(parser, str)):
        return parser
    raise InvalidOption(f"a parser is 'grammar' or a function from text to a tree, not {parser!r}")


def _checked_store(store: Any) -> Any:
    if store is None or callable(store) or isinstance(store, BasePydanticVectorStore):
        return store
    raise InvalidOption(
        "vectors are looked up in a vector store, or by a function from node ids to vectors, "
        f"not in {type(store).__name__}; of an index, pass index.vector_store"
    )


def _parser_name(parser: Any) -> str:
    return parser if isinstance(parser, str) else str(getattr(parser, "parser_name", type(parser).__name__))


def _calibration_at(value: Any) -> Any:
    """A path is where `lcse calibrate` wrote one."""
    return load_calibration(value) if isinstance(value, str | Path) else value


def _known_names(kind: type) -> BeforeValidator:
    """Pydantic passes over what a dataclass does not know; a misspelt option is refused instead."""
    known = [field.name for field in fields(kind)]

    def check(value: Any) -> Any:
        unknown = sorted(set(value) - set(known)) if isinstance(value, Mapping) else []
        if unknown:
            raise InvalidOption(f"{kind.__name__} has no {', '.join(unknown)}; it has {', '.join(known)}")
        return value

    return BeforeValidator(check)


EncoderField = Annotated[
    str | Encoder,
    SkipValidation,
    BeforeValidator(_checked_encoder),
    PlainSerializer(encoder_name, return_type=str),
]
"""A name or an encoder; written as a name. The identity of an object is no name: loading it is refused."""

ParserField = Annotated[
    Literal["grammar"] | Parser,
    SkipValidation,
    BeforeValidator(_checked_parser),
    PlainSerializer(_parser_name, return_type=str),
]
"""`"grammar"` or a parser; written as a name. The name of any other parser is refused when it is read back."""

StoreField = Annotated[VectorLookup | None, SkipValidation, BeforeValidator(_checked_store)]
"""Where vectors are looked up, if anywhere."""

AccessField = Annotated[ImageAccess, _known_names(ImageAccess)]
CalibrationField = Annotated[Calibration, _known_names(Calibration), BeforeValidator(_calibration_at)]
ConfigField = Annotated[ScoringConfig, _known_names(ScoringConfig)]
"""These come as they are, or as what they are written as: a mapping of their fields; a calibration also by its file."""
