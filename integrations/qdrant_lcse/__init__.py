"""Boolean image search over Qdrant: `from qdrant_lcse import LogicSearch, AsyncLogicSearch`.

`search` is what users call; `search_base` chooses where scores are computed, and `executions` has a module for each of
the ways. `formula` writes a score as Qdrant's formula, `ingest` fills collections, `embedded` needs no server.
"""

from __future__ import annotations

from lcse_plugins.errors import MissingExtra
from lcse_plugins.hosts.versions import check_versions

try:
    import qdrant_client as _qdrant_client  # noqa: F401
except ImportError as error:
    raise MissingExtra("qdrant_lcse", "qdrant") from error
else:
    check_versions("qdrant_lcse", "qdrant")

from lcse_plugins.hosts.payloads import StoredText, read_langchain_payload, read_llama_index_payload
from qdrant_lcse.formula import ScoreFormula, compile_formula
from qdrant_lcse.hits import Execution, Hits
from qdrant_lcse.ingest import IngestReport, index_images
from qdrant_lcse.search import AsyncLogicSearch, LogicSearch

__all__ = [
    "AsyncLogicSearch",
    "Execution",
    "Hits",
    "IngestReport",
    "LogicSearch",
    "ScoreFormula",
    "StoredText",
    "compile_formula",
    "index_images",
    "read_langchain_payload",
    "read_llama_index_payload",
]
