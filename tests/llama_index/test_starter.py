"""The pipeline and the example with the encoder that ships, on real photographs."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest
import skimage.data
from llama_index.core import VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.schema import ImageNode, NodeWithScore
from llama_index_lcse import EncoderEmbedding, LogicPostprocessor

from lcse_plugins import Candidate, Encoder, LogicScorer, load_encoder

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "llama_index_rerank.py"
PHOTOGRAPHS = [
    str(Path(skimage.data.__file__).parent / name)
    for name in ("astronaut.png", "camera.png", "chelsea.png", "coffee.png", "rocket.jpg", "motorcycle_left.png")
]
QUERY = "a cup but no cat"


@pytest.fixture(scope="module")
def starter() -> Encoder:
    return load_encoder("starter")


def test_the_postprocessor_reads_pictures_and_scores_as_the_core_does(starter: Encoder) -> None:
    vectors = starter.encode_images(PHOTOGRAPHS)
    candidates = [Candidate(path, vector) for path, vector in zip(PHOTOGRAPHS, vectors, strict=True)]
    expected = LogicScorer(starter).rank(QUERY, candidates)
    nodes = [NodeWithScore(node=ImageNode(image_path=path)) for path in PHOTOGRAPHS]
    result = LogicPostprocessor().postprocess_nodes(nodes, query_str=QUERY)
    assert [getattr(node.node, "image_path", None) for node in result] == [item.id for item in expected]
    assert [node.score for node in result] == pytest.approx([item.score for item in expected], abs=1e-6)


def test_three_lines_in_a_pipeline(starter: Encoder) -> None:
    embedding = EncoderEmbedding(encoder=starter)
    vectors = embedding.get_image_embedding_batch(list(PHOTOGRAPHS))
    nodes = [
        ImageNode(text=Path(path).stem, image_path=path, embedding=vector)
        for path, vector in zip(PHOTOGRAPHS, vectors, strict=True)
    ]
    index = VectorStoreIndex(nodes, embed_model=embedding)
    engine = index.as_query_engine(
        llm=MockLLM(), similarity_top_k=6, node_postprocessors=[LogicPostprocessor(encoder=starter, top_n=2)]
    )
    assert [node.text for node in engine.query("a cat or a motorcycle").source_nodes] in (
        ["chelsea", "motorcycle_left"],
        ["motorcycle_left", "chelsea"],
    )
    assert engine.query(QUERY).source_nodes[0].text == "coffee"


def test_the_example_runs_without_a_folder(
    starter: Encoder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [str(EXAMPLE)])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    plain, reranked, retrieved = capsys.readouterr().out.splitlines()
    assert plain.startswith("similarity alone: cat.jpg")
    assert reranked.startswith("+ LogicPostprocessor: coffee.jpg")
    assert retrieved.startswith("LogicRetriever: coffee.jpg")


def test_the_example_measures_a_gain_on_photographs(
    starter: Encoder,
    shared_data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = (shared_data / "photos" / "photos.jsonl").read_text().splitlines()[:60]
    (tmp_path / "photos.jsonl").write_text("\n".join(lines))
    for line in lines:
        name = json.loads(line)["file"]
        (tmp_path / name).symlink_to(shared_data / "photos" / name)
    monkeypatch.setattr("sys.argv", [str(EXAMPLE), str(tmp_path)])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    plain, reranked, retrieved = (
        float(line.split("P@10")[1].split()[0]) for line in capsys.readouterr().out.splitlines()
    )
    assert reranked > plain
    assert retrieved > plain
