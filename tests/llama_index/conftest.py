"""Fixtures of the LlamaIndex tests: painted pictures as files and as nodes, and a record of what was announced."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import llama_index.core.instrumentation as instrument
import pytest
from llama_index.core.bridge.pydantic import Field
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.schema import ImageNode, NodeWithScore

from tests.llama_index.painted import GALLERY, PaintedEncoder, painted


@pytest.fixture
def encoder() -> PaintedEncoder:
    return PaintedEncoder()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Each picture of the gallery as a file; its name does not tell what it shows."""
    for i, shown in enumerate(GALLERY):
        (tmp_path / f"{i:02}.png").write_bytes(painted(shown))
    return tmp_path


@pytest.fixture
def image_nodes(folder: Path) -> list[ImageNode]:
    """Image nodes without embeddings; their text is what the picture shows."""
    return [
        ImageNode(id_=str(uuid.UUID(int=i)), text=shown, image_path=str(folder / f"{i:02}.png"), metadata={"place": i})
        for i, shown in enumerate(GALLERY)
    ]


@pytest.fixture
def retrieved(image_nodes: list[ImageNode], encoder: PaintedEncoder) -> list[NodeWithScore]:
    """The image nodes with their embeddings, as a retriever might give them."""
    vectors = PaintedEncoder().encode_images([str(node.image_path) for node in image_nodes])
    return [
        NodeWithScore(node=node.model_copy(update={"embedding": vector.tolist()}), score=0.5)
        for node, vector in zip(image_nodes, vectors, strict=True)
    ]


class RerankRecord(BaseEventHandler):
    events: list[BaseEvent] = Field(default_factory=list)

    def handle(self, event: BaseEvent, **_: object) -> None:
        if isinstance(event, ReRankStartEvent | ReRankEndEvent):
            self.events.append(event)


@pytest.fixture
def announced() -> Iterator[list[BaseEvent]]:
    """Rerank events, in the order in which they were sent."""
    record = RerankRecord()
    root = instrument.get_dispatcher()  # type: ignore[attr-defined]
    root.add_event_handler(record)
    yield record.events
    root.event_handlers.remove(record)
