"""How fast the page is: from `lcse serve` to the first result, and from a key to the pictures it changes.

    python benchmarks/page_timing.py FOLDER [--copies 10]

FOLDER holds photographs, which are indexed before anything is measured; `--copies` makes that many of each, for a
larger folder. Needs Chromium and selenium (`make test-browser` installs both).
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
from pathlib import Path
from typing import Any

import numpy as np

QUERIES = (
    "a dog and no person",
    "a street without cars",
    "either a cat or a dog, but no people",
    "a kitchen with a window",
)
FLAGS = "--headless=new --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-sync"

# Types a text letter by letter, each one when the answer to the one before has been drawn; gives milliseconds.
TYPE = """
const [text, done] = arguments;
const times = [], box = document.getElementById("query");
const next = (length) => {
  if (length > text.length) return done(times);
  const start = performance.now(), results = document.getElementById("results");
  const seen = new MutationObserver(() => {
    seen.disconnect();
    requestAnimationFrame(() => { times.push(performance.now() - start); setTimeout(() => next(length + 1), 30); });
  });
  seen.observe(results, { childList: true });
  box.value = text.slice(0, length);
  box.dispatchEvent(new Event("input"));
};
next(5);
"""


def main() -> None:
    """Measure and print one line of JSON."""
    reader = argparse.ArgumentParser(description="Measure the page.")
    reader.add_argument("folder", type=Path)
    reader.add_argument("--copies", type=int, default=1)
    options = reader.parse_args()
    with tempfile.TemporaryDirectory() as work:
        folder = _copied(options.folder, Path(work, "photos"), options.copies)
        place = Path(work, "index")
        subprocess.run([sys.executable, "-m", "lcse_plugins", "index", folder, "--out", place], check=True)
        browser = _browser(work)
        try:
            starts = [_first_result(browser, folder, place) for _ in range(3)]
            process, address = _serve(folder, place)
            try:
                browser.get(address)
                _wait(browser)
                keys = [ms for query in QUERIES for ms in browser.execute_async_script(TYPE, query)]
            finally:
                process.terminate()
                process.wait()
        finally:
            browser.quit()
    found = {
        "pictures": len(list(options.folder.glob("*.jpg"))) * options.copies,
        "start_s": [round(s, 2) for s in starts],
    }
    p50, p95 = np.percentile(keys, [50, 95])
    print(json.dumps({**found, "keys": len(keys), "key_p50_ms": round(p50, 1), "key_p95_ms": round(p95, 1)}))


def _copied(folder: Path, target: Path, copies: int) -> Path:
    if copies == 1:
        return folder
    target.mkdir()
    for photo in folder.glob("*.jpg"):
        for copy in range(copies):
            shutil.copy(photo, target / f"{photo.stem}-{copy}.jpg")
    return target


def _serve(folder: Path, place: Path) -> tuple[subprocess.Popen[str], str]:
    command = [
        sys.executable,
        "-m",
        "lcse_plugins",
        "serve",
        str(folder),
        "--out",
        str(place),
        "--port",
        "0",
        "--no-open",
    ]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    address = ""
    while not address.startswith("http"):
        address = process.stdout.readline().strip()
    return process, address


def _first_result(browser: Any, folder: Path, place: Path) -> float:
    """Seconds from the command to the pictures of a query that was typed at once."""
    browser.get("about:blank")
    start = time.perf_counter()
    process, address = _serve(folder, place)
    try:
        browser.get(address)
        browser.find_element("id", "query").send_keys("a dog and no person")
        _wait(browser, "return state.answer?.query == 'a dog and no person' && document.images[0]?.naturalWidth > 0")
        return time.perf_counter() - start
    finally:
        process.terminate()
        process.wait()


def _wait(browser: Any, holds: str = "return document.querySelector('.card') != null") -> None:
    while not browser.execute_script(holds):
        time.sleep(0.01)


def _browser(work: str) -> Any:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*FLAGS.split(), f"--user-data-dir={work}/chromium"):
        options.add_argument(flag)
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    browser = webdriver.Chrome(options=options, service=service)
    browser.set_script_timeout(120)
    return browser


if __name__ == "__main__":
    main()
