"""Pictures are ranked as pictures and texts are not, however a store was filled; `add_images` fills it rightly."""

from __future__ import annotations

import base64
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_lcse import METADATA_KEY, LcseEmbeddings, LogicCompressor, LogicRetriever, add_images
from langchain_lcse.stores import read_vectors
from qdrant_lcse import LogicSearch

from lcse_plugins import Candidate, ImageAccess, LogicScorer
from lcse_plugins.errors import ImageError, InvalidCandidate, InvalidOption
from lcse_plugins.images.reading import load_image
from lcse_plugins.testing import ToyEncoder
from tests.langchain.conftest import STORES, fill, shown
from tests.langchain.flat_store import FlatStore


def vectors_of(encoder: ToyEncoder, paths: list[Path]) -> np.ndarray:
    return encoder.encode_images([load_image(path) for path in paths])


def captioned(paths: list[Path]) -> list[Document]:
    return [Document(f"a {path.stem} wall", metadata={"image_path": str(path), "n": i}) for i, path in enumerate(paths)]


def test_add_images_stores_captions_with_the_vectors_of_pictures(
    empty_store: VectorStore, encoder: ToyEncoder, pictures: list[Path], tmp_path: Path
) -> None:
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"no picture")
    documents = captioned(pictures)
    documents[0].metadata |= {METADATA_KEY: {"of": "an earlier search"}, "relevance_score": 1.0}
    lost = [Document("lost", metadata={"image_path": str(broken)}), Document("a text")]
    added = add_images(empty_store, [*documents, *lost], batch_size=4)
    assert len(added.ids) == 6
    assert [(document.page_content, type(fault)) for document, fault in added.broken] == [
        ("lost", ImageError), ("a text", InvalidCandidate),
    ]  # fmt: skip
    found = LogicRetriever(source=empty_store, k=9).invoke("red and not green")
    assert {document.id for document in found} == set(added.ids)
    found.sort(key=lambda document: int(document.metadata["n"]))
    assert [document.page_content for document in found] == [document.page_content for document in documents]
    kept = np.array(read_vectors(empty_store, found))
    np.testing.assert_allclose(kept, vectors_of(encoder, pictures), atol=1e-6)
    assert add_images(empty_store, []).ids == []


def test_add_images_takes_paths_and_needs_a_store_and_a_scorer_it_knows(
    pictures: list[Path], scorer: LogicScorer
) -> None:
    store = InMemoryVectorStore(LcseEmbeddings(scorer))
    assert len(add_images(store, [*pictures[:2], str(pictures[2])]).ids) == 3
    assert {document.page_content for document in LogicRetriever(source=store).invoke("dog")} == {
        "red",
        "green",
        "blue",
    }
    inside = ImageAccess(root=str(pictures[0].parent / "elsewhere"))
    assert len(add_images(store, pictures, image_access=inside).broken) == 6
    with pytest.raises(InvalidOption, match=r"knows InMemoryVectorStore, FAISS, Chroma, QdrantVectorStore, not FlatS"):
        add_images(FlatStore([], np.empty((0, 64))), pictures)
    with pytest.raises(InvalidOption, match="use one encoder for both"):
        add_images(store, pictures, scorer=ToyEncoder(dimension=8))
    with pytest.raises(InvalidOption, match="list of pictures"):
        add_images(store, "red.png")
    with pytest.raises(InvalidCandidate, match="refused the pictures"):
        add_images(
            STORES["chroma"](LcseEmbeddings(scorer)), [Document("x", metadata={"path": str(pictures[0]), "y": {}})]
        )


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_in_a_mixed_store_only_pictures_are_ranked(
    store: VectorStore, scorer: LogicScorer, asynchronous: bool
) -> None:
    store.add_documents([Document(id=f"00000000-0000-0000-0000-00000000000{i}", page_content="dog") for i in range(5)])
    retriever = LogicRetriever(source=store, k=4)
    found = await retriever.ainvoke("dog") if asynchronous else retriever.invoke("dog")
    assert all("dog" in name for name in shown(found)[:3])
    assert len(found) == 4
    with pytest.raises(InvalidCandidate, match=r"names no picture|is that of its text"):
        LogicRetriever(source=store, k=4, on_missing="raise").invoke("dog")
    ranked = LogicCompressor(store=store).compress_documents([Document(id="t", page_content="dog"), *found], "dog")
    assert ranked[-1].id == "t"
    assert "names no picture" in ranked[-1].metadata[METADATA_KEY]["missing"]
    assert ranked[-1].metadata["relevance_score"] < ranked[-2].metadata["relevance_score"]


def test_a_store_of_texts_is_refused(empty_store: VectorStore, pictures: list[Path]) -> None:
    words = ["a dog on a sofa", "a cat in the rain", "cars and no people"]
    if isinstance(empty_store, Chroma):
        metadatas: Any = [{"n": i} for i in range(3)]
    else:
        metadatas = None
    empty_store.add_texts(words, metadatas)
    with pytest.raises(InvalidCandidate, match=r"is that of its text.*add_images"):
        LogicRetriever(source=empty_store).invoke("dog")
    assert len(LogicRetriever(source=empty_store, check_vectors=False).invoke("dog")) == 3


def test_vectors_of_captions_are_told_from_vectors_of_pictures(
    empty_store: VectorStore, pictures: list[Path], caplog: pytest.LogCaptureFixture
) -> None:
    add_images(empty_store, captioned(pictures[1:]))
    empty_store.add_documents(captioned(pictures[:1]))
    with caplog.at_level(logging.WARNING):
        found = LogicRetriever(source=empty_store, k=6).invoke("red wall")
    assert "red" not in shown(found)
    assert len(found) == 5
    assert "is that of its text, 'a red wall'" in caplog.text


def test_texts_in_a_database_are_left_out_however_many(
    documents: list[Document], gallery: list[Candidate], scorer: LogicScorer
) -> None:
    store: Any = fill(STORES["qdrant"](LcseEmbeddings(scorer)), documents, gallery)
    store.add_documents([Document("dog") for _ in range(30)])
    found = LogicRetriever(source=LogicSearch(store.client, "pictures", scorer), k=3).invoke("dog")
    assert [("dog" in name) for name in shown(found)] == [True] * 3


@pytest.mark.parametrize("name", ["photo.HEIC", "photo", "logo.svg", "https://example.org/dog?id=3", "a dog"])
def test_what_is_to_be_a_picture_is_never_embedded_as_a_text(name: str, encoder: ToyEncoder) -> None:
    with pytest.raises(ImageError, match="every page content is a picture"):
        LcseEmbeddings(encoder, documents="images").embed_documents([name])


def test_a_pictures_name_embedded_as_a_text_is_told_once(encoder: ToyEncoder, caplog: pytest.LogCaptureFixture) -> None:
    embeddings = LcseEmbeddings(encoder)
    with caplog.at_level(logging.WARNING):
        embeddings.embed_documents(["a dog", "Dog.HEIC"])
        embeddings.embed_documents(["cat.png"])
    assert caplog.text.count("names a picture and is embedded as a text") == 1
    assert "Dog.HEIC" in caplog.text


@pytest.mark.parametrize("kind", sorted(STORES))
def test_any_store_can_be_filled_with_paths_as_texts(kind: str, encoder: ToyEncoder, pictures: list[Path]) -> None:
    bare = pictures[0].with_suffix("")
    bare.write_bytes(pictures[0].read_bytes())
    store = STORES[kind](LcseEmbeddings(encoder, documents="images"))
    store.add_texts([str(bare), *map(str, pictures[1:])], [{"n": i} for i in range(6)])
    found = LogicRetriever(source=store, k=6).invoke("dog or cat")
    found.sort(key=lambda document: int(document.metadata["n"]))
    np.testing.assert_allclose(np.array(read_vectors(store, found)), vectors_of(encoder, pictures), atol=1e-6)


def test_chroma_adds_pictures_by_its_own_method(scorer: LogicScorer, pictures: list[Path]) -> None:
    store = STORES["chroma"](LcseEmbeddings(scorer))
    assert isinstance(store, Chroma)
    store.add_images([str(path) for path in pictures])
    assert len(LogicRetriever(source=store, k=6).invoke("dog and no cat")) == 6


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
    assert [METADATA_KEY in d.metadata and "score" in d.metadata[METADATA_KEY] for d in ranked] == [True] * 3 + [False]


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
    with pytest.raises(ImageError, match="not a picture"):
        LogicRetriever(source=store, scorer=scorer, on_missing="raise").invoke("dog")
    inside = ImageAccess(root=str(pictures[0].parent / "elsewhere"))
    with pytest.raises(ImageError, match="outside the folder"):
        LogicRetriever(source=store, scorer=scorer, image_access=inside).invoke("dog")


def test_a_picture_may_be_named_elsewhere(scorer: LogicScorer, encoder: ToyEncoder, pictures: list[Path]) -> None:
    documents = [Document(id=path.stem, page_content=path.stem) for path in pictures]
    folder = pictures[0].parent
    store = FlatStore(documents, vectors_of(encoder, pictures))
    retriever = LogicRetriever(source=store, scorer=scorer, locate_image=lambda d: folder / f"{d.page_content}.png")
    assert len(retriever.invoke("dog", k=6)) == 6


@pytest.mark.parametrize("unusable", [0.0, np.nan, np.inf])
def test_a_vector_that_cannot_be_scored_gives_way_to_the_picture(
    scorer: LogicScorer, pictures: list[Path], unusable: float
) -> None:
    store = InMemoryVectorStore(LcseEmbeddings(scorer))
    added = add_images(store, captioned(pictures))
    retriever = LogicRetriever(source=store, vectors=lambda found: rows(found), k=6)

    def rows(found: Any) -> list[Any]:
        kept = [store.store[document.id]["vector"] for document in found]
        return [[unusable] * 64 if document.id == added.ids[0] else v for document, v in zip(found, kept, strict=True)]

    assert shown(retriever.invoke("dog")) == shown(LogicRetriever(source=store, k=6).invoke("dog"))


def test_an_index_of_faiss_that_keeps_no_vectors_encodes(scorer: LogicScorer, pictures: list[Path]) -> None:
    store: Any = STORES["faiss"](LcseEmbeddings(scorer))
    add_images(store, captioned(pictures))

    class Forgetful:
        def __init__(self, index: Any) -> None:
            self.search, self.ntotal = index.search, index.ntotal

        def reconstruct(self, row: int) -> Any:
            raise RuntimeError("reconstruct not implemented for this type of index")

    expected = shown(LogicRetriever(source=store, k=6).invoke("dog"))
    store.index = Forgetful(store.index)
    assert shown(LogicRetriever(source=store, k=6).invoke("dog")) == expected
