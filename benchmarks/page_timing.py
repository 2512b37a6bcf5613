"""How fast the page is: from `lcse serve` to the first result, and from a key to the pictures it changes.

    python -m benchmarks.page_timing FOLDER [--copies 10]

FOLDER holds photographs; `--copies` makes that many of each, for a larger folder. Copies and index are kept in
`build/page-timing`, so that only the first run encodes. Needs Chromium and selenium; `make test-browser` installs both.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

KEPT = Path(__file__).parents[1] / "build" / "page-timing"
LCSE = (sys.executable, "-m", "lcse_plugins")
QUERIES = (
    "a dog and no person",
    "a street without cars",
    "either a cat or a dog, but no people",
    "a kitchen with a window",
)
FLAGS = "--headless=new --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-sync"

# Types a text letter by letter, each one a pause after the answer to the one before has been drawn; gives milliseconds.
TYPE = """
const [text, pause, done] = arguments;
const times = [], box = document.getElementById("query"), results = document.getElementById("results");
const next = (length) => {
  if (length > text.length) return done(times);
  const seen = new MutationObserver(() => {
    seen.disconnect();
    requestAnimationFrame(() => { times.push(performance.now() - start); setTimeout(() => next(length + 1), pause); });
  });
  seen.observe(results, { childList: true, attributes: true });
  const start = performance.now();
  box.value = text.slice(0, length);
  box.dispatchEvent(new Event("input"));
};
next(5);
"""


def main() -> None:
    """Measure and print one line of JSON."""
    reader = argparse.ArgumentParser(description="Measure the page.")
    reader.add_argument("folder", type=Path)
    reader.add_argument("--copies", type=int, default=1, help="how many of each photograph")
    reader.add_argument("--pause", type=int, default=100, help="milliseconds between an answer and the next key")
    options = reader.parse_args()
    os.environ.update(XDG_CACHE_HOME=str(KEPT), PYTHONUNBUFFERED="1")
    pictures = _folder(options.folder, options.copies)
    subprocess.run([*LCSE, "index", str(pictures)], check=True, stdout=sys.stderr)
    with tempfile.TemporaryDirectory() as work, _browser(work) as browser:
        starts = [_first_result(browser, pictures) for _ in range(3)]
        with _served(pictures) as address:
            browser.get(address)
            _wait(browser, "return document.querySelector('.card') != null")
            keys = [ms for query in QUERIES for ms in browser.execute_async_script(TYPE, query, options.pause)]
    p50, p95 = np.percentile(keys, [50, 95])
    found = {"pictures": len(list(pictures.glob("*.jpg"))), "start_s": [round(second, 2) for second in starts]}
    print(json.dumps({**found, "keys": len(keys), "key_p50_ms": round(p50, 1), "key_p95_ms": round(p95, 1)}))


def _folder(source: Path, copies: int) -> Path:
    """The pictures to search."""
    if copies == 1:
        return source
    pictures = KEPT / f"{copies}"
    pictures.mkdir(parents=True, exist_ok=True)
    for photo in source.glob("*.jpg"):
        for copy in range(copies):
            if not (target := pictures / f"{photo.stem}-{copy}.jpg").exists():
                shutil.copy(photo, target)
    return pictures


@contextmanager
def _served(pictures: Path) -> Iterator[str]:
    """The address of a page that `lcse serve` serves."""
    command = [*LCSE, "serve", str(pictures), "--port", "0", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield next(line.strip() for line in process.stdout if "http" in line)
        finally:
            process.terminate()


def _first_result(browser: Any, pictures: Path) -> float:
    """Seconds from the command to the pictures of a query that was typed at once."""
    browser.get("about:blank")
    start = time.perf_counter()
    with _served(pictures) as address:
        browser.get(address)
        browser.find_element("id", "query").send_keys("a dog and no person")
        _wait(browser, "return state.answer?.query == 'a dog and no person' && document.images[0]?.naturalWidth > 0")
        return time.perf_counter() - start


def _wait(browser: Any, holds: str) -> None:
    while not browser.execute_script(holds):
        time.sleep(0.01)


@contextmanager
def _browser(work: str) -> Iterator[Any]:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*FLAGS.split(), f"--user-data-dir={work}/chromium"):
        options.add_argument(flag)
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    browser = webdriver.Chrome(options=options, service=service)
    browser.set_script_timeout(120)
    try:
        yield browser
    finally:
        browser.quit()


if __name__ == "__main__":
    main()
