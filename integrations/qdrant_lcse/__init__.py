"""Boolean image search over Qdrant: `from qdrant_lcse import LogicSearch, AsyncLogicSearch`."""

from __future__ import annotations

from lcse_plugins.errors import MissingExtra

try:
    import qdrant_client as _qdrant_client  # noqa: F401
except ImportError as error:
    raise MissingExtra("qdrant_lcse", "qdrant") from error

from qdrant_lcse.hits import Execution, Hits
from qdrant_lcse.search import AsyncLogicSearch, LogicSearch

__all__ = ["AsyncLogicSearch", "Execution", "Hits", "LogicSearch"]
