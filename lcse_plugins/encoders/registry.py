"""Encoders by name: `load_encoder("starter")`, `load_encoder("open_clip:ViT-B-32-quickgelu/openai")`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from inspect import signature
from typing import Any

from lcse_plugins.encoders.protocol import Encoder
from lcse_plugins.errors import InvalidOption, UnknownEncoder

__all__ = ["EncoderListing", "available_encoders", "load_encoder"]


_NUMBERS = frozenset({"batch_size", "threads"})


@dataclass(frozen=True, kw_only=True, slots=True)
class EncoderListing:
    """One line of `lcse encoders`: a name for `load_encoder`, in which capitals stand for the user's choice."""

    name: str
    summary: str
    extra: str | None
    installed: bool


def available_encoders() -> tuple[EncoderListing, ...]:
    """What `load_encoder` understands, lightest first; nothing heavy is imported to tell."""
    here = find_spec("open_clip") is not None
    listed = (
        ("starter", "small, ships with this package"),
        ("starter?folder=FOLDER", "the same kind, of your own build"),
        ("open_clip:ViT-B-32-quickgelu/openai", "CLIP ViT-B/32 with OpenAI's weights"),
        ("open_clip:ViT-L-14-quickgelu/openai", "CLIP ViT-L/14 with OpenAI's weights"),
        ("open_clip:hf-hub:timm/ViT-B-32-SigLIP2-256", "SigLIP 2 ViT-B/32"),
        ("open_clip:MODEL/TAG", "any pair of open_clip.list_pretrained()"),
        ("open_clip:MODEL?checkpoint=FILE", "a model of open_clip.list_models() with local weights, such as NegCLIP's"),
        ("open_clip:local-dir:FOLDER", "a model folder with its open_clip_config.json"),
    )
    return tuple(
        EncoderListing(name=name, summary=summary, extra="open-clip" if hosted else None, installed=here or not hosted)
        for name, summary in listed
        for hosted in [name.startswith("open_clip")]
    )


def load_encoder(encoder: str | Encoder, **options: Any) -> Encoder:
    """The encoder of that name; an `Encoder` object is passed through.

    `"starter"` ships with the package; `"starter?folder=FOLDER"` is one of your own build. `"open_clip:…"` takes
    `MODEL/TAG`, `hf-hub:ORG/REPO`, `local-dir:FOLDER`, or `MODEL?checkpoint=FILE`; more options follow as
    `?device=cuda&precision=bf16&batch_size=64`, or as keywords.

    Args:
        encoder: Its name, or the object itself.
        options: Arguments of the encoder's class, such as `device`, `precision` and `batch_size` of open_clip's.

    Raises:
        UnknownEncoder: no encoder has that name; the message lists what exists.
        InvalidOption: the encoder has no such option.
        MissingExtra: the encoder's optional dependency is not installed.
        ModelFileError: its weights are missing, damaged or do not fit.
    """
    if not isinstance(encoder, str):
        if not isinstance(encoder, Encoder):
            raise UnknownEncoder(f"an encoder is a name or an Encoder object, not {type(encoder).__name__}; {_known()}")
        if options:
            raise InvalidOption(f"options {sorted(options)} are for encoders loaded by name; this one is built already")
        return encoder
    kind, _, rest = encoder.partition(":")
    address, _, query = rest.partition("?")
    starter, asked, written = encoder.partition("?")
    if starter == "starter" and bool(asked) == bool(written):
        from lcse_plugins.encoders.starter import StarterEncoder

        return _build(StarterEncoder, encoder, {**_written(written, encoder), **options})
    if kind == "open_clip" and address:
        from lcse_plugins.encoders.open_clip import OpenClipEncoder

        model, slash, tag = (
            (address, "", "") if address.startswith(("hf-hub:", "local-dir:")) else address.partition("/")
        )
        named = {"model": model, "pretrained": tag} if slash else {"model": model}
        return _build(OpenClipEncoder, encoder, {**named, **_written(query, encoder), **options})
    raise UnknownEncoder(f"there is no encoder {encoder!r}; {_known()}")


def _written(query: str, encoder: str) -> dict[str, Any]:
    """Options as written after `?`, taken literally, so that paths need no quoting."""
    options: dict[str, Any] = {}
    for part in filter(None, re.split(r"&(?=\w+=)", query)):  # an & amid a path is part of it
        name, equals, value = part.partition("=")
        if not equals or not value:
            raise InvalidOption(f"options in an encoder's name are written NAME=VALUE, not {part!r}, in {encoder!r}")
        if name in _NUMBERS and not value.isdecimal():
            raise InvalidOption(f"{name} is a number, not {value!r}, in {encoder!r}")
        options[name] = int(value) if name in _NUMBERS else value
    return options


def _build(factory: Callable[..., Encoder], encoder: str, options: dict[str, Any]) -> Encoder:
    known = set(signature(factory).parameters)
    unknown = sorted(set(options) - known)
    if unknown:
        raise InvalidOption(f"{encoder} has no options {unknown}; it has {sorted(known - {'model'})}")
    return factory(**options)


def _known() -> str:
    return "known are " + ", ".join(listing.name for listing in available_encoders())
