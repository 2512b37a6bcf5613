"""`LlamaIndexParser`: a query's tree from any LlamaIndex LLM, with its prompt open to `update_prompts`.

>>> parser = LlamaIndexParser(OpenAI(model="gpt-4.1-mini"))
>>> parser.get_prompts()["query_prompt"]
>>> LogicPostprocessor(scorer=LogicScorer("starter", parser=parser))
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate, ChatPromptTemplate
from llama_index.core.prompts.mixin import PromptDictType, PromptMixin, PromptMixinType
from pydantic import BaseModel, Field

from lcse_plugins.errors import InvalidOption, ParserOutputError
from lcse_plugins.parsing.llm.parser import LLMQueryParser, digest, settings_of
from lcse_plugins.parsing.result import Parser

__all__ = ["LlamaIndexParser"]


class Alternative(BaseModel):
    """One way to satisfy the query."""

    must: list[list[str]] = Field(
        default_factory=list, description="What must be seen; each entry is a list of choices, one of which is enough."
    )
    must_not: list[str] = Field(default_factory=list, description="What must not be seen.")


class QueryLogic(BaseModel):
    """The logic of an image search query: an image fits if it fits any of the alternatives."""

    alternatives: list[Alternative]


class LlamaIndexParser(LLMQueryParser, PromptMixin):
    """Reads queries with `llm.structured_predict`; the reply is checked against the query.

    Its prompt is `query_prompt`, with `{query}`, the query as a JSON string. Time limits and retries are the LLM's own.

    Args:
        llm: Any LlamaIndex LLM.
        fallback: The parser that answers when the model does not; the offline grammar by default.
        prompt: What the model is told, if not what comes with the package.
    """

    def __init__(self, llm: LLM, *, fallback: Parser | None = None, prompt: str | None = None) -> None:
        super().__init__(name=f"llama-index:{llm.metadata.model_name}", fallback=fallback, prompt=prompt)
        self.llm = llm
        self._template: BasePromptTemplate = ChatPromptTemplate(
            message_templates=[
                ChatMessage(role=MessageRole.SYSTEM, content=self.prompt),
                ChatMessage(role=MessageRole.USER, content="Query: {query}"),
            ]
        )

    @property
    def fingerprint(self) -> str:
        """Model, its settings and the prompt as it is now."""
        told = self._template.get_template(llm=self.llm)
        return f"{self.parser_name}#{digest(settings_of(self.llm), told)}"

    def _get_prompts(self) -> PromptDictType:
        return {"query_prompt": self._template}

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}

    def _update_prompts(self, prompts_dict: PromptDictType) -> None:
        for name, template in prompts_dict.items():
            if name != "query_prompt":
                raise InvalidOption(f"there is no prompt {name!r}; there is query_prompt")
            if "query" not in template.template_vars:
                raise InvalidOption("query_prompt needs the variable {query}")
            self._template = template

    def _ask(self, text: str) -> Mapping[str, Any]:
        return _arguments(self.llm.structured_predict(QueryLogic, self._template, query=_quoted(text)))

    async def _aask(self, text: str) -> Mapping[str, Any]:
        return _arguments(await self.llm.astructured_predict(QueryLogic, self._template, query=_quoted(text)))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _arguments(reply: Any) -> Mapping[str, Any]:
    if not isinstance(reply, QueryLogic):
        raise ParserOutputError(f"the model made no structured reply: {reply!r:.200}")
    return reply.model_dump()
