"""Where image vectors come from: the store, a function of the user's, the pictures; and what happens without one."""

from __future__ import annotations

import base64
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_lcse import LcseEmbeddings, LogicCompressor, LogicRetriever
from langchain_lcse.images import image_location
from langchain_lcse.sources.known_stores import facts_of, read_vectors

from lcse_plugins import Candidate, LogicScorer
from lcse_plugins.errors import ImageError, InvalidCandidate
from lcse_plugins.images.locations import ImageAccess
from lcse_plugins.testing import ToyEncoder
from tests.langchain.flat_store import FlatStore


@pytest.fixture
def picture_documents(pictures: list[Path]) -> list[Document]:
    return [Document(page_content=path.stem, metadata={"image_path": str(path)}) for path in pictures]


def encoded(encoder: ToyEncoder, pictures: list[Path]) -> np.ndarray:
    """The vectors the toy encoder gives the pictures' pixels."""
    from lcse_plugins.images.reading import load_image

    return encoder.encode_images([load_image(path) for path in pictures])


def test_known_stores_give_back_what_they_hold(
    store: VectorStore, encoder: ToyEncoder, gallery: list[Candidate]
) -> None:
    assert facts_of(store) is not None
    found = store.similarity_search_by_vector(encoder.encode_texts(["dog"])[0].tolist(), k=12)
    stranger = Document(page_content="elsewhere", id="0b0c3b4e-0000-4000-8000-000000000000")
    stranger.metadata["_id"] = stranger.id
    *vectors, missing = read_vectors(store, [*found, stranger])
    assert missing is None
    expected = {str(candidate.id): candidate.vector for candidate in gallery}
    for document, vector in zip(found, vectors, strict=True):
        np.testing.assert_allclose(np.asarray(vector), expected[document.page_content], atol=1e-6)


def test_a_store_of_the_words_that_name_pictures_is_refused(pictures: list[Path]) -> None:
    names = [str(path) for path in pictures]
    by_name = InMemoryVectorStore.from_texts(names, LcseEmbeddings("starter"))
    with pytest.raises(InvalidCandidate, match=r"not of its picture; fill the store with .* documents='images'"):
        LogicRetriever(source=by_name).invoke("red and not green")
    by_sight = InMemoryVectorStore.from_texts(names, LcseEmbeddings("starter", documents="images"))
    assert len(LogicRetriever(source=by_sight).invoke("red and not green")) == 4


def mixed(pictures: list[Path]) -> InMemoryVectorStore:
    """A store of pictures, and of one text that names a picture which it does not show."""
    embeddings = LcseEmbeddings("starter", documents="images")
    store = InMemoryVectorStore.from_texts([str(path) for path in pictures], embeddings)
    store.add_documents([Document("a receipt", metadata={"source": str(pictures[0])})])
    return store


def test_a_text_among_pictures_is_left_out_whatever_was_asked_before(pictures: list[Path]) -> None:
    store = mixed(pictures)
    for earlier in ([], ["a cat and no dog"]):
        retriever = LogicRetriever(source=store, k=4)
        for query in earlier:
            retriever.invoke(query)
        found = retriever.invoke("a receipt and no dog")
        assert len(found) == 3
        assert "a receipt" not in [document.page_content for document in found]
    with pytest.raises(InvalidCandidate, match="that of its text, 'a receipt'"):
        LogicRetriever(source=store, k=4, on_missing="raise").invoke("a receipt and no dog")


async def test_awaited_it_is_left_out_too(pictures: list[Path]) -> None:
    found = await LogicRetriever(source=mixed(pictures), k=4).ainvoke("a receipt and no dog")
    assert "a receipt" not in [document.page_content for document in found]


def test_a_picture_written_as_text_is_not_read_as_one(
    pictures: list[Path], encoder: ToyEncoder, scorer: LogicScorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = base64.b64encode(pictures[0].read_bytes()).decode()
    heard: list[str] = []
    encode = encoder.encode_texts

    def listen(texts: list[str]) -> Any:
        heard.extend(texts)
        return encode(texts)

    monkeypatch.setattr(encoder, "encode_texts", listen)
    store = InMemoryVectorStore(LcseEmbeddings(encoder, documents="images"))
    store.add_texts([content])
    assert len(LogicRetriever(source=store, scorer=scorer).invoke("red and not green")) == 1
    assert content not in heard


def test_a_url_is_fetched_once(
    pictures: list[Path], scorer: LogicScorer, encoder: ToyEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []

    def fetch(url: str, *, access: ImageAccess) -> bytes:
        fetched.append(url)
        return pictures[0].read_bytes()

    monkeypatch.setattr("lcse_plugins.images.fetch.fetch_image", fetch)
    places = [f"https://pictures.example/{i}.png" for i in range(2)]
    store = FlatStore(
        [Document(place, metadata={"image_url": place}) for place in places], encoder.encode_texts(places)
    )
    retriever = LogicRetriever(source=store, scorer=scorer, image_access=ImageAccess(allow_urls=True))
    for _ in range(3):
        assert len(retriever.invoke("red and not green")) == 2
    assert len(fetched) == 2


def test_a_filter_that_fails_is_named(memory: InMemoryVectorStore) -> None:
    def fails(document: Document) -> bool:
        raise ValueError("no year")

    with pytest.raises(InvalidCandidate, match=r"no year.*does it take filter as it was given"):
        LogicRetriever(source=memory).invoke("a dog", filter=fails)


def test_a_named_vector_of_qdrant_is_read(scorer: LogicScorer, encoder: ToyEncoder) -> None:
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")
    vectors = {
        "image": models.VectorParams(size=64, distance=models.Distance.COSINE),
        "other": models.VectorParams(size=3, distance=models.Distance.DOT),
    }
    client.create_collection("named", vectors)
    store = QdrantVectorStore(client, "named", LcseEmbeddings(encoder), vector_name="image")
    store.add_texts(["umbrella person", "umbrella"])
    found = LogicRetriever(source=store).invoke("umbrella and no person")
    assert [document.page_content for document in found] == ["umbrella", "umbrella person"]


def test_pictures_are_encoded_once(
    scorer: LogicScorer, encoder: ToyEncoder, pictures: list[Path], picture_documents: list[Document]
) -> None:
    vectors = encoded(encoder, pictures)
    store = FlatStore(picture_documents, vectors)
    assert facts_of(store) is None
    names = [path.stem for path in pictures]
    retriever = LogicRetriever(source=store, scorer=scorer, k=6)
    before = encoder.images_encoded
    for query in ("dog and no cat", "no person"):
        candidates = [Candidate(name, vector) for name, vector in zip(names, vectors, strict=True)]
        expected = scorer.rank(query, candidates)
        found = retriever.invoke(query)
        assert [document.page_content for document in found] == [result.id for result in expected]
        assert encoder.images_encoded - before == 6


async def test_a_function_of_the_users_is_asked_first(
    scorer: LogicScorer, encoder: ToyEncoder, gallery: list[Candidate], documents: list[Document]
) -> None:
    vectors = np.stack([candidate.vector for candidate in gallery])
    table = {str(candidate.id): candidate.vector for candidate in gallery}
    store = FlatStore(documents, vectors)
    retriever = LogicRetriever(
        source=store, scorer=scorer, vectors=lambda found: [table[document.page_content] for document in found]
    )
    expected = [result.id for result in scorer.rank("umbrella and no person", gallery, limit=4)]
    assert [d.page_content for d in retriever.invoke("umbrella and no person")] == expected
    assert [d.page_content for d in await retriever.ainvoke("umbrella and no person")] == expected
    assert encoder.images_encoded == 12  # the gallery's, none since
    wrong = LogicRetriever(source=store, scorer=scorer, vectors=lambda found: [])
    with pytest.raises(InvalidCandidate, match="gave 0 vectors for 12 documents"):
        wrong.invoke("dog")


async def test_a_document_without_a_picture_is_left_out_or_refused(
    scorer: LogicScorer,
    encoder: ToyEncoder,
    pictures: list[Path],
    picture_documents: list[Document],
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = FlatStore([*picture_documents, Document(page_content="a note")], np.ones((7, 64)))
    retriever = LogicRetriever(source=store, scorer=scorer, k=10)
    with caplog.at_level(logging.WARNING, logger="langchain_lcse"):
        assert len(retriever.invoke("dog")) == len(await retriever.ainvoke("dog")) == 6
    assert "1 of 7 documents left out" in caplog.text
    assert "'a note'" in caplog.text
    strict = LogicRetriever(source=store, scorer=scorer, on_missing="raise")
    with pytest.raises(InvalidCandidate, match=r"'a note'.*image_path.*vectors="):
        strict.invoke("dog")


@pytest.mark.parametrize("unusable", [0.0, np.nan, np.inf])
async def test_a_vector_that_cannot_be_scored_counts_as_none(
    scorer: LogicScorer, gallery: list[Candidate], documents: list[Document], unusable: float
) -> None:
    rows = {str(candidate.id): candidate.vector for candidate in gallery} | {"street": np.full(64, unusable)}
    store = FlatStore(documents, np.stack([candidate.vector for candidate in gallery]))

    def vectors(found: Sequence[Document]) -> list[np.ndarray]:
        return [rows[document.page_content] for document in found]

    lenient = LogicRetriever(source=store, scorer=scorer, vectors=vectors, k=12)
    for found in (lenient.invoke("no person"), await lenient.ainvoke("no person")):
        assert {d.page_content for d in found} == rows.keys() - {"street"}
    unscored = next(document for document in documents if document.page_content == "street")
    with pytest.raises(InvalidCandidate, match=f"document '{unscored.id}' has no stored vector that can be scored"):
        LogicRetriever(source=store, scorer=scorer, vectors=vectors, on_missing="raise").invoke("dog")
    ranked = LogicCompressor(scorer=scorer, vectors=vectors).compress_documents(documents, "no person")
    assert ranked[-1].page_content == "street"
    assert "can be scored" in ranked[-1].metadata["lcse"]["missing"]


def test_a_zero_vector_in_a_store_gives_way_to_the_picture(
    scorer: LogicScorer, encoder: ToyEncoder, pictures: list[Path]
) -> None:
    store = InMemoryVectorStore.from_texts([str(path) for path in pictures], LcseEmbeddings(encoder))
    for entry, vector in zip(store.store.values(), encoded(encoder, pictures), strict=True):
        entry["vector"] = vector.tolist()
    before = LogicRetriever(source=store, scorer=scorer, k=6).invoke("dog")
    next(iter(store.store.values()))["vector"] = [0.0] * 64
    after = LogicRetriever(source=store, scorer=scorer, k=6).invoke("dog")
    assert [d.page_content for d in after] == [d.page_content for d in before]


def test_when_no_document_has_a_picture_that_is_an_error(scorer: LogicScorer, documents: list[Document]) -> None:
    store = FlatStore(documents, np.ones((12, 64)))
    with pytest.raises(InvalidCandidate, match="names no picture"):
        LogicRetriever(source=store, scorer=scorer).invoke("dog")


def test_a_broken_picture_counts_as_none(scorer: LogicScorer, picture_documents: list[Document]) -> None:
    Path(picture_documents[0].metadata["image_path"]).write_bytes(b"no picture")
    store = FlatStore(picture_documents, np.ones((6, 64)))
    assert len(LogicRetriever(source=store, scorer=scorer, k=6).invoke("dog")) == 5
    with pytest.raises(ImageError, match="not a picture"):
        LogicRetriever(source=store, scorer=scorer, on_missing="raise").invoke("dog")


def test_pictures_can_be_confined_to_a_folder(
    scorer: LogicScorer, picture_documents: list[Document], tmp_path: Path
) -> None:
    (tmp_path / "inside").mkdir()
    store = FlatStore(picture_documents, np.ones((6, 64)))
    access = ImageAccess(root=str(tmp_path / "inside"))
    with pytest.raises(ImageError, match="outside the folder"):
        LogicRetriever(source=store, scorer=scorer, image_access=access).invoke("dog")


@pytest.mark.parametrize("with_ids", [True, False])
async def test_what_a_store_returns_twice_counts_once(
    scorer: LogicScorer, gallery: list[Candidate], documents: list[Document], with_ids: bool
) -> None:
    if not with_ids:
        documents = [document.model_copy(update={"id": None}) for document in documents]
    vectors = np.stack([candidate.vector for candidate in gallery])
    table = {str(candidate.id): candidate.vector for candidate in gallery}
    store = FlatStore(documents, vectors, copies=3)
    retriever = LogicRetriever(
        source=store, scorer=scorer, k=12, vectors=lambda found: [table[document.page_content] for document in found]
    )
    expected = [result.id for result in scorer.rank("dog or cat", gallery)]
    assert [document.page_content for document in retriever.invoke("dog or cat")] == expected
    assert [document.page_content for document in await retriever.ainvoke("dog or cat")] == expected


def test_documents_left_out_do_not_make_a_search_seem_exhausted(scorer: LogicScorer) -> None:
    store = InMemoryVectorStore.from_texts([f"dog{i} cat{i}" for i in range(200)], LcseEmbeddings(scorer.encoder))
    odd = [key for row, key in enumerate(store.store) if row % 2]
    retriever = LogicRetriever(source=store, k=2, fetch_k=40, locate_image=lambda document: None)
    whole = LogicRetriever(source=store, k=2, fetch_k=400, locate_image=lambda document: None)
    store_read = store.similarity_search_by_vector

    def forgetful(embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        """Finds half of the documents under ids that the store does not know any more."""
        found = store_read(embedding, k, **kwargs)
        return [d if d.id in odd else d.model_copy(update={"id": f"gone {d.id}"}) for d in found]

    store.similarity_search_by_vector = forgetful  # type: ignore[method-assign]
    assert not retriever.invoke("dog7 and no cat9")[0].metadata["lcse"]["exact"]
    assert whole.invoke("dog7 and no cat9")[0].metadata["lcse"]["exact"]


@pytest.mark.parametrize("length", [32, 65])
async def test_vectors_of_another_length_are_refused(
    store: VectorStore, documents: list[Document], length: int
) -> None:
    other = LogicScorer(ToyEncoder(dimension=length))
    with pytest.raises(InvalidCandidate, match=r"encoder"):
        _forced(store, other).invoke("dog and no cat")
    with pytest.raises(InvalidCandidate, match=r"encoder"):
        await _forced(store, other).ainvoke("dog and no cat")


def _forced(store: VectorStore, scorer: LogicScorer) -> LogicRetriever:
    """A retriever whose scorer does not fit; embeddings that tell would refuse it at once."""
    for name in ("embedding", "_embeddings", "_embedding_function"):
        if hasattr(store, name):
            setattr(store, name, None)
    return LogicRetriever(source=store, scorer=scorer)


async def test_mixed_lengths_are_refused(memory: InMemoryVectorStore, scorer: LogicScorer) -> None:
    memory.store["odd"] = {"id": "odd", "vector": [1.0] * 8, "text": "odd", "metadata": {}}
    with pytest.raises(InvalidCandidate, match="are all its vectors made by the scorer's encoder"):
        LogicRetriever(source=memory).invoke("dog")
    with pytest.raises(InvalidCandidate, match="are all its vectors made by the scorer's encoder"):
        await LogicRetriever(source=memory).ainvoke("dog")


def test_mixed_lengths_from_a_function_are_refused(scorer: LogicScorer, documents: list[Document]) -> None:
    store = FlatStore(documents, np.ones((12, 64)))
    lengths = iter([64, 8] * 6)
    retriever = LogicRetriever(
        source=store, scorer=scorer, vectors=lambda found: [np.ones(next(lengths)) for _ in found]
    )
    with pytest.raises(InvalidCandidate, match=r"different lengths: \[8, 64\]"):
        retriever.invoke("dog")


PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n and so on").decode()


@pytest.mark.parametrize(
    ("content", "metadata", "expected"),
    [
        ("a dog", {"image_path": "dog"}, "dog"),
        ("a dog", {"image_url": "https://example.org/1", "source": "x.png"}, "https://example.org/1"),
        ("a dog", {"image": b"bytes"}, b"bytes"),
        ("a dog", {"image": PNG}, f"data:;base64,{PNG}"),
        ("a dog", {"source": "report.pdf", "path": "dog.JPG"}, "dog.JPG"),
        ("a dog", {"url": "https://example.org/dog.webp?size=2"}, "https://example.org/dog.webp?size=2"),
        ("photos/dog.jpeg", {}, "photos/dog.jpeg"),
        ("data:image/png;base64,AAAA", {}, "data:image/png;base64,AAAA"),
        (PNG, {}, f"data:;base64,{PNG}"),
        ("a dog", {"source": "report.pdf"}, None),
        ("a dog", {"image_path": ""}, None),
        ("a dog", {"image": 7}, None),
        ("a line\nphoto.png", {}, None),
    ],
)
def test_where_a_documents_picture_is(content: str, metadata: dict[str, Any], expected: Any) -> None:
    assert image_location(Document(page_content=content, metadata=metadata)) == expected
