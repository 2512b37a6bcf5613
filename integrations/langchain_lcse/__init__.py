"""LangChain: a retriever, a compressor, embeddings and an agent's tool that obey *and*, *or* and *not*.

>>> from langchain_lcse import LcseEmbeddings, LogicRetriever, logic_search_tool
>>> store = InMemoryVectorStore.from_texts(paths, LcseEmbeddings("starter", documents="images"))
>>> retriever = LogicRetriever(source=store, k=5)
>>> retriever.invoke("a street without cars")
>>> tool = logic_search_tool(retriever)
"""

from __future__ import annotations

from lcse_plugins.errors import MissingExtra
from lcse_plugins.hosts.versions import check_versions

try:
    import langchain_core as _langchain_core  # noqa: F401
except ImportError as error:
    raise MissingExtra("langchain_lcse", "langchain") from error
else:
    check_versions("langchain_lcse", "langchain")

from langchain_lcse.document_compressors import LogicCompressor
from langchain_lcse.embeddings import LcseEmbeddings
from langchain_lcse.parser_chain import query_parser_chain
from langchain_lcse.retrievers import LogicRetriever
from langchain_lcse.tools import logic_search_tool
from lcse_plugins.hosts.result_metadata import METADATA_KEY

__all__ = [
    "METADATA_KEY",
    "LcseEmbeddings",
    "LogicCompressor",
    "LogicRetriever",
    "logic_search_tool",
    "query_parser_chain",
]
