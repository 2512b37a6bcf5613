"""Rerank what another retriever found, with LangChain's ContextualCompressionRetriever.

pip install "lcse-plugins[langchain]" langchain-classic
python examples/langchain_compression.py
"""

from __future__ import annotations

from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_lcse import LcseEmbeddings, LogicCompressor, add_images

from lcse_plugins import demo_photos

store = InMemoryVectorStore(LcseEmbeddings("starter"))
add_images(store, demo_photos())
plain = store.as_retriever(search_kwargs={"k": 20})
reranked = ContextualCompressionRetriever(
    base_retriever=plain, base_compressor=LogicCompressor(store=store, top_n=4, min_truth=0.1)
)

query = "a dog and no person"
print("plain:   ", [document.page_content for document in plain.invoke(query)[:4]])
print("reranked:", [document.page_content for document in reranked.invoke(query)])
