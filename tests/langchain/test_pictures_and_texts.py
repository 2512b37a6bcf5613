"""Pictures are ranked as pictures and texts are not, however a store was filled; `add_images` fills it rightly."""

from __future__ import annotations

import base64
import logging
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_lcse import METADATA_KEY, LcseEmbeddings, LogicCompressor, LogicRetriever, add_images
from langchain_lcse.stores import read_vectors

from lcse_plugins import ImageAccess, LogicScorer
from lcse_plugins.errors import ImageError, InvalidCandidate, InvalidOption
from lcse_plugins.images.reading import load_image
from lcse_plugins.testing import ToyEncoder
from tests.langchain.conftest import STORES, FlatStore, shown


def vectors_of(encoder: ToyEncoder, paths: list[Path]) -> np.ndarray:
    return encoder.encode_images([load_image(path) for path in paths])


def captioned(paths: list[Path]) -> list[Document]:
    return [Document(f"a {path.stem} wall", metadata={"image_path": str(path), "n": i}) for i, path in enumerate(paths)]


def kept_vectors(store: VectorStore, found: list[Document]) -> np.ndarray:
    found.sort(key=lambda document: int(document.metadata["n"]))
    return np.array(read_vectors(store, found))


def test_add_images_stores_captions_with_the_vectors_of_pictures(
    empty_store: VectorStore, encoder: ToyEncoder, pictures: list[Path], tmp_path: Path
) -> None:
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"no picture")
    documents = captioned(pictures)
    documents[0].metadata |= {METADATA_KEY: {"of": "an earlier search"}, "relevance_score": 1.0}
    lost = [Document("lost", metadata={"image_path": str(broken)}), Document("a text")]
    added = add_images(empty_store, [*documents, *lost])
    assert len(added.ids) == 6
    assert [document.page_content for document, _ in added.broken] == ["lost", "a text"]
    assert [type(fault) for _, fault in added.broken] == [ImageError, InvalidCandidate]
    found = LogicRetriever(source=empty_store, k=9).invoke("red and not green")
    assert {document.id for document in found} == set(added.ids)
    np.testing.assert_allclose(kept_vectors(empty_store, found), vectors_of(encoder, pictures), atol=1e-6)
    assert [document.page_content for document in found] == [document.page_content for document in documents]
    assert add_images(empty_store, []).ids == []


def test_add_images_takes_paths_and_needs_a_store_it_knows(pictures: list[Path], scorer: LogicScorer) -> None:
    store = InMemoryVectorStore(LcseEmbeddings(scorer))
    assert len(add_images(store, [*pictures[:2], str(pictures[2])]).ids) == 3
    found = LogicRetriever(source=store).invoke("dog")
    assert {document.page_content for document in found} == {"red", "green", "blue"}
    elsewhere = ImageAccess(root=str(pictures[0].parent / "elsewhere"))
    assert len(add_images(store, pictures, image_access=elsewhere).broken) == 6
    with pytest.raises(InvalidOption, match=r"knows InMemoryVectorStore, FAISS, Chroma, QdrantVectorStore, not FlatS"):
        add_images(FlatStore([], np.empty((0, 64))), pictures)
    chroma, nested = STORES["chroma"](LcseEmbeddings(scorer)), {"path": str(pictures[0]), "y": {}}
    with pytest.raises(InvalidCandidate, match="Chroma refused what it was given"):
        add_images(chroma, [Document("x", metadata=nested)])


def test_in_a_mixed_store_only_pictures_are_ranked(store: VectorStore) -> None:
    texts = [Document(id=f"00000000-0000-0000-0000-{i:012}", page_content="dog") for i in range(30)]
    store.add_documents(texts)
    found = LogicRetriever(source=store, k=4).invoke("dog")
    assert all("dog" in name for name in shown(found)[:3])
    with pytest.raises(InvalidCandidate, match=r"names no picture|is that of its text"):
        LogicRetriever(source=store, k=4, on_missing="raise").invoke("dog")
    ranked = LogicCompressor(store=store).compress_documents([Document(id="t", page_content="dog"), *found], "dog")
    assert ranked[-1].id == "t"
    assert "names no picture" in ranked[-1].metadata[METADATA_KEY]["missing"]
    assert ranked[-1].metadata["relevance_score"] < ranked[-2].metadata["relevance_score"]


def test_a_store_of_texts_is_refused(empty_store: VectorStore) -> None:
    words = ["a dog on a sofa", "a cat in the rain", "cars and no people"]
    empty_store.add_texts(words, [{"n": i} for i in range(3)])
    with pytest.raises(InvalidCandidate, match=r"is that of its text.*add_images"):
        LogicRetriever(source=empty_store).invoke("dog")
    assert len(LogicRetriever(source=empty_store, check_vectors=False).invoke("dog")) == 3


def test_vectors_of_captions_are_told_from_vectors_of_pictures(
    empty_store: VectorStore, pictures: list[Path], caplog: pytest.LogCaptureFixture
) -> None:
    add_images(empty_store, captioned(pictures[1:]))
    empty_store.add_documents(captioned(pictures[:1]))
    for k in (6, 5):
        with caplog.at_level(logging.WARNING):
            found = LogicRetriever(source=empty_store, k=k).invoke("red wall")
        assert "red" not in shown(found)
        assert len(found) == 5
    assert "is that of its text, 'a red wall'" in caplog.text
    with pytest.raises(InvalidCandidate, match="is that of its text"):
        LogicRetriever(source=empty_store, on_missing="raise").invoke("red wall")


@pytest.mark.parametrize("kind", sorted(STORES))
def test_any_store_can_be_filled_with_paths_as_texts(kind: str, encoder: ToyEncoder, pictures: list[Path]) -> None:
    pictures[0] = pictures[0].rename(pictures[0].with_suffix(""))
    store: Any = STORES[kind](LcseEmbeddings(encoder, documents="images"))
    store.add_texts([str(path) for path in pictures], [{"n": i} for i in range(6)])
    found = LogicRetriever(source=store, k=6).invoke("dog or cat")
    np.testing.assert_allclose(kept_vectors(store, found), vectors_of(encoder, pictures), atol=1e-6)
    if kind == "chroma":  # which has a method for pictures too
        store.add_images([str(path) for path in pictures])
        assert len(LogicRetriever(source=store, k=12).invoke("dog and no cat")) == 12


def test_the_place_that_can_be_read_is_encoded(scorer: LogicScorer, encoder: ToyEncoder, pictures: list[Path]) -> None:
    in_base64 = base64.b64encode(pictures[2].read_bytes()).decode()
    documents = [
        Document("red", metadata={"image_path": "red.png", "path": str(pictures[0])}),
        Document(str(pictures[1]), metadata={"filename": "green.png"}),
        Document("blue", metadata={"file": "blue.png", "b64": in_base64}),
        Document("none", metadata={"source": "report.pdf"}),
    ]
    before = encoder.images_encoded
    ranked = LogicCompressor(scorer=scorer).compress_documents(documents, "dog")
    assert encoder.images_encoded - before == 3
    assert ["score" in document.metadata[METADATA_KEY] for document in ranked] == [True] * 3 + [False]


def test_pictures_are_encoded_once_by_whoever_shares_the_scorer(
    scorer: LogicScorer, encoder: ToyEncoder, pictures: list[Path]
) -> None:
    documents = [d.model_copy(update={"id": str(i)}) for i, d in enumerate(captioned(pictures))]
    store = FlatStore(documents, vectors_of(encoder, pictures))
    before = encoder.images_encoded
    for _ in range(2):
        assert len(LogicRetriever(source=store, scorer=scorer, k=6).invoke("red and not green")) == 6
        assert len(LogicCompressor(scorer=scorer).compress_documents(documents, "green")) == 6
    assert encoder.images_encoded - before == 6
    pictures[0].write_bytes(b"broken")
    assert len(LogicRetriever(source=store, scorer=scorer, k=6).invoke("dog")) == 5
    elsewhere = ImageAccess(root=str(pictures[0].parent / "elsewhere"))
    with pytest.raises(ImageError, match="outside the folder"):
        LogicRetriever(source=store, scorer=scorer, image_access=elsewhere).invoke("dog")


def test_a_vector_that_cannot_be_scored_gives_way_to_the_picture(scorer: LogicScorer, pictures: list[Path]) -> None:
    store = InMemoryVectorStore(LcseEmbeddings(scorer))
    spoilt = add_images(store, captioned(pictures)).ids[0]

    def rows(found: Any) -> list[Any]:
        return [[np.nan] * 64 if one.id == spoilt else store.store[one.id]["vector"] for one in found]

    given = LogicRetriever(source=store, vectors=rows, k=6).invoke("dog")
    assert shown(given) == shown(LogicRetriever(source=store, k=6).invoke("dog"))


def test_an_index_of_faiss_that_keeps_no_vectors_encodes(
    scorer: LogicScorer, pictures: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Any = STORES["faiss"](LcseEmbeddings(scorer))
    add_images(store, captioned(pictures))
    expected = shown(LogicRetriever(source=store, k=6).invoke("dog"))
    monkeypatch.setattr(type(store.index), "reconstruct", Mock(side_effect=RuntimeError("not implemented")))
    assert shown(LogicRetriever(source=store, k=6).invoke("dog")) == expected
