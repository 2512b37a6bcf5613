"""The chain against a real language model: `make test-llm` fetches it once (1.1 GB) and prints the table of readings.

See `benchmarks/local_model.py` for what it is, `benchmarks/llm.py` for the table, `benchmarks/results/llm.md` for the
last one.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from langchain_lcse.parser_chain import query_parser_chain
from langchain_openai import ChatOpenAI
from llama_index_lcse.llm_parser import LlamaIndexParser

from benchmarks.llm import measure
from benchmarks.local_model import WEIGHTS
from lcse_plugins.parsing.llm.openai import OpenAIParser
from tests.conftest import ROOT
from tests.llm.llama_http import HttpLLM
from tests.llm.server import TEXT, TREE

pytestmark = pytest.mark.llm


@pytest.fixture(scope="module")
def local_url() -> Iterator[str]:
    python = os.environ.get("LCSE_LLM_PYTHON", "")
    if not python or not WEIGHTS.is_file():
        pytest.skip("no local model here; run `make test-llm`")
    command = ["nice", python, "benchmarks/local_model.py", "serve"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        address = next((line.strip() for line in server.stdout if line.startswith("http")), "")
        assert address, "the local server did not start"
        yield f"{address}/v1"
        server.stdin.close()


def test_one_query_by_every_client(local_url: str) -> None:
    options = {"base_url": local_url, "max_retries": 0, "timeout": 1800}
    chat = ChatOpenAI(model="m", api_key="none", temperature=0, max_tokens=400, **options)  # type: ignore[arg-type, call-arg]
    hosted = LlamaIndexParser(HttpLLM(base_url=local_url, calls_functions=False, timeout=1800))
    with closing(OpenAIParser("m", base_url=local_url, max_retries=0, timeout=1800)) as parser:
        for reader in (parser, query_parser_chain(chat, method="json_schema"), hosted):
            answer = reader.read(TEXT)
            assert (answer.query, answer.error) == (TREE, None)


def test_a_reply_cut_off_is_handled(local_url: str) -> None:
    with closing(OpenAIParser("m", base_url=local_url, max_retries=0, timeout=1800, max_tokens=5)) as parser:
        assert "cut off at 5 tokens" in (parser.read(TEXT).error or "")


def test_the_hybrid_reads_no_worse_than_the_grammar(local_url: str, tmp_path: Path) -> None:
    table = measure(local_url, tmp_path / "replies.json")
    print(f"\n{table}")
    rows = re.findall(r"^\| (grammar alone|hybrid) \| (\d+) \| \d+ \| \d+ \| (\d+) \|", table, re.MULTILINE)
    for (_, right, sign), (_, hybrid_right, hybrid_sign) in zip(rows[::2], rows[1::2], strict=True):
        assert int(hybrid_sign) <= int(sign)
        assert int(hybrid_right) >= int(right)
