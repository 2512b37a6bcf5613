"""A headless Chromium, and the page served to it; `make test-browser` installs what this needs."""

from __future__ import annotations

import json
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lcse_plugins import ImageIndex, LogicScorer
from lcse_plugins.cli.page.app import PageState, make_app
from lcse_plugins.cli.page.collections import FolderCollection
from lcse_plugins.images.gallery import demo_photos

SHOTS = Path(__file__).resolve().parents[2] / "build" / "screenshots"
NASTY = "<img src=x onerror=hacked=1>\"'&<script>hacked=1<script>.jpg"
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
    *("--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


class Page:
    """What the tests do with the browser, in words."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, address: str, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Load an address in a window of a size, in light or dark."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        for log in ("browser", "performance"):
            self.driver.get_log(log)
        self.driver.get(address)
        self.wait(lambda: self.names())

    def run(self, script: str, *arguments: Any) -> Any:
        """The value of some JavaScript."""
        return self.driver.execute_script(script, *arguments)

    def find(self, selector: str) -> Any:
        """The first element of a selector."""
        return self.driver.find_element("css selector", selector)

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements of a selector."""
        found: list[str] = self.run(
            "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent.trim())", selector
        )
        return found

    def names(self) -> list[str]:
        """The pictures shown, in order."""
        return self.texts(".card .name")

    def press(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def search(self, text: str) -> None:
        """Type a query, and wait until it is answered."""
        box = self.find("#query")
        box.clear()
        box.send_keys(text)
        self.wait(lambda: self.run("return state.answer && state.answer.query") == text)

    def wait(self, holds: Callable[[], Any], seconds: float = 20) -> Any:
        """Wait until something holds."""
        end = time.monotonic() + seconds
        while not (found := holds()):
            assert time.monotonic() < end, "it never came to be"
            time.sleep(0.03)
        return found

    def shoot(self, name: str) -> None:
        """Keep a picture of the page, once its own pictures are there."""
        self.wait(lambda: self.run("return [...document.images].every((i) => i.complete || i.loading == 'lazy')"))
        time.sleep(0.3)
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(SHOTS / f"{name}.png"))

    def requested(self) -> list[str]:
        """The addresses that were asked for since the page was opened."""
        messages = (json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))
        return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]

    def complaints(self) -> list[Any]:
        """What the browser's console says."""
        found: list[Any] = self.driver.get_log("browser")
        return found


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver", reason="run `make test-browser`")
    program, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if not program or not chromedriver:
        pytest.skip("chromium and chromedriver are not installed; as root `make test-browser` installs them")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    session = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=chromedriver))
    yield session
    session.quit()


@pytest.fixture
def page(driver: Any) -> Page:
    return Page(driver)


@pytest.fixture(scope="session")
def scorer() -> LogicScorer:
    return LogicScorer("starter")


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled photographs, and one whose name is full of HTML."""
    folder = tmp_path_factory.mktemp("browser") / "photos"
    shutil.copytree(demo_photos()[0].parent, folder, ignore=shutil.ignore_patterns("*.py", "*.md", "__pycache__"))
    shutil.copy(folder / "horses.jpg", folder / NASTY.replace("/", ""))
    return folder


@pytest.fixture(scope="session")
def state(photos: Path, scorer: LogicScorer) -> PageState:
    ImageIndex.build(photos, photos.parent / "index", encoder=scorer.encoder)
    state = PageState(title="photographs", examples=["a dog and no person", "a bus or a train"])
    state.put(FolderCollection(ImageIndex.open(photos.parent / "index")))
    return state


@pytest.fixture(scope="session")
def address(state: PageState, scorer: LogicScorer) -> Iterator[str]:
    """Where the page is served."""
    with served(state, scorer) as address:
        yield address


@contextmanager
def served(state: PageState, scorer: LogicScorer) -> Iterator[str]:
    """Serve a page from a thread."""
    import uvicorn

    app = make_app(state, scorer, token="token")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app, log_level="warning", lifespan="off", ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/token/"
        finally:
            server.should_exit = True
            thread.join()
