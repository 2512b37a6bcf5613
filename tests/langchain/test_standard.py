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

from lcse_plugins import ImageIndex, LogicScorer, VectorPool
from lcse_plugins.testing import ToyEncoder, toy_gallery
from tests.langchain.conftest import STORES, fill, toy_documents


class LogicRetrieverSuite(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return LogicRetriever

    @property
    def retriever_query_example(self) -> str:
        return "an umbrella and no person"


def _store_params(kind: str) -> dict[str, Any]:
    encoder, gallery = toy_gallery()
    return {"source": fill(STORES[kind](LcseEmbeddings(encoder)), toy_documents(gallery), gallery)}


class TestOverInMemoryStore(LogicRetrieverSuite):
    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return _store_params("in-memory")


class TestOverQdrantStore(LogicRetrieverSuite):
    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return _store_params("qdrant")


class TestOverChroma(LogicRetrieverSuite):
    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return _store_params("chroma")


class TestOverFaiss(LogicRetrieverSuite):
    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return _store_params("faiss")


class TestOverPool(LogicRetrieverSuite):
    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        encoder, gallery = toy_gallery()
        return {"source": VectorPool.of(gallery), "scorer": LogicScorer(encoder)}


class TestOverImageIndex(LogicRetrieverSuite):
    index: ImageIndex

    @pytest.fixture(autouse=True)
    def _index(self, pictures: list[Path], tmp_path_factory: pytest.TempPathFactory) -> None:
        out = tmp_path_factory.mktemp("index")
        ImageIndex.build(pictures[0].parent, out, encoder=ToyEncoder())
        self.index = ImageIndex.open(out)

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"source": self.index, "scorer": LogicScorer(ToyEncoder())}


class TestOverLogicSearch(LogicRetrieverSuite):
    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        from qdrant_lcse import LogicSearch

        params = _store_params("qdrant")
        return {"source": LogicSearch(params["source"].client, "pictures", LogicScorer(toy_gallery()[0]))}


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
        return logic_search_tool(LogicRetriever(**_store_params("in-memory")))

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"query": "a street without cars", "k": 2}


class TestToolUnit(ToolSuite, ToolsUnitTests):
    pass


class TestToolIntegration(ToolSuite, ToolsIntegrationTests):
    pass
