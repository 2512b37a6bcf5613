"""LangChain: a retriever, a compressor, embeddings and an agent's tool that obey *and*, *or* and *not*.

>>> from langchain_lcse import LcseEmbeddings, LogicRetriever, add_images, logic_search_tool
>>> store = InMemoryVectorStore(LcseEmbeddings("starter"))
>>> add_images(store, ["beach.jpg", "street.jpg"])
>>> retriever = LogicRetriever(source=store, k=5)
>>> retriever.invoke("a street without cars")
>>> tool = logic_search_tool(retriever)
"""

from __future__ import annotations

from lcse_plugins.errors import MissingExtra

try:
    import langchain_core as _langchain_core  # noqa: F401
except ImportError as error:
    raise MissingExtra("langchain_lcse", "langchain") from error

from langchain_lcse.document_compressors import LogicCompressor
from langchain_lcse.documents import METADATA_KEY, AddedImages, add_images
from langchain_lcse.embeddings import EmbeddingEncoder, LcseEmbeddings
from langchain_lcse.parser_chain import query_parser_chain
from langchain_lcse.retrievers import LogicRetriever
from langchain_lcse.tools import logic_search_tool
from lcse_plugins import __version__

__all__ = [
    "METADATA_KEY",
    "AddedImages",
    "EmbeddingEncoder",
    "LcseEmbeddings",
    "LogicCompressor",
    "LogicRetriever",
    "__version__",
    "add_images",
    "logic_search_tool",
    "query_parser_chain",
]
