"""Captions and photographs in FAISS, searched by logic.

pip install "lcse-plugins[langchain]" langchain-community faiss-cpu
python examples/langchain_faiss.py
"""

from __future__ import annotations

import faiss
from langchain_community.docstore.in_memory import InMemoryDocstore
from langchain_community.vectorstores import FAISS
from langchain_core.documents import Document
from langchain_lcse import LcseEmbeddings, LogicRetriever, add_images

from lcse_plugins import demo_photos

embeddings = LcseEmbeddings("starter")
store = FAISS(embeddings, faiss.IndexFlatIP(embeddings.encoder.dimension), InMemoryDocstore(), {})
photos = [Document(path.stem.replace("-", " "), metadata={"image_path": str(path)}) for path in demo_photos()]
added = add_images(store, photos)
print(f"{len(added.ids)} photographs added, {len(added.broken)} could not be read")

retriever = LogicRetriever(source=store, k=4)
for query in ("a dog and no person", "a kitchen or a pizza"):
    print(query)
    for document in retriever.invoke(query):
        print(f"  {document.page_content}: {document.metadata['lcse']['reason']}")
