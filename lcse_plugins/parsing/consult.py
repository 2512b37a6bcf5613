"""Asking a language model for a tree: when to ask, wait, ask again and give up; no input or output happens here.

`consult` is a generator. It yields a `Question` to put to the model or a `Pause` to wait out, is sent the reply (or
has the fault thrown into it), and returns the tree. So one set of rules serves blocking callers, async
callers and every client library.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from lcse_plugins.errors import InvalidOption, ParserOutputError, ParserUnavailable
from lcse_plugins.parsing.grounding.belief import ungrounded
from lcse_plugins.parsing.service.reply_json import reply_text
from lcse_plugins.query import Query

if TYPE_CHECKING:
    from lcse_plugins.parsing.llm.schema import WireQuery

__all__ = [
    "DEFAULT_PATIENCE",
    "HOST_PATIENCE",
    "MAX_QUESTION",
    "Patience",
    "Pause",
    "Question",
    "Reply",
    "consult",
]

MAX_QUESTION = 2000
"""Characters of a query that a model is asked about; longer ones are not a search someone typed."""

Reply: TypeAlias = "str | WireQuery"
"""What a model gave: JSON text, or what a host's structured output made of it."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long and how often to try.

    Attributes:
        timeout: seconds for one request.
        deadline: seconds for all of them together, waits included.
        max_retries: repeats after a fault that may pass: no connection, a timeout, or a status of which
            `lcse_plugins.http_status.may_pass` says so.
        first_wait: seconds before the first repeat; doubles each time, less up to a half by chance.
        longest_wait: the limit of that doubling. A server's `Retry-After` is honoured beyond it.
    """

    timeout: float = 15.0
    deadline: float = 30.0
    max_retries: int = 3
    first_wait: float = 0.5
    longest_wait: float = 8.0

    def __post_init__(self) -> None:
        for name in ("timeout", "deadline"):
            if not getattr(self, name) > 0:
                raise InvalidOption(f"{name} is a positive number of seconds, not {getattr(self, name)}")
        for name in ("max_retries", "first_wait", "longest_wait"):
            if not getattr(self, name) >= 0:
                raise InvalidOption(f"{name} is not negative, so not {getattr(self, name)}")

    def wait_after(self, failures: int) -> float:
        """Seconds to wait after that many failures in a row."""
        return min(self.longest_wait, self.first_wait * 2.0 ** (failures - 1)) * random.uniform(0.5, 1.0)


DEFAULT_PATIENCE = Patience()
HOST_PATIENCE = Patience(max_retries=0)
"""For the models of LangChain and LlamaIndex, which retry by themselves: a second layer would multiply requests."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """Put this to the model, and wait no longer than `time_limit` seconds."""

    text: str
    time_limit: float
    rejected: str | None = None
    complaint: str | None = None


@dataclass(frozen=True)
class Pause:
    """Wait that long."""

    seconds: float


def consult(
    text: str,
    *,
    patience: Patience = DEFAULT_PATIENCE,
    decode: Callable[[Reply], Query],
    clock: Callable[[], float] = time.monotonic,
) -> Generator[Question | Pause, Any, Query]:
    """The conversation about one query; returns a tree that is grounded in it.

    Raises:
        ParserUnavailable: the model did not answer in time, or never will.
        ParserOutputError: it answered, and its mended reply was of no use either.
    """
    if len(text) > MAX_QUESTION:
        raise ParserUnavailable(f"the query has {len(text)} characters; a model is asked about {MAX_QUESTION}")
    ends = clock() + patience.deadline
    question = Question(text=text, time_limit=patience.timeout)
    asked = failures = 0
    while True:
        asked += 1
        try:
            reply = yield replace(question, time_limit=max(0.001, min(patience.timeout, ends - clock())))
            query = decode(reply)
            if problems := ungrounded(query, text):
                raise ParserOutputError("; ".join(problems), reply=reply_text(reply))
            return query
        except ParserUnavailable as fault:
            failures += 1
            fault.attempts = asked
            wait = max(patience.wait_after(failures), fault.retry_after or 0.0)
            if not fault.retryable or failures > patience.max_retries:
                raise
            if clock() + wait >= ends:
                fault.reason += f"; no time for another try within {patience.deadline:g} s"
                fault.args = (fault.reason,)
                raise
            yield Pause(wait)
        except ParserOutputError as fault:
            fault.attempts = asked
            if question.complaint is not None or not fault.repairable or clock() >= ends:
                raise
            question = replace(question, rejected=fault.reply, complaint=fault.reason)
