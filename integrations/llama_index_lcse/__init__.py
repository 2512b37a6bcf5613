"""LCSE for LlamaIndex: image retrieval that obeys the query's *and*, *or* and *not*.

    >>> from llama_index_lcse import LogicPostprocessor
    >>> engine = index.as_query_engine(similarity_top_k=100, node_postprocessors=[LogicPostprocessor(top_n=5)])

`LogicRetriever` also fetches the candidates by the query's logic; `EncoderEmbedding` indexes images with the encoder
they are scored with; `DatabaseRetriever` lets a Qdrant collection score; `LlamaIndexParser` reads queries with an LLM.
"""

from lcse_plugins.errors import MissingExtra
from lcse_plugins.hosts.versions import check_versions

try:
    import llama_index.core  # noqa: F401
except ImportError as error:
    raise MissingExtra("llama_index_lcse", "llama-index") from error
else:
    check_versions("llama_index_lcse", "llama-index")

from lcse_plugins.hosts.result_metadata import METADATA_KEY
from llama_index_lcse.database import DatabaseRetriever
from llama_index_lcse.embedding import EncoderEmbedding
from llama_index_lcse.llm_parser import LlamaIndexParser
from llama_index_lcse.postprocessor import LogicPostprocessor
from llama_index_lcse.retriever import LogicRetriever

__all__ = [
    "METADATA_KEY",
    "DatabaseRetriever",
    "EncoderEmbedding",
    "LlamaIndexParser",
    "LogicPostprocessor",
    "LogicRetriever",
]
