"""`query_parser_chain`: a query's tree from any LangChain chat model, as a Runnable and as a `Parser`.

>>> chain = query_parser_chain(ChatOpenAI(model="gpt-4.1-mini"))
>>> chain.invoke("an umbrella and no person")  # a Query
>>> (chain | format_query).invoke("a cat or a dog")
>>> LogicRetriever(source=store, scorer=LogicScorer(encoder, parser=chain))
"""

from __future__ import annotations

from copy import copy
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig

from lcse_plugins.errors import InvalidOption, ParserOutputError
from lcse_plugins.parsing.consult import HOST_PATIENCE, Patience, Question
from lcse_plugins.parsing.llm.parser import LLMQueryParser, OnError
from lcse_plugins.parsing.llm.schema import SCHEMA_VERSION, WireQuery, complaint
from lcse_plugins.parsing.prompt import Prompt, load_prompt
from lcse_plugins.parsing.result import Parser
from lcse_plugins.parsing.service.model_identity import model_identity
from lcse_plugins.query import Query

__all__ = ["QueryParserChain", "query_parser_chain"]

_NAMES = ("model_name", "model", "model_id", "deployment_name")


class QueryParserChain(LLMQueryParser, Runnable[str, Query]):
    """A Runnable str → Query that reads a query with a chat model, checks the reply against it, and composes with `|`.

    It is a `Parser` too; `read` also says who answered and why.

    Args:
        llm: A chat model with structured output.
        on_error: What a failure leads to: `fallback` (the default), `holistic` or `raise`.
        fallback: The parser that then answers; the offline grammar by default.
        patience: Time limits and retries on top of the model's own. Blocking calls are as long as the model's.
        prompt: Rules and examples; all that come with the package by default.
        method: Handed to `with_structured_output`, such as `function_calling`; the model's own choice by default.

    Raises:
        InvalidOption: the model has no structured output.
    """

    def __init__(
        self,
        llm: BaseChatModel,
        *,
        on_error: OnError = "fallback",
        fallback: Parser | None = None,
        patience: Patience = HOST_PATIENCE,
        prompt: Prompt | None = None,
        method: str | None = None,
    ) -> None:
        names = (getattr(llm, name, None) for name in _NAMES)
        model = next(filter(None, names), type(llm).__name__)
        super().__init__(parser_name=f"langchain:{model}", on_error=on_error, fallback=fallback, patience=patience)
        self.name = "QueryParserChain"
        self.prompt = prompt or load_prompt()
        self._identity = model_identity(llm, ignored=BaseChatModel, method=method)
        self._config: RunnableConfig | None = None
        how = {} if method is None else {"method": method}
        try:
            self._model: Runnable[Any, Any] = llm.with_structured_output(WireQuery, include_raw=True, **how)
        except (AttributeError, NotImplementedError) as error:
            raise InvalidOption(
                f"{type(llm).__name__} has no structured output; pass a chat model that can call tools"
            ) from error

    @property
    def fingerprint(self) -> tuple[str, str, str]:
        """Model (its server and settings included), prompt version, schema version."""
        return f"{self.parser_name}#{self._identity}", self.prompt.version, SCHEMA_VERSION

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> Query:
        """The tree of a query."""

        def run(text: str, run_manager: CallbackManagerForChainRun, config: RunnableConfig) -> Query:
            return self._within(config).read(text).query

        return self._call_with_config(run, input, config, run_type="parser")

    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> Query:
        """The tree of a query, without blocking."""

        async def run(text: str, run_manager: AsyncCallbackManagerForChainRun, config: RunnableConfig) -> Query:
            return (await self._within(config).aread(text)).query

        return await self._acall_with_config(run, input, config, run_type="parser")

    def _within(self, config: RunnableConfig) -> QueryParserChain:
        """This chain as part of a run, so that callbacks and tags reach the model."""
        part = copy(self)
        part._config = config
        return part

    def _ask(self, question: Question) -> WireQuery:
        try:
            result = self._model.invoke(self._messages(question), self._config)
        except ValueError as error:  # some models check the reply themselves, and raise
            raise ParserOutputError(complaint(error)) from error
        return _unpacked(result)

    async def _aask(self, question: Question) -> WireQuery:
        try:
            result = await self._model.ainvoke(self._messages(question), self._config)
        except ValueError as error:
            raise ParserOutputError(complaint(error)) from error
        return _unpacked(result)

    def _messages(self, question: Question) -> list[dict[str, str]]:
        return self.prompt.messages(question.text, rejected=question.rejected, complaint=question.complaint)


query_parser_chain = QueryParserChain
"""Makes a `QueryParserChain`; named as LangChain names what makes its chains."""


def _unpacked(result: Any) -> WireQuery:
    """The wire model out of `{"raw", "parsed", "parsing_error"}`."""
    match result:
        case {"parsed": WireQuery() as wire}:
            return wire
        case {"raw": raw, "parsing_error": error}:
            said = raw.text if isinstance(getattr(raw, "text", None), str) else ""
            refusal = getattr(raw, "additional_kwargs", {}).get("refusal")
            if refusal:
                raise ParserOutputError(f"the model refused: {refusal[:200]}", repairable=False)
            calls = getattr(raw, "tool_calls", None) or getattr(raw, "invalid_tool_calls", None) or ()
            said = said or "; ".join(str(call["args"]) for call in calls)
            if error is None:
                raise ParserOutputError("the model made no structured reply", reply=said or None)
            raise ParserOutputError(complaint(error), reply=said or None) from error
    raise ParserOutputError(f"the model's structured reply is {type(result).__name__}, not a query")
