"""Retrievers that LangChain makes anew for each configured call are as good as the one they were made from."""

from __future__ import annotations

from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import ConfigurableField
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_lcse import LcseEmbeddings, LogicRetriever

from lcse_plugins import Candidate, LogicScorer, VectorPool
from lcse_plugins.testing import ToyEncoder
from tests.langchain.flat_store import FlatStore

CHANGED = [("k", 2), ("min_truth", 0.1), ("fetch_k", 50), ("search_kwargs", {"exact": True})]


@pytest.fixture
def store(encoder: ToyEncoder, pictures: list[Path]) -> FlatStore:
    """A store that does not give its vectors back: pictures must be encoded."""

    class Filled(FlatStore):
        @property
        def embeddings(self) -> Embeddings:
            return LcseEmbeddings(encoder)

    documents = [
        Document(id=path.stem, page_content=path.stem, metadata={"image_path": str(path)}) for path in pictures
    ]
    return Filled(documents, encoder.encode_images(pictures))


@pytest.fixture(params=["own scorer", "the store's"])
def retriever(request: pytest.FixtureRequest, store: FlatStore, scorer: LogicScorer) -> LogicRetriever:
    return LogicRetriever(source=store, scorer=scorer if request.param == "own scorer" else None)


@pytest.mark.parametrize(("name", "value"), CHANGED)
async def test_they_encode_nothing_twice(
    retriever: LogicRetriever, encoder: ToyEncoder, name: str, value: object
) -> None:
    retriever.invoke("red and not green")
    configurable = retriever.configurable_fields(**{name: ConfigurableField(id="it")})
    images, texts = encoder.images_encoded, encoder.texts_encoded
    configurable.invoke("red and not green")
    for _ in range(2):
        configurable.invoke("red and not green", {"configurable": {"it": value}})
        await configurable.ainvoke("red and not green", {"configurable": {"it": value}})
    assert (encoder.images_encoded, encoder.texts_encoded) == (images, texts)


def test_another_setting_makes_them_encode_once(retriever: LogicRetriever, encoder: ToyEncoder) -> None:
    before = encoder.images_encoded
    configurable = retriever.configurable_fields(on_missing=ConfigurableField(id="it"))
    for _ in range(3):
        configurable.invoke("red and not green", {"configurable": {"it": "raise"}})
    assert encoder.images_encoded - before == 6


def test_another_store_may_have_another_encoder(store: FlatStore) -> None:
    other = InMemoryVectorStore.from_texts(["dog", "cat"], LcseEmbeddings(ToyEncoder(dimension=8)))
    configurable = LogicRetriever(source=store).configurable_fields(
        source=ConfigurableField(id="source", annotation=object)
    )
    assert len(configurable.invoke("dog", {"configurable": {"source": other}})) == 2


def test_what_they_share_is_neither_shown_nor_written(retriever: LogicRetriever) -> None:
    assert "made" not in repr(retriever)
    assert "made" not in retriever.model_dump(exclude={"source"})


def test_any_source_can_be_configured(scorer: LogicScorer, gallery: list[Candidate]) -> None:
    retriever = LogicRetriever(source=VectorPool.of(gallery), scorer=scorer)
    configurable = retriever.configurable_fields(k=ConfigurableField(id="k"))
    assert len(configurable.invoke("no dog", {"configurable": {"k": 2}})) == 2
