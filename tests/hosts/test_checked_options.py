"""What people read about the fields of a component, and what they are told about wrong ones."""

from __future__ import annotations

import pydoc
from typing import Any

import pytest
from langchain_lcse import LogicCompressor
from langchain_lcse import LogicRetriever as LangChainRetriever
from llama_index_lcse import LcseEmbedding, LogicPostprocessor

from lcse_plugins.errors import InvalidOption


@pytest.mark.parametrize("kind", [LogicPostprocessor, LcseEmbedding, LangChainRetriever, LogicCompressor])
def test_fields_are_described_in_help(kind: Any) -> None:
    read = pydoc.render_doc(kind)
    own = [field for name, field in kind.model_fields.items() if name in kind.__annotations__]
    assert own
    assert all(field.description and field.description in read for field in own)
    with pytest.raises(InvalidOption, match=f"{kind.__name__} takes its options by keyword: .*scorer=…"):
        kind("starter")
    with pytest.raises(InvalidOption, match=f"{kind.__name__} has no topp; it has .*scorer"):
        kind(topp=5, **({"source": None} if kind is LangChainRetriever else {}))
