"""The parser that asks a language model, whatever client reaches it, and what happens when that fails.

A front end only says how to put a query to its model: `OpenAIParser`, `langchain_lcse.query_parser_chain` and
`llama_index_lcse.LlamaIndexParser` share everything else.
"""

from __future__ import annotations

import json
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from lcse_plugins.errors import ParserOutputError, ParserUnavailable
from lcse_plugins.parsing.grammar import GrammarParser
from lcse_plugins.parsing.llm.grounding import objections
from lcse_plugins.parsing.llm.schema import decode, tree_of
from lcse_plugins.parsing.result import Parse, Parser, affirmative_text, aread_with, check_text, read_with
from lcse_plugins.query import Query, contradictions

__all__ = ["LLMQueryParser", "digest", "load_prompt", "question", "redacted", "settings_of"]

logger = logging.getLogger(__name__)


class LLMQueryParser(ABC):
    """Reads a query with a language model; the reply is checked against the query before it is believed.

    When the model does not answer, or its answer cannot be believed, `fallback` reads the query instead; `Parse.error`,
    a note and the log say so.

    Args:
        name: Who answers, as `Parse.parser` says it.
        fallback: Any parser; the offline grammar by default.
        prompt: What the model is told; `load_prompt()` by default.
    """

    def __init__(self, *, name: str, fallback: Parser | None = None, prompt: str | None = None) -> None:
        self.parser_name = name
        self.fallback: Parser = fallback if fallback is not None else GrammarParser()
        self.prompt = load_prompt() if prompt is None else prompt

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A name of all that decides an answer besides the text: model, server, settings, prompt."""

    @abstractmethod
    def _ask(self, text: str) -> str | Mapping[str, Any]:
        """Put the query to the model; whatever the client raises counts as no answer."""

    @abstractmethod
    async def _aask(self, text: str) -> str | Mapping[str, Any]:
        """The same without blocking."""

    def close(self) -> None:  # noqa: B027  (a front end may have nothing to close)
        """Close what `read` keeps open; nothing unless a front end says otherwise."""

    async def aclose(self) -> None:
        """Close what `aread` keeps open on the running event loop, and what `read` does."""
        self.close()

    def __call__(self, text: str, /) -> Query:
        """The tree of `text`."""
        return self.read(text).query

    def read(self, text: str) -> Parse:
        """The tree of `text`, who gave it, and if not the model, why."""
        check_text(text)
        try:
            return self.believed(text, self._ask(text))
        except Exception as error:  # no client's errors are ours to list, and none may lose the query
            return self._instead(read_with(self.fallback, text), error)

    async def aread(self, text: str) -> Parse:
        """`read` without blocking."""
        check_text(text)
        try:
            return self.believed(text, await self._aask(text))
        except Exception as error:
            return self._instead(await aread_with(self.fallback, text), error)

    def believed(self, text: str, reply: str | Mapping[str, Any]) -> Parse:
        """The parse that a reply stands for.

        Raises:
            ParserOutputError: it is not of the schema's form, or not what the query says.
        """
        alternatives = decode(reply)
        if reasons := objections(text, alternatives):
            raise ParserOutputError("; ".join(reasons))
        query = tree_of(alternatives)
        return Parse(
            text=text,
            query=query,
            affirmative=affirmative_text(query, text),
            notes=tuple(f"contradiction: {concept} and not {concept}" for concept in contradictions(query)),
            parser=self.parser_name,
        )

    def _instead(self, parse: Parse, error: Exception) -> Parse:
        """What the fallback said, and why it was asked."""
        named = isinstance(error, ParserOutputError | ParserUnavailable)
        said = " ".join(f"{'' if named else 'ParserUnavailable: '}{type(error).__name__}: {error}".split())
        why = redacted(said[:300])
        note = f"{self.parser_name} gave no usable answer; read by {parse.parser} instead"
        logger.warning("%s (%s)", note, why)
        return replace(parse, error=why, notes=(*parse.notes, note))


@cache
def load_prompt() -> str:
    """The prompt that comes with the package: rules and worked examples, 3.1 KB, about 900 tokens."""
    return files("lcse_plugins.parsing.llm").joinpath("prompt.txt").read_text(encoding="utf-8").strip()


def question(text: str) -> str:
    """The query as a JSON string, so that its end cannot be forged from inside."""
    return f"Query: {json.dumps(text, ensure_ascii=False)}"


def digest(*parts: object) -> str:
    """A short name of some settings, the same in every process."""
    content = json.dumps(parts, sort_keys=True, default=lambda value: type(value).__name__)
    return sha256(content.encode()).hexdigest()[:16]


_NO_MATTER = re.compile(r"key|secret|password|token$|timeout|retries|verbose|streaming|callback|tags|metadata|^cache$")


def settings_of(model: Any) -> dict[str, Any]:
    """The settings of a host framework's model that decide its answers, those of a model it wraps included."""
    settings: dict[str, Any] = {"class": type(model).__qualname__}
    for name in getattr(type(model), "model_fields", {}):
        value = getattr(model, name, None)
        if _NO_MATTER.search(name):
            continue
        if isinstance(value, str | int | float | dict | list):
            settings[name] = value
        elif hasattr(type(value), "model_fields"):
            settings[name] = settings_of(value)
    return settings


_SECRETS = (
    (re.compile(r"(?<=://)[^/@\s]+@"), "***@"),
    (re.compile(r"(?i)([?&;](?:[\w-]*(?:key|token|secret|password|sig|signature))=)[^&\s\"')]+"), r"\1***"),
    (re.compile(r"\b(?:sk|pk|Bearer)[- ][\w.*-]{8,}"), "***"),
)


def redacted(text: str) -> str:
    """The text without the keys and passwords that URLs and servers' messages carry."""
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text
