"""LCSE for LlamaIndex: image retrieval that obeys the query's *and*, *or* and *not*.

    >>> from llama_index_lcse import LcseEmbedding, LogicRetriever
    >>> index = VectorStoreIndex.from_documents(documents, embed_model=LcseEmbedding())
    >>> LogicRetriever.from_index(index, top_n=5).retrieve("a kitchen but no microwave")

`LogicPostprocessor` reranks what another retriever found, `logic_search_tool` lets an agent search, `EmbeddingEncoder`
makes an encoder of your own CLIP, and `LlamaIndexParser` reads queries with an LLM.
"""

from lcse_plugins import __version__
from lcse_plugins.errors import MissingExtra

try:
    import llama_index.core  # noqa: F401
except ImportError as error:
    raise MissingExtra("llama_index_lcse", "llama-index") from error

from lcse_plugins.hosts.result_metadata import METADATA_KEY
from llama_index_lcse.embedding import EmbeddingEncoder, LcseEmbedding
from llama_index_lcse.llm_parser import LlamaIndexParser
from llama_index_lcse.postprocessor import LogicPostprocessor
from llama_index_lcse.retriever import LogicRetriever
from llama_index_lcse.tool import logic_search_tool

__all__ = [
    "METADATA_KEY",
    "EmbeddingEncoder",
    "LcseEmbedding",
    "LlamaIndexParser",
    "LogicPostprocessor",
    "LogicRetriever",
    "__version__",
    "logic_search_tool",
]
