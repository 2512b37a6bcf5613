"""Without LangChain the package says what to install."""

from __future__ import annotations

import subprocess
import sys


def test_the_missing_extra_is_named() -> None:
    script = "import sys; sys.modules['langchain_core'] = None; import langchain_lcse"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert (
        'MissingExtra: langchain_lcse needs an optional dependency: pip install "lcse-plugins[langchain]"'
        in done.stderr
    )
