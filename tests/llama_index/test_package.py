from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import llama_index_lcse
import pytest

import lcse_plugins
from lcse_plugins.images.gallery import demo_photos

ROOT = Path(__file__).resolve().parents[2]


def test_everything_exported_is_there() -> None:
    assert all(hasattr(llama_index_lcse, name) for name in llama_index_lcse.__all__)
    assert llama_index_lcse.__version__ == lcse_plugins.__version__


@pytest.mark.filterwarnings("ignore:Payload indexes")
@pytest.mark.parametrize("page", ["docs/hosts/llama-index.md", "integrations/llama_index_lcse/README.md"])
def test_what_the_pages_show_runs(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    photos = demo_photos()[:6]
    monkeypatch.setattr(lcse_plugins, "demo_photos", lambda: photos)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    session: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), session)


def test_without_llama_index_the_extra_is_named() -> None:
    program = "import sys; sys.modules['llama_index.core'] = None; import llama_index_lcse"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert 'pip install "lcse-plugins[llama-index]"' in run.stderr
