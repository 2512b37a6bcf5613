"""LcseEmbeddings fills and searches a store in one space."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_lcse import LcseEmbeddings, LogicRetriever

from lcse_plugins.errors import ImageError, InvalidOption, UnknownEncoder
from lcse_plugins.testing import ToyEncoder
from tests.langchain.conftest import STORES


async def test_texts_are_unit_vectors_in_batches_of_any_size(encoder: ToyEncoder) -> None:
    texts = [f"word{i}" for i in range(7)]
    whole = LcseEmbeddings(encoder, batch_size=100).embed_documents(texts)
    assert LcseEmbeddings(encoder, batch_size=2).embed_documents(texts) == whole
    assert await LcseEmbeddings(encoder, batch_size=3).aembed_documents(texts) == whole
    assert LcseEmbeddings(encoder).embed_query("word3") == pytest.approx(whole[3], abs=1e-7)
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1.0, atol=1e-6)
    assert LcseEmbeddings(encoder).embed_documents([]) == []


async def test_pictures_from_paths_bytes_and_data_uris(encoder: ToyEncoder, pictures: list[Path]) -> None:
    embeddings = LcseEmbeddings(encoder, batch_size=2)
    vectors = embeddings.embed_images(pictures)
    assert np.shape(vectors) == (6, 64)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    assert await embeddings.aembed_images([path.read_bytes() for path in pictures]) == vectors
    assert embeddings.embed_image([str(path) for path in pictures]) == vectors
    assert embeddings.embed_images([]) == []


def test_a_broken_picture_is_named(encoder: ToyEncoder, tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="there is no such file"):
        LcseEmbeddings(encoder).embed_images([tmp_path / "none.png"])
    (tmp_path / "broken.png").write_bytes(b"no picture")
    with pytest.raises(ImageError, match=r"broken\.png: not a picture"):
        LcseEmbeddings(encoder).embed_images([tmp_path / "broken.png"])


@pytest.mark.parametrize("kind", sorted(STORES))
def test_any_store_can_be_filled_with_pictures(kind: str, encoder: ToyEncoder, pictures: list[Path]) -> None:
    embeddings = LcseEmbeddings(encoder, documents="images")
    store: VectorStore = STORES[kind](embeddings)
    store.add_texts([str(path) for path in pictures])
    expected = embeddings.embed_images([pictures[2]])[0]
    found = store.similarity_search_by_vector(expected, k=1)
    assert found[0].page_content == str(pictures[2])
    assert len(LogicRetriever(source=store).invoke("red and no blue")) == 4


def test_a_page_content_that_names_no_picture_stays_a_text(encoder: ToyEncoder, pictures: list[Path]) -> None:
    mixed = LcseEmbeddings(encoder, documents="images").embed_documents(["a dog", str(pictures[0]), "a cat"])
    plain = LcseEmbeddings(encoder)
    assert [mixed[0], mixed[2]] == plain.embed_documents(["a dog", "a cat"])
    assert mixed[1] == plain.embed_images([pictures[0]])[0]


def test_chroma_adds_pictures_by_its_own_method(encoder: ToyEncoder, pictures: list[Path]) -> None:
    store: Any = STORES["chroma"](LcseEmbeddings(encoder))
    store.add_images([str(path) for path in pictures])
    found = LogicRetriever(source=store, k=6).invoke("no dog")
    assert len(found) == 6
    stored = np.asarray(store.get(include=["embeddings"])["embeddings"])
    expected = np.asarray(LcseEmbeddings(encoder).embed_images(pictures))
    np.testing.assert_allclose(stored[np.lexsort(stored.T)], expected[np.lexsort(expected.T)], atol=1e-6)


def test_wrong_settings_are_refused(encoder: ToyEncoder) -> None:
    with pytest.raises(UnknownEncoder):
        LcseEmbeddings("no-such-encoder")
    with pytest.raises(InvalidOption, match="texts or images"):
        LcseEmbeddings(encoder, documents="sounds")  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="batch_size"):
        LcseEmbeddings(encoder, batch_size=0)


def test_a_store_with_these_embeddings_needs_no_scorer(memory: InMemoryVectorStore) -> None:
    assert LogicRetriever(source=memory, k=1).invoke("umbrella and no person")[0].page_content == "umbrella"


def test_one_text_or_picture_is_not_a_list_of_them(encoder: ToyEncoder) -> None:
    with pytest.raises(InvalidOption, match=r"\[text\]"):
        LcseEmbeddings(encoder).embed_documents("dog")  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match=r"\[image\]"):
        LcseEmbeddings(encoder).embed_images("dog.jpg")
