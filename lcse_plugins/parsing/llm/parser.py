"""The parser that asks a language model, whatever client reaches it, and what happens when that fails.

A front end only says how to put a question to its model: `OpenAIParser`, `langchain_lcse.query_parser_chain` and
`llama_index_lcse.LlamaIndexParser` share everything else.
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Literal, get_args

from lcse_plugins.errors import (
    InvalidOption,
    LcseError,
    ParserOutputError,
    ParserUnavailable,
)
from lcse_plugins.parsing.consult import Patience, Pause, Question, Reply, consult
from lcse_plugins.parsing.grounding.belief import locate
from lcse_plugins.parsing.grounding.languages import drops_a_cue, is_foreign
from lcse_plugins.parsing.result import Parse, Parser, affirmative_text, aread_with, check_text, read_with, taken_whole
from lcse_plugins.parsing.service.faults import as_fault
from lcse_plugins.query import Query, contradictions, is_constrained

__all__ = ["LLMQueryParser", "OnError", "parse_of"]

OnError = Literal["fallback", "holistic", "raise"]
"""What a failure leads to: another parser's answer, the query unconstrained, or the error."""

logger = logging.getLogger(__name__)


class LLMQueryParser(ABC):
    """Reads a query with a language model; the reply is checked against the query before it is believed.

    Attributes:
        parser_name: who answers, as `Parse.parser` says it.
        on_error: `fallback` (default) reads the query with `fallback`, `holistic` leaves it unconstrained, `raise`
            raises `ParserUnavailable` or `ParserOutputError`. The first two say so in `Parse.error`, in a note and
            in the log.
        fallback: any parser; the offline grammar by default.
        patience: time limits and retries.
    """

    parser_name: str
    on_error: OnError
    patience: Patience

    def __init__(
        self, *, parser_name: str, on_error: OnError = "fallback", fallback: Parser | None = None, patience: Patience
    ) -> None:
        if on_error not in get_args(OnError):
            raise InvalidOption(f"on_error is one of {', '.join(get_args(OnError))}, not {on_error!r}")
        self.parser_name = parser_name
        self.on_error = on_error
        self.patience = patience
        self._fallback = fallback

    @property
    @abstractmethod
    def fingerprint(self) -> tuple[str, str, str]:
        """Model, prompt version and schema version: with the text, all that decides the answer."""

    @abstractmethod
    def _ask(self, question: Question) -> Reply:
        """Put the question to the model; raise `ParserUnavailable`, `ParserOutputError` or the client's own error."""

    @abstractmethod
    async def _aask(self, question: Question) -> Reply:
        """The same without blocking."""

    def close(self) -> None:  # noqa: B027  (a front end may have nothing to close)
        """Close what `read` keeps open; nothing unless a front end says otherwise."""

    async def aclose(self) -> None:
        """Close what `aread` keeps open on the running event loop, and what `read` does."""
        self.close()

    @property
    def fallback(self) -> Parser:
        """The parser that answers when the model does not."""
        if self._fallback is None:
            from lcse_plugins.parsing.grammar import GrammarParser

            self._fallback = GrammarParser()
        return self._fallback

    def __call__(self, text: str, /) -> Query:
        """The tree of `text`."""
        return self.read(text).query

    def read(self, text: str) -> Parse:
        """The tree of `text`, who gave it, and if not the model, why."""
        check_text(text)
        from lcse_plugins.parsing.llm.schema import decode

        talk = consult(text, patience=self.patience, decode=decode)
        try:
            step = next(talk)
            while True:
                try:
                    reply = self._take(step)
                except Exception as error:
                    step = talk.throw(as_fault(error))
                else:
                    step = talk.send(reply)
        except StopIteration as done:
            return parse_of(done.value, text, parser=self.parser_name)
        except (ParserOutputError, ParserUnavailable) as error:
            return self._failed(text, error)

    async def aread(self, text: str) -> Parse:
        """`read` without blocking; each request ends at its time limit even if the client would wait on."""
        check_text(text)
        from lcse_plugins.parsing.llm.schema import decode

        talk = consult(text, patience=self.patience, decode=decode)
        try:
            step = next(talk)
            while True:
                try:
                    reply = await self._atake(step)
                except Exception as error:
                    step = talk.throw(as_fault(error))
                else:
                    step = talk.send(reply)
        except StopIteration as done:
            return parse_of(done.value, text, parser=self.parser_name)
        except (ParserOutputError, ParserUnavailable) as error:
            return await self._afailed(text, error)

    def _take(self, step: Question | Pause) -> Reply | None:
        """The reply to a question; nothing after a pause."""
        if isinstance(step, Question):
            return self._ask(step)
        time.sleep(step.seconds)
        return None

    async def _atake(self, step: Question | Pause) -> Reply | None:
        if isinstance(step, Question):
            return await asyncio.wait_for(self._aask(step), step.time_limit)
        await asyncio.sleep(step.seconds)
        return None

    def _failed(self, text: str, error: ParserOutputError | ParserUnavailable) -> Parse:
        second: LcseError | None = None
        if self.on_error == "fallback":
            try:
                return self._instead(read_with(self.fallback, text), error)
            except LcseError as fault:
                second = fault
        return self._whole(text, error, second)

    async def _afailed(self, text: str, error: ParserOutputError | ParserUnavailable) -> Parse:
        second: LcseError | None = None
        if self.on_error == "fallback":
            try:
                return self._instead(await aread_with(self.fallback, text), error)
            except LcseError as fault:
                second = fault
        return self._whole(text, error, second)

    def _instead(self, parse: Parse, error: ParserOutputError | ParserUnavailable) -> Parse:
        """What the fallback said, and why it was asked."""
        note = f"{self.parser_name} gave no usable answer; read by {parse.parser} instead"
        logger.warning("%s (%s)", note, _why(error))
        return replace(parse, error=_why(error), notes=(*parse.notes, note))

    def _whole(self, text: str, error: ParserOutputError | ParserUnavailable, second: LcseError | None) -> Parse:
        """The query without its logic, or the error if that is the policy."""
        if self.on_error == "raise":
            raise error
        why = _why(error) if second is None else f"{_why(error)}; the fallback failed too: {second}"
        note = f"{self.parser_name} gave no usable answer; the query is taken as a whole, its logic is not applied"
        logger.warning("%s (%s)", note, why)
        return taken_whole(text, note=note, error=why)


def _why(error: ParserOutputError | ParserUnavailable) -> str:
    return f"{type(error).__name__} after {error.attempts} attempt{'s' * (error.attempts != 1)}: {error.reason}"


def parse_of(query: Query, text: str, *, parser: str) -> Parse:
    """The parse of `text` whose tree is already known."""
    notes = [f"contradiction: {concept} and not {concept}" for concept in contradictions(query)]
    if (is_constrained(query) or drops_a_cue(query, text)) and is_foreign(text):
        notes.append("the query is not in English: that it means this is the model's word")
    return Parse(
        text=text,
        query=query,
        affirmative=affirmative_text(query, text),
        spans=locate(query, text),
        notes=tuple(notes),
        parser=parser,
    )
