"""A LlamaIndex query engine over a folder of photographs that obeys "but no". Runs offline; nothing is downloaded.

python examples/llama_index_query_engine.py [FOLDER]
"""

import sys
from pathlib import Path

from llama_index.core import VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import ImageDocument
from llama_index_lcse import LcseEmbedding, LogicRetriever

from lcse_plugins import demo_photos

photos = sorted(Path(sys.argv[1]).glob("*.jpg")) if len(sys.argv) > 1 else demo_photos()
documents = [ImageDocument(image_path=str(photo), metadata={"file_path": str(photo)}) for photo in photos]
index = VectorStoreIndex.from_documents(documents, embed_model=LcseEmbedding())

retriever = LogicRetriever.from_index(index, top_n=2)
# Put your own model in the place of the mock: it answers from the results.
engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())

for query in ("a cat but no laptop", "a dog and no person"):
    print(query)
    for node in engine.query(query).source_nodes:
        told = node.metadata["lcse"]
        print(f"  {node.score:.3f}  {Path(node.metadata['file_path']).name:<24} {told['reason']}")
    print(f"  {told['summary']}")
