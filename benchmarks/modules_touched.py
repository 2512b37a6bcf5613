"""How many of our modules one query passes: those in which a function runs during one ranking.

python -m benchmarks.modules_touched
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from lcse_plugins import LogicScorer
from lcse_plugins.testing import toy_gallery

__all__ = ["modules_touched"]

OURS = ("lcse_plugins", "llama_index_lcse", "langchain_lcse", "qdrant_lcse")
QUERY = "an umbrella and no person"


def modules_touched(call: Callable[[], object]) -> list[str]:
    """The modules of ours that a call runs in, by name."""
    seen: set[str] = set()

    def look(frame: FrameType, event: str, argument: Any) -> None:
        name = str(frame.f_globals.get("__name__", ""))
        if event == "call" and name.partition(".")[0] in OURS and name != "lcse_plugins.testing":
            seen.add(name)

    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return sorted(seen)


def main() -> None:
    """Count for the scorer and for a LlamaIndex reranker, each with everything imported before."""
    encoder, gallery = toy_gallery()
    LogicScorer(encoder).rank(QUERY, gallery)
    scorer = LogicScorer(encoder)
    found = {"LogicScorer.rank": modules_touched(lambda: scorer.rank(QUERY, gallery))}
    try:
        from llama_index.core.schema import ImageNode, NodeWithScore
        from llama_index_lcse import LogicPostprocessor
    except ImportError:
        print("llama-index is not installed")
    else:
        nodes = [NodeWithScore(node=ImageNode(image_path=f"{c.id}.jpg", embedding=c.vector.tolist())) for c in gallery]
        LogicPostprocessor(scorer=LogicScorer(encoder)).postprocess_nodes(nodes, query_str=QUERY)
        fresh = LogicPostprocessor(scorer=LogicScorer(encoder))
        rerank = modules_touched(lambda: fresh.postprocess_nodes(nodes, query_str=QUERY))
        found["LlamaIndex rerank"] = rerank
    for name, modules in found.items():
        print(f"{name}: {len(modules)} modules")
        print("".join(f"  {module}\n" for module in modules), end="")


if __name__ == "__main__":
    main()
