"""The picture report in a real browser: `make test-browser` installs what this needs and runs it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lcse_plugins.cli.report import write_report
from tests.cli.test_report import NASTY, comparison

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def browser() -> Iterator[Any]:
    """A headless Chromium that records its console and its network requests."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="run `make test-browser`")
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not program or not driver:
        pytest.skip("chromium and chromedriver are not installed; run `make test-browser`")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1200,1400"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    session = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))
    try:
        yield session
    finally:
        session.quit()


def requests_of(browser: Any) -> list[str]:
    messages = (json.loads(entry["message"])["message"] for entry in browser.get_log("performance"))
    return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]


@pytest.fixture
def page(tmp_path: Path) -> str:
    names = ["umbrella person.png", "umbrella.png", "person.png", "bench.png", "street.png", NASTY]
    write_report(tmp_path / "report.html", [comparison(tmp_path, names, "umbrella and no person")])
    return (tmp_path / "report.html").as_uri()


def test_renders_quietly_and_alone(browser: Any, page: str) -> None:
    browser.get(page)
    assert browser.get_log("browser") == []
    fetched = [url for url in requests_of(browser) if not url.startswith("data:")]
    assert fetched == [page]
    broken = browser.execute_script("return [...document.images].filter(i => !i.naturalWidth).length")
    assert broken == 0
    assert browser.execute_script("return document.scripts.length") == 0
    names = browser.execute_script("return [...document.querySelectorAll('.name')].map(e => e.textContent)")
    assert any("<script>alert(1)" in name for name in names)
    (ROOT / "artefacts").mkdir(exist_ok=True)
    browser.save_screenshot(str(ROOT / "artefacts" / "report.png"))


def test_fits_a_phone(browser: Any, page: str) -> None:
    browser.set_window_size(500, 900)
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 375, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    )
    browser.get(page)
    assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")


def test_is_readable_in_the_dark_and_by_keyboard(browser: Any, page: str) -> None:
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": dark})
    browser.get(page)
    colours = "const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]"
    ground, ink = browser.execute_script(colours)
    assert ground == "rgb(15, 19, 24)"
    assert ink == "rgb(230, 234, 239)"
    browser.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": "keyDown", "key": "Tab", "code": "Tab"})
    assert browser.execute_script("return document.activeElement.tagName") == "LI"
    assert browser.execute_script("return [...document.images].every(i => i.alt)")
