"""The page in a headless Chromium, as a person uses it. Screenshots go to `build/screenshots`.

`make test-browser` installs what this needs.
"""

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
import uvicorn

from lcse_plugins import ImageIndex, LogicScorer
from lcse_plugins.cli.page.app import PageState, make_app
from lcse_plugins.cli.page.collections import FolderCollection
from lcse_plugins.cli.page.report import Comparison, write_report
from lcse_plugins.images.gallery import demo_photos

pytestmark = pytest.mark.browser

SHOTS = Path(__file__).resolve().parents[2] / "build" / "screenshots"
NASTY = "<img src=x onerror=hacked=1>\"'&<script>hacked=1<script>.jpg"
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
    *("--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


ENTER, ESCAPE, DOWN, RIGHT, TAB, SPACE = "\ue007", "\ue00c", "\ue015", "\ue014", "\ue004", " "
DOGS = ["dog-in-armchair.jpg", "spaniel-in-harness.jpg", "white-dog-on-bench.jpg"]


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


def test_results_come_while_typing(page: Page, address: str) -> None:
    page.open(address)
    page.shoot("start-light")
    before = page.names()
    page.search("a dog")
    first = page.names()
    page.find("#query").send_keys(" and no person")
    page.wait(lambda: page.texts("#reading .chip") == ["dog×", "no person×"])
    assert before != first != page.names()
    assert set(DOGS) <= set(page.names()[:5])
    assert page.texts(".card .line")[0] == "dog: clear · no person: not seen"
    assert "satisfy this; the rest are the nearest." in page.texts("#summary")[0]
    assert page.texts(".ends") == ["The answer ends here; these are the nearest."]
    assert all(" dog " in alt for alt in page.run("return [...document.querySelectorAll('.card img')].map(i => i.alt)"))
    page.shoot("dog-light")
    found = page.names()
    page.find("#query").send_keys(" AND (")  # half a query leaves what was found
    page.wait(lambda: page.find("#note").is_displayed())
    assert page.names() == found


def test_a_chip_is_flipped_and_removed(page: Page, address: str) -> None:
    page.open(address)
    page.search("a dog and no person")
    page.find(".chip button").click()
    page.wait(lambda: page.texts("#reading .chip") == ["no dog×", "no person×"])
    assert not set(DOGS) & set(page.names()[:10])
    page.find(".chip:last-of-type button + button").click()
    page.wait(lambda: page.texts("#reading .chip") == ["no dog×"])
    page.find("#reading .link").click()
    page.wait(lambda: page.texts("#reading .chip") == ["dog×", "no person×"])


def test_what_is_doubtful_or_not_there_is_said(page: Page, address: str) -> None:
    page.open(address)
    page.search("a dog and no dog")
    page.wait(lambda: page.find("#note").is_displayed())
    assert "contradiction" in page.texts("#note")[0]
    top = page.find(".card").rect["y"]
    page.shoot("doubtful-light")
    page.search("a helicopter and no people")
    assert page.texts("#summary") == ["Nothing here satisfies this; these are the nearest."]
    assert page.texts(".ends") == []
    assert page.find(".card").rect["y"] == top  # the note came and went, and nothing moved
    page.shoot("nothing-light")


def test_pictures_stay_where_they_are_known(page: Page, address: str) -> None:
    page.open(address)
    page.search("a dog")
    page.run("document.querySelectorAll('.card').forEach((card) => { card.kept = true })")
    page.search("a dog and no person")
    assert page.run("return [...document.querySelectorAll('.card')].every((card) => card.kept)")
    page.search("a dog in an armchair beside a very long and winding description of nothing in particular")
    assert page.run("return [...document.querySelectorAll('.line')].every((e) => e.scrollWidth <= e.clientWidth)")


def test_strictness_and_mode(page: Page, address: str) -> None:
    page.open(address)
    page.search("a dog and no person")
    every = len(page.names())
    page.run("strict.value = 50; strict.dispatchEvent(new Event('input'))")
    page.wait(lambda: 0 < len(page.names()) < every)
    assert page.texts("#strict-text") == ["truth ≥ 0.97"]
    page.run("strict.value = 0; strict.dispatchEvent(new Event('input'))")
    page.wait(lambda: len(page.names()) == every)
    page.run("mode.value = 'holistic'; mode.dispatchEvent(new Event('change'))")
    page.wait(lambda: page.names()[:1] != DOGS[:1])


def test_plain_similarity_beside_logic(page: Page, address: str) -> None:
    page.open(address)
    page.search("a dog and no person")
    page.find("#compare").click()
    page.wait(lambda: page.texts(".columns h2") == ["With logic", "Plain similarity"])
    logic, plain = (page.texts(f".columns > :nth-child({n}) .name") for n in (1, 2))
    assert set(DOGS) <= set(logic[:5])
    assert plain[0] == "skier-with-dog.jpg"
    assert any("person" in text for text in page.texts(".columns > :nth-child(2) .fails"))
    page.shoot("compare-light")


def test_a_picture_opens_with_its_reasons(page: Page, address: str) -> None:
    page.open(address)
    page.search("a dog and no person")
    first = page.names()[0]
    page.find(".open").click()
    page.wait(lambda: page.find("#dialog").is_displayed())
    assert page.texts("#dialog-name") == [first]
    assert [text.startswith(word) for text, word in zip(page.texts("#bars dt"), ("dog", "no person"), strict=True)]
    assert not page.find("#arithmetic").is_displayed()
    page.find("#fold summary").click()
    assert "/ 2 =" in page.find("#arithmetic").text
    page.shoot("arithmetic-light")
    page.find("#more-like").click()
    page.wait(lambda: f"like {first}×" in page.texts("#reading .chip"))
    page.find("#reading .chip:last-of-type button").click()
    page.wait(lambda: f"not like {first}×" in page.texts("#reading .chip"))
    page.wait(lambda: page.names()[0] != first)


def test_a_picture_to_search_by(page: Page, address: str, photos: Path) -> None:
    page.open(address)
    page.find("#file").send_keys(str(photos / "zebras.jpg"))
    page.wait(lambda: page.texts("#reading .chip") == ["like zebras.jpg×"])
    page.wait(lambda: page.names()[0] == "zebras.jpg")


COLOURS = """
const ground = (e) => {
  const colour = getComputedStyle(e).backgroundColor;
  return colour.startsWith("rgba") ? ground(e.parentElement) : colour;
};
return arguments[0].map((s) => document.querySelector(s)).map((e) => [getComputedStyle(e).color, ground(e)])
  .concat([["#bars i", "#bars dd"].map((s) => getComputedStyle(document.querySelector(s)).backgroundColor)]);
"""
TEXTS = [".chip button", ".chip.excluded button", "#dialog-path", "#bars dt span"]
TEXTS += "#where #by-picture #summary .line .fails .name .ends".split()


@pytest.mark.parametrize("dark", [False, True])
def test_texts_and_bars_stand_out(page: Page, address: str, dark: bool) -> None:
    page.open(address, dark=dark)
    page.search("a dog and no person")
    if dark:
        page.shoot("dog-dark")
    page.find(".open").click()
    page.wait(lambda: page.find("#dialog").is_displayed())
    page.shoot("dialog-dark" if dark else "dialog-light")
    *texts, bar = page.run(COLOURS, TEXTS)
    assert [name for name, colours in zip(TEXTS, texts, strict=True) if contrast(*colours) < 4.5] == []
    assert contrast(*bar) >= 3


def contrast(*colours: str) -> float:
    darker, lighter = sorted(map(luminance, colours))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in colour[4:-1].split(",")]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_chosen_ones_are_copied_and_exported(page: Page, address: str) -> None:
    page.open(address)
    page.search("a dog and no person")
    page.run("window.saved = []; URL.createObjectURL = (blob) => (blob.text().then((t) => saved.push(t)), '#')")
    page.run("navigator.clipboard.writeText = async (text) => { window.copied = text }")
    page.find("#copy").click()
    assert page.wait(lambda: page.run("return window.copied")).count("\n") >= 4
    page.run("document.querySelectorAll('.pick')[1].click()")
    assert page.texts("#chosen") == ["1 chosen"]
    page.find("#export").click()
    exported = json.loads(page.wait(lambda: page.run("return saved[0]")))
    assert [result["id"] for result in exported["results"]] == [page.names()[1]]
    assert exported["results"][0]["evidence"][0]["presence"] > 0.5
    page.find("#unchoose").click()
    assert page.texts("#chosen") == [""]


def test_by_keyboard_alone(page: Page, address: str) -> None:
    page.open(address)
    page.run("document.activeElement.blur()")
    page.press("/")
    page.press(*"a dog and no person")
    page.wait(lambda: page.run("return state.answer.query") == "a dog and no person")
    page.press(DOWN, RIGHT)
    focused = "return document.activeElement.closest('.card')?.dataset.id"
    assert page.run(focused) == page.names()[1]
    page.press("x", ENTER)
    page.wait(lambda: page.find("#dialog").is_displayed())
    assert page.texts("#dialog-name") == [page.names()[1]]
    page.press(RIGHT)
    assert page.texts("#dialog-name") == [page.names()[2]]
    page.press(ESCAPE)
    page.wait(lambda: not page.find("#dialog").is_displayed())
    assert page.run(focused) == page.names()[2]
    assert page.texts("#chosen") == ["1 chosen"]
    page.press("/", TAB, TAB, ENTER)  # past the button for pictures, to the first chip
    page.wait(lambda: page.texts("#reading .chip")[0] == "no dog×")


def test_fits_a_phone(page: Page, address: str) -> None:
    page.open(address, width=390, height=844)
    page.search("either a dog or a cat, but no people")
    fits = "return Math.max(document.documentElement.scrollWidth, dialog.scrollWidth) <= innerWidth"
    assert page.run(fits)
    page.shoot("phone-light")
    page.find("#compare").click()
    page.wait(lambda: page.texts(".columns h2"))
    assert page.run(fits)
    page.find(".open").click()
    page.wait(lambda: page.find("#dialog").is_displayed())
    assert page.run(fits)
    page.shoot("phone-dialog-light")


def test_names_and_queries_full_of_html_stay_text(page: Page, address: str) -> None:
    page.open(address)
    page.search('horse AND NOT "<img src=x onerror=hacked=1>"')
    assert NASTY in page.names()
    assert "no <img src=x onerror=hacked=1>×" in page.texts("#reading .chip")
    page.run("[...document.querySelectorAll('.card')].find((c) => c.dataset.id.includes('hacked')).firstChild.click()")
    assert page.texts("#dialog-name") == [NASTY]
    assert page.run("return typeof hacked") == "undefined"
    assert page.run("return document.querySelectorAll('img[src=x], main script').length") == 0
    assert page.complaints() == []


def test_nothing_is_asked_of_anybody_else(page: Page, address: str) -> None:
    page.open(address)
    page.search("a dog and no person")
    page.find(".open").click()
    page.shoot("opened-light")
    asked = [url for url in page.requested() if not url.startswith("data:")]
    assert len(asked) > 10
    assert all(url.startswith(address) for url in asked)
    assert page.complaints() == []
    assert page.run("return fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')") == "refused"


def test_indexing_is_seen_on_the_page(page: Page, state: PageState, scorer: LogicScorer) -> None:
    waiting = PageState(title="photographs", busy=True, done=12, total=48)
    with served(waiting, scorer) as address:
        page.driver.get(address)
        page.wait(lambda: page.texts("#progress-text") == ["Indexing: 12 of 48 pictures"])
        page.shoot("indexing")
        assert state.collection is not None
        waiting.put(state.collection)
        waiting.busy, waiting.message = False, "3 .heic files were passed over"
        page.wait(page.names)
        page.wait(lambda: page.texts("#where") == ["photographs · 49 pictures · 3 .heic files were passed over"])
        page.driver.get("about:blank")
        time.sleep(0.2)


def test_the_report_works_alone(page: Page, photos: Path, scorer: LogicScorer, tmp_path: Path) -> None:
    index = ImageIndex.open(photos.parent / "index")
    plain = LogicScorer.of(scorer, mode="holistic")
    comparisons = [
        Comparison(scorer.encode(query), scorer.rank(query, index, limit=20), plain.rank(query, index, limit=12))
        for query in ("a dog and no person", 'horse AND NOT "<script>hacked=1</script>"')
    ]
    write_report(tmp_path / "report.html", comparisons, title="A <b>report</b>")
    page.open((tmp_path / "report.html").as_uri())
    assert page.run("return typeof hacked") == "undefined"
    assert set(DOGS) <= set(page.names()[:5])
    every = len(page.names())
    page.shoot("report-light")
    page.run("strict.value = 50; strict.dispatchEvent(new Event('input'))")
    page.wait(lambda: 0 < len(page.names()) < every)
    page.find("#compare").click()
    page.wait(lambda: page.texts(".columns h2"))
    page.find(".open").click()
    assert page.find("#dialog-path a").get_attribute("href").startswith("file://")
    page.press(ESCAPE)
    page.run("query.selectedIndex = 1; query.dispatchEvent(new Event('change'))")
    page.wait(lambda: page.texts("#reading .chip")[:1] == ["horse"])
    assert page.run("return typeof hacked") == "undefined"
    assert [url for url in page.requested() if not url.startswith("data:")] == [(tmp_path / "report.html").as_uri()]
    assert page.complaints() == []
