"""`query_parser_chain`: a query's tree from any LangChain chat model, as a Runnable and as a `Parser`.

>>> chain = query_parser_chain(ChatOpenAI(model="gpt-4.1-mini"))
>>> chain.invoke("an umbrella and no person")  # a Query
>>> (chain | format_query).invoke("a cat or a dog")
>>> LogicRetriever(source=store, scorer=LogicScorer(encoder, parser=chain))
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig

from lcse_plugins.errors import InvalidOption, ParserOutputError
from lcse_plugins.parsing.llm.parser import LLMQueryParser, digest, question, settings_of
from lcse_plugins.parsing.llm.schema import SCHEMA
from lcse_plugins.parsing.result import Parser
from lcse_plugins.query import Query

__all__ = ["QueryParserChain", "query_parser_chain"]

_NAMES = ("model_name", "model", "model_id", "deployment_name")


class QueryParserChain(LLMQueryParser, Runnable[str, Query]):
    """A Runnable str → Query that reads a query with a chat model, checks the reply against it, and composes with `|`.

    It is a `Parser` too; `read` also says who answered and why. Time limits and retries are the model's own.

    Args:
        llm: A chat model with structured output.
        fallback: The parser that answers when the model does not; the offline grammar by default.
        prompt: What the model is told, if not what comes with the package.
        method: Handed to `with_structured_output`, such as `function_calling`; the model's own choice by default.

    Raises:
        InvalidOption: the model has no structured output.
    """

    def __init__(
        self,
        llm: BaseChatModel,
        *,
        fallback: Parser | None = None,
        prompt: str | None = None,
        method: str | None = None,
    ) -> None:
        model = next(filter(None, (getattr(llm, name, None) for name in _NAMES)), type(llm).__name__)
        super().__init__(name=f"langchain:{model}", fallback=fallback, prompt=prompt)
        self.name = "QueryParserChain"
        self._identity = digest(settings_of(llm), method)
        self._config: RunnableConfig | None = None
        how = {} if method is None else {"method": method}
        try:
            self._model: Runnable[Any, Any] = llm.with_structured_output(SCHEMA, include_raw=True, **how)
        except (AttributeError, NotImplementedError) as error:
            raise InvalidOption(
                f"{type(llm).__name__} has no structured output; pass a chat model that can call tools"
            ) from error

    @property
    def fingerprint(self) -> str:
        """Model, its settings and the prompt."""
        return f"{self.parser_name}#{digest(self._identity, self.prompt)}"

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

    def _ask(self, text: str) -> Mapping[str, Any]:
        return _arguments(self._model.invoke(self._messages(text), self._config))

    async def _aask(self, text: str) -> Mapping[str, Any]:
        return _arguments(await self._model.ainvoke(self._messages(text), self._config))

    def _messages(self, text: str) -> list[dict[str, str]]:
        return [{"role": "system", "content": self.prompt}, {"role": "user", "content": question(text)}]


query_parser_chain = QueryParserChain
"""Makes a `QueryParserChain`; named as LangChain names what makes its chains."""


def _arguments(result: Any) -> Mapping[str, Any]:
    """The reply out of `{"raw", "parsed", "parsing_error"}`."""
    match result:
        case {"parsed": Mapping() as parsed}:
            return parsed
        case {"raw": raw, "parsing_error": error}:
            refusal = getattr(raw, "additional_kwargs", {}).get("refusal")
            raise ParserOutputError(f"the model made no structured reply: {refusal or error or raw!r:.200}")
    raise ParserOutputError(f"the model's structured reply is {type(result).__name__}, not a query")
