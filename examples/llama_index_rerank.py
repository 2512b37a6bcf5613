"""Image search that obeys "but no": one line more in a LlamaIndex pipeline.

    python examples/llama_index_rerank.py [FOLDER]

FOLDER holds photographs and `photos.jsonl`, a line {"file": name, "classes": [what it shows]} for each: it prints how
many of ten results show A and not B, over the 100 pairs of classes most often seen together. Without FOLDER, the
photographs that come with the package answer one query. Nothing is downloaded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path

from llama_index.core import VectorStoreIndex
from llama_index.core.schema import ImageNode, NodeWithScore
from llama_index_lcse import EncoderEmbedding, LogicPostprocessor, LogicRetriever

import lcse_plugins
from lcse_plugins.calibrating.labelled import LabelledImages, read_labels


def searches(photos: Sequence[Path]) -> dict[str, Callable[[str], list[NodeWithScore]]]:
    embedding = EncoderEmbedding(encoder="starter", embed_batch_size=32)
    vectors = embedding.get_image_embedding_batch([str(photo) for photo in photos], show_progress=True)
    nodes = [  # LlamaIndex leaves out nodes without a text
        ImageNode(text=photo.name, image_path=str(photo), embedding=vector)
        for photo, vector in zip(photos, vectors, strict=True)
    ]
    index = VectorStoreIndex(nodes, embed_model=embedding)
    base = index.as_retriever(similarity_top_k=100)
    logic = LogicPostprocessor(top_n=10, vector_store=index.vector_store)
    return {
        "similarity alone": lambda query: base.retrieve(query)[:10],
        "+ LogicPostprocessor": lambda query: logic.postprocess_nodes(base.retrieve(query), query_str=query),
        "LogicRetriever": LogicRetriever(base, logic).retrieve,
    }


def measure(photos: LabelledImages) -> None:
    together = photos.labels.T.astype(int) @ photos.labels  # on the diagonal: how often a class is seen at all
    pairs = [(a, b) for a, b in permutations(range(len(photos.classes)), 2) if together[a, a] - together[a, b] >= 10]
    pairs = sorted(pairs, key=lambda pair: -together[pair])[:100]
    shown = dict(zip((photo.name for photo in photos.paths), photos.labels, strict=True))
    for name, search in searches(photos.paths).items():
        found = [(a, b, search(f"{photos.classes[a]} but no {photos.classes[b]}")) for a, b in pairs]
        right = [shown[node.text][a] and not shown[node.text][b] for a, b, nodes in found for node in nodes]
        print(f"{name:<20}  P@10 {sum(right) / (10 * len(pairs)):.3f}  ({len(pairs)} queries)")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(read_labels(Path(sys.argv[1]) / "photos.jsonl"))
    else:
        bundled = Path(lcse_plugins.__file__).parent / "demo_photos"
        for name, search in searches(sorted(bundled.glob("*.jpg"))).items():
            print(f"{name}:", *(node.text for node in search("a cup but no cat")[:4]))
