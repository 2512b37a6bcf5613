"""What results say about themselves has the same keys in every host, and is checked where others wrote it."""

from __future__ import annotations

import json
from typing import Any, get_type_hints

import pytest
from langchain_core.documents import Document
from langchain_lcse import LogicCompressor
from langchain_lcse import LogicRetriever as LangChainRetriever
from llama_index.core.schema import ImageNode, NodeWithScore
from llama_index_lcse import METADATA_KEY, LogicPostprocessor, LogicRetriever
from qdrant_client import QdrantClient, models
from qdrant_lcse import LogicSearch

from lcse_plugins import Candidate, LogicScorer, VectorPool
from lcse_plugins.errors import InvalidCandidate
from lcse_plugins.hosts.result_metadata import ResultDescriber, ResultMetadata, read_result_metadata
from lcse_plugins.testing import toy_gallery

ENCODER, GALLERY = toy_gallery()
SCORER = LogicScorer(ENCODER)
QUERY = "umbrella and no person"


def _told() -> dict[str, dict[str, Any]]:
    client = QdrantClient(":memory:")
    client.create_collection("photos", models.VectorParams(size=ENCODER.dimension, distance=models.Distance.COSINE))
    points = [models.PointStruct(id=i, vector=c.vector.tolist(), payload={}) for i, c in enumerate(GALLERY)]
    client.upsert("photos", points)
    search = LogicSearch(client, "photos", SCORER)
    pool = VectorPool.of([Candidate(c.id, c.vector, payload=Document(str(c.id), id=str(c.id))) for c in GALLERY])
    vectors = {f"{c.id}.jpg": c.vector for c in GALLERY}
    found = [Document(f"{c.id}.jpg", id=str(c.id)) for c in GALLERY]
    compressor = LogicCompressor(scorer=SCORER, vectors=lambda given: [vectors[d.page_content] for d in given])
    nodes = [NodeWithScore(node=ImageNode(id_=str(c.id), embedding=c.vector.tolist())) for c in GALLERY]
    first: dict[str, Any] = {
        "LangChain, pool": LangChainRetriever(source=pool, scorer=SCORER).invoke(QUERY)[0],
        "LangChain, database": LangChainRetriever(source=search).invoke(QUERY)[0],
        "compressor": compressor.compress_documents(found, QUERY)[0],
        "LlamaIndex, database": LogicRetriever(search).retrieve(QUERY)[0],
        "postprocessor": LogicPostprocessor(scorer=SCORER).postprocess_nodes(nodes, query_str=QUERY)[0],
    }
    return {host: result.metadata[METADATA_KEY] for host, result in first.items()}


def test_every_host_says_the_same() -> None:
    told = _told()
    for host, one in told.items():
        assert one.keys() == get_type_hints(ResultMetadata).keys() - {"missing"}, host
        assert json.loads(json.dumps(one)) == one
        assert one["fetched"] == ("words" if host in ("compressor", "postprocessor") else "logic")
        assert one["exact"] == (one["fetched"] == "logic")
    assert {one["id"] for one in told.values()} == {"umbrella", "1"}
    assert len({one["reason"] for one in told.values()}) == 1
    assert len({json.dumps(one["parse"]) for one in told.values()}) == 1


def test_descriptions_share_nothing_and_are_read_back() -> None:
    ranking = SCORER.rank(QUERY, GALLERY)
    describe = ResultDescriber(ranking, fetched="logic")
    first, second = (describe.ranked(result, "x") for result in ranking[:2])
    first["notes"].append("mine")
    assert second["notes"] == []
    missing = describe.missing("gone", None)
    assert missing["missing"] == "gone"
    assert "score" not in missing
    for told in (first, second, missing):
        assert read_result_metadata({METADATA_KEY: told}) == told
        assert read_result_metadata({METADATA_KEY: json.dumps(told)}) == told
    assert read_result_metadata({}) is None


GOOD: dict[str, Any] = {"reason": "", "notes": [], "parse": {"tree": {}}}


@pytest.mark.parametrize("told", ["{", 7, {**GOOD, "notes": [7]}, {**GOOD, "parse": {}}])
def test_what_others_wrote_is_refused(told: object) -> None:
    with pytest.raises(InvalidCandidate, match="was not written by this package"):
        read_result_metadata({METADATA_KEY: told})
