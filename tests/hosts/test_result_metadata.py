"""What results say of themselves has the same keys in every host."""

from __future__ import annotations

import json
from typing import Any, get_type_hints

from langchain_core.documents import Document
from langchain_lcse import LogicCompressor
from langchain_lcse import LogicRetriever as LangChainRetriever
from llama_index.core.schema import ImageNode, NodeWithScore
from llama_index_lcse import METADATA_KEY, DatabaseRetriever, LogicPostprocessor
from qdrant_client import QdrantClient, models
from qdrant_lcse import LogicSearch

from lcse_plugins import Candidate, LogicScorer, VectorPool
from lcse_plugins.hosts.result_metadata import Account
from lcse_plugins.testing import toy_gallery

ENCODER, GALLERY = toy_gallery()
SCORER = LogicScorer(ENCODER)
QUERY = "umbrella and no person"


def _search() -> LogicSearch:
    client = QdrantClient(":memory:")
    client.create_collection("photos", models.VectorParams(size=ENCODER.dimension, distance=models.Distance.COSINE))
    points = [models.PointStruct(id=i, vector=c.vector.tolist(), payload={}) for i, c in enumerate(GALLERY)]
    client.upsert("photos", points)
    return LogicSearch(client, "photos", SCORER)


def _accounts() -> dict[str, dict[str, Any]]:
    search = _search()
    pool = VectorPool.of([Candidate(c.id, c.vector, payload=Document(str(c.id), id=str(c.id))) for c in GALLERY])
    vectors = {str(c.id): c.vector for c in GALLERY}
    compressor = LogicCompressor(scorer=SCORER, vectors=lambda found: [vectors[d.page_content] for d in found])
    nodes = [NodeWithScore(node=ImageNode(id_=str(c.id), embedding=c.vector.tolist())) for c in GALLERY]
    return {
        "pool": LangChainRetriever(source=pool, scorer=SCORER).invoke(QUERY)[0].metadata[METADATA_KEY],
        "database": LangChainRetriever(source=search).invoke(QUERY)[0].metadata[METADATA_KEY],
        "compressor": compressor.compress_documents([Document(str(c.id), id=str(c.id)) for c in GALLERY], QUERY)[
            0
        ].metadata[METADATA_KEY],
        "nodes of a database": DatabaseRetriever(search).retrieve(QUERY)[0].metadata[METADATA_KEY],
        "postprocessor": LogicPostprocessor(encoder=ENCODER)
        .postprocess_nodes(nodes, query_str=QUERY)[0]
        .metadata[METADATA_KEY],
    }


def test_every_host_gives_the_same_account() -> None:
    accounts = _accounts()
    for host, account in accounts.items():
        assert account.keys() == get_type_hints(Account).keys() - {"missing"}, host
        assert json.loads(json.dumps(account)) == account
        assert account["fetched"] == ("words" if host in ("compressor", "postprocessor") else "logic")
        assert account["exact"] == (account["fetched"] == "logic")
    assert {account["id"] for account in accounts.values()} == {"umbrella", "1"}
    assert len({account["reason"] for account in accounts.values()}) == 1
    assert len({json.dumps(account["parse"]) for account in accounts.values()}) == 1
