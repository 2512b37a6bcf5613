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
from qdrant_lcse import LogicSearch

from lcse_plugins import ImageIndex, LogicScorer, VectorPool
from lcse_plugins.testing import ToyEncoder, toy_gallery
from tests.langchain.conftest import STORES, fill, toy_documents


def retriever_over(kind: str, pictures: list[Path], out: Path) -> dict[str, Any]:
    encoder, gallery = toy_gallery()
    if kind == "pool":
        return {"source": VectorPool.of(gallery), "scorer": LogicScorer(encoder)}
    if kind == "index":
        ImageIndex.build(pictures[0].parent, out, encoder=encoder)
        return {"source": ImageIndex.open(out), "scorer": LogicScorer(encoder)}
    name = "qdrant" if kind == "search" else kind
    store: Any = fill(STORES[name](LcseEmbeddings(encoder)), toy_documents(gallery), gallery)
    return {"source": LogicSearch(store.client, "pictures", LogicScorer(encoder)) if kind == "search" else store}


class TestRetriever(RetrieversIntegrationTests):
    params: dict[str, Any]

    @pytest.fixture(autouse=True, params=[*sorted(STORES), "pool", "index", "search"])
    def _over(
        self, request: pytest.FixtureRequest, pictures: list[Path], tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        self.params = retriever_over(request.param, pictures, tmp_path_factory.mktemp("index"))

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
        return logic_search_tool(LogicRetriever(**retriever_over("in-memory", [], Path())))

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"query": "a street without cars", "k": 2}


class TestToolUnit(ToolSuite, ToolsUnitTests):
    pass


class TestToolIntegration(ToolSuite, ToolsIntegrationTests):
    pass
