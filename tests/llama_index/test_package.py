from __future__ import annotations

import subprocess
import sys

import llama_index_lcse


def test_everything_exported_is_there_and_sorted() -> None:
    names = llama_index_lcse.__all__
    assert all(hasattr(llama_index_lcse, name) for name in names)
    assert sorted(names, key=lambda name: (not name.isupper(), name)) == names


def test_without_llama_index_the_extra_is_named() -> None:
    program = "import sys; sys.modules['llama_index.core'] = None; import llama_index_lcse"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert 'pip install "lcse-plugins[llama-index]"' in run.stderr
