"""LangChain's own conformance suites, unmodified."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool
from langchain_lcse import LcseEmbeddings, LogicRetriever, logic_search_tool
from langchain_tests.integration_tests import (
    EmbeddingsIntegrationTests,
    RetrieversIntegrationTests,
    ToolsIntegrationTests,
)
from langchain_tests.unit_tests import EmbeddingsUnitTests, ToolsUnitTests

from lcse_plugins import ImageIndex, LogicScorer
from lcse_plugins.testing import ToyEncoder
from tests.langchain.conftest import SOURCES, fields_over


class TestRetriever(RetrieversIntegrationTests):
    params: dict[str, Any]

    @pytest.fixture(autouse=True, params=[*SOURCES, "index"])
    def _over(
        self, request: pytest.FixtureRequest, pictures: list[Path], tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        if request.param == "index":
            path = tmp_path_factory.mktemp("index")
            ImageIndex.build(pictures[0].parent, path, encoder=ToyEncoder())
            self.params = {"source": ImageIndex.open(path), "scorer": LogicScorer(ToyEncoder())}
        else:
            self.params = fields_over(request.param)

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return LogicRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return self.params

    @property
    def retriever_query_example(self) -> str:
        return "an umbrella and no person"


class EmbeddingsSuite:
    @property
    def embeddings_class(self) -> type[Embeddings]:
        return LcseEmbeddings

    @property
    def embedding_model_params(self) -> dict[str, Any]:
        return {"scorer": ToyEncoder()}


class TestEmbeddingsUnit(EmbeddingsSuite, EmbeddingsUnitTests):
    pass


class TestEmbeddingsIntegration(EmbeddingsSuite, EmbeddingsIntegrationTests):
    pass


class ToolSuite:
    @property
    def tool_constructor(self) -> BaseTool:
        return logic_search_tool(LogicRetriever(**fields_over("in-memory")))

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"query": "a street without cars", "k": 2}


class TestToolUnit(ToolSuite, ToolsUnitTests):
    pass


class TestToolIntegration(ToolSuite, ToolsIntegrationTests):
    pass
