"""`LlamaIndexParser`: a query's tree from any LlamaIndex LLM, with its prompts open to `update_prompts`.

>>> parser = LlamaIndexParser(OpenAI(model="gpt-4.1-mini"))
>>> parser.get_prompts()["query_prompt"]
>>> LogicPostprocessor(parser=parser)
"""

from __future__ import annotations

import json
from hashlib import sha256

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate, ChatPromptTemplate
from llama_index.core.prompts.mixin import PromptDictType, PromptMixin, PromptMixinType

from lcse_plugins.errors import InvalidOption, ParserOutputError
from lcse_plugins.parsing.consult import HOST_PATIENCE, Patience, Question
from lcse_plugins.parsing.llm.parser import LLMQueryParser, OnError
from lcse_plugins.parsing.llm.schema import SCHEMA_VERSION, WireQuery, complaint
from lcse_plugins.parsing.prompt import Prompt, ask_again, load_prompt
from lcse_plugins.parsing.result import Parser
from lcse_plugins.parsing.service.model_identity import model_identity

__all__ = ["LlamaIndexParser"]

_UNUSABLE = (TypeError, ValueError)
"""What `structured_predict` raises when the model's reply is no such object, or there is none."""


class LlamaIndexParser(LLMQueryParser, PromptMixin):
    """Reads queries with `llm.structured_predict`; the reply is checked against the query.

    Prompts: `query_prompt` with `{query}` (the query as a JSON string), and `repair_prompt`, used once when a reply
    could not be used, with `{reply}` and `{complaint}` besides.

    Args:
        llm: Any LlamaIndex LLM.
        on_error: What a failure leads to: `fallback` (the default), `holistic` or `raise`.
        fallback: The parser that then answers; the offline grammar by default.
        patience: Time limits and retries on top of the model's own. Blocking calls are as long as the model's.
        prompt: Rules and examples; all that come with the package by default.
    """

    def __init__(
        self,
        llm: LLM,
        *,
        on_error: OnError = "fallback",
        fallback: Parser | None = None,
        patience: Patience = HOST_PATIENCE,
        prompt: Prompt | None = None,
    ) -> None:
        name = f"llama-index:{llm.metadata.model_name}"
        super().__init__(parser_name=name, on_error=on_error, fallback=fallback, patience=patience)
        self.llm = llm
        self._identity = model_identity(llm)
        asks = [
            ChatMessage(role=MessageRole.SYSTEM, content=(prompt or load_prompt()).system),
            ChatMessage(role=MessageRole.USER, content="Query: {query}"),
        ]
        repairs = [
            ChatMessage(role=MessageRole.ASSISTANT, content="{reply}"),
            ChatMessage(role=MessageRole.USER, content=ask_again("{complaint}")),
        ]
        self._prompts: dict[str, BasePromptTemplate] = {
            "query_prompt": ChatPromptTemplate(message_templates=asks),
            "repair_prompt": ChatPromptTemplate(message_templates=[*asks, *repairs]),
        }

    @property
    def fingerprint(self) -> tuple[str, str, str]:
        """Model (its server and settings included), prompt version (of the prompts as they are now), schema version."""
        content = "\0".join(template.get_template(llm=self.llm) for template in self._prompts.values())
        return f"{self.parser_name}#{self._identity}", sha256(content.encode()).hexdigest()[:12], SCHEMA_VERSION

    def _get_prompts(self) -> PromptDictType:
        return dict(self._prompts)

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}

    def _update_prompts(self, prompts_dict: PromptDictType) -> None:
        for name, template in prompts_dict.items():
            if name not in self._prompts:
                raise InvalidOption(f"there is no prompt {name!r}; there are {', '.join(self._prompts)}")
            if "query" not in template.template_vars:
                raise InvalidOption(f"{name} needs the variable {{query}}")
        self._prompts = {**self._prompts, **prompts_dict}

    def _ask(self, question: Question) -> WireQuery:
        template, values = self._filled(question)
        try:
            reply: WireQuery = self.llm.structured_predict(WireQuery, template, **values)
        except _UNUSABLE as error:
            raise ParserOutputError(complaint(error)) from error
        return reply

    async def _aask(self, question: Question) -> WireQuery:
        template, values = self._filled(question)
        try:
            reply: WireQuery = await self.llm.astructured_predict(WireQuery, template, **values)
        except _UNUSABLE as error:
            raise ParserOutputError(complaint(error)) from error
        return reply

    def _filled(self, question: Question) -> tuple[BasePromptTemplate, dict[str, str]]:
        values = {"query": json.dumps(question.text, ensure_ascii=False)}
        if question.complaint is None:
            return self._prompts["query_prompt"], values
        reply = question.rejected or "(no usable reply)"
        return self._prompts["repair_prompt"], {**values, "reply": reply, "complaint": question.complaint}
