"""Boolean image search over Qdrant: `from qdrant_lcse import LogicSearch, AsyncLogicSearch`.

`search` is what users call. A query becomes a `task`, which says what to ask Qdrant and reads the answers; `formula`
writes its score as Qdrant's; `schema` has what a collection stores and allows; `ingest` fills collections.
"""

from __future__ import annotations

from lcse_plugins.errors import MissingExtra

try:
    import qdrant_client as _qdrant_client  # noqa: F401
except ImportError as error:
    raise MissingExtra("qdrant_lcse", "qdrant") from error

from lcse_plugins.hosts.payloads import StoredText, read_langchain_payload, read_llama_index_payload
from qdrant_lcse.hits import Hits
from qdrant_lcse.ingest import IngestReport, NewCollection, aindex_images, index_images
from qdrant_lcse.options import QueryOptions
from qdrant_lcse.search import AsyncLogicSearch, LogicSearch

__all__ = [
    "AsyncLogicSearch",
    "Hits",
    "IngestReport",
    "LogicSearch",
    "NewCollection",
    "QueryOptions",
    "StoredText",
    "aindex_images",
    "index_images",
    "read_langchain_payload",
    "read_llama_index_payload",
]
