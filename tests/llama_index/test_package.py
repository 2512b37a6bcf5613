from __future__ import annotations

import subprocess
import sys

import llama_index_lcse

import lcse_plugins


def test_everything_exported_is_there() -> None:
    assert all(hasattr(llama_index_lcse, name) for name in llama_index_lcse.__all__)
    assert llama_index_lcse.__version__ == lcse_plugins.__version__


def test_without_llama_index_the_extra_is_named() -> None:
    program = "import sys; sys.modules['llama_index.core'] = None; import llama_index_lcse"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert 'pip install "lcse-plugins[llama-index]"' in run.stderr
