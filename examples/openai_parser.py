"""Read queries with a language model, remember its answers, and see who answered when it cannot.

Offline as it stands: no server answers, so the grammar does, and says so. With OPENAI_API_KEY set it asks OpenAI's
gpt-4.1-mini; with OPENAI_BASE_URL and OPENAI_MODEL any compatible server, such as llama.cpp, vLLM or Ollama.

    pip install "lcse-plugins[openai]"
    python examples/openai_parser.py "a pier at dusk, unless there are boats"
"""

import logging
import os
import sys
import tempfile
from pathlib import Path

from lcse_plugins import CachedParser, HybridParser, OpenAIParser, format_query

QUERIES = [
    "an umbrella and no person, or a raincoat",
    "a street scene, people not necessary",
    "a lake, unless there is a boat on it",
]


def main() -> None:
    logging.getLogger("lcse_plugins").setLevel(logging.ERROR)  # the reasons are printed below
    model = os.environ.get("OPENAI_MODEL", "gpt-4.1-mini")
    if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
        llm = OpenAIParser(model, base_url=os.environ.get("OPENAI_BASE_URL"))
    else:
        nobody = "http://127.0.0.1:9/v1"  # the port where nothing listens
        llm = OpenAIParser(model, base_url=nobody, max_retries=0, timeout=2)
    with tempfile.TemporaryDirectory() as folder:  # name a file of your own to remember answers for good
        cached = CachedParser(llm, Path(folder) / "parses.sqlite3")
        parser = HybridParser(cached)  # the grammar first, then the cache, then the model
        for query in sys.argv[1:] or QUERIES:
            answer = parser.read(query)
            print(f"{query}\n    {format_query(answer.query)}\n    read by {answer.parser}")
            for note in answer.notes:
                print(f"    note: {note}")
            if answer.error:
                print(f"    because: {answer.error}")
        parser.close()


if __name__ == "__main__":
    main()
