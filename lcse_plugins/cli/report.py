"""The picture report: one HTML file that shows plain similarity beside logic, and the reason for every picture.

The file holds its pictures, loads nothing and runs nothing: a content policy inside forbids both. Whatever comes from
file names and queries is escaped.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TypeAlias

from lcse_plugins.errors import ImageError
from lcse_plugins.images.thumbnails import jpeg_thumbnail
from lcse_plugins.query import canonical, draw
from lcse_plugins.scoring.evidence import ConceptEvidence
from lcse_plugins.scoring.results import Ranked, Ranking

__all__ = ["Comparison", "render_report", "write_report"]

THUMBNAIL_SIDE = 256

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"

_Pictures: TypeAlias = "dict[Path, str | ImageError]"  # what was met so far: a data URI, or why there is none


@dataclass(frozen=True, eq=False)
class Comparison:
    """One query ranked twice: by plain similarity, and by logic.

    Attributes:
        plain: The ranking of the encoder alone.
        logical: The ranking that obeys the query; may be longer, to tell where a picture went.
        shown: How many pictures of each to show.
    """

    plain: Ranking
    logical: Ranking
    shown: int = 6


def write_report(path: str | Path, comparisons: Iterable[Comparison], *, title: str = "Image search by logic") -> None:
    """Write the report; candidates' payloads are the paths of their pictures.

    Raises:
        OSError: the file cannot be written.
    """
    Path(path).write_text(render_report(comparisons, title=title), encoding="utf-8")


def render_report(comparisons: Iterable[Comparison], *, title: str = "Image search by logic") -> str:
    """The report as HTML text; where a picture cannot be read, it says why."""
    style = (files("lcse_plugins.cli") / "report.css").read_text(encoding="utf-8")
    pictures: _Pictures = {}
    sections = "\n".join(_section(number, item, pictures) for number, item in enumerate(comparisons, start=1))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{escape(title)}</h1>
<p>Left: what the encoder alone finds. Right: the same encoder, with the logic of the query executed outside it.
Bars say how much of each concept is seen: <span class="fits">green</span> where it is wanted,
<span class="fails">red</span> where it is not.</p>
</header>
<main>
{sections}
</main>
</body>
</html>
"""


def _section(number: int, comparison: Comparison, pictures: _Pictures) -> str:
    parse = comparison.logical.parse
    notes = "".join(f"<p class='note'>{escape(note)}</p>" for note in (*parse.notes, *filter(None, [parse.error])))
    return f"""<section aria-labelledby="query-{number}">
<h2 id="query-{number}">{escape(parse.text)}</h2>
<pre class="tree" aria-label="how the query is read">{escape(draw(canonical(parse.query)))}</pre>
{notes}<div class="columns">
{_column("Plain similarity", comparison.plain[: comparison.shown], comparison, pictures)}
{_column("With logic", comparison.logical[: comparison.shown], comparison, pictures)}
</div>
</section>"""


def _column(heading: str, results: Sequence[Ranked], comparison: Comparison, pictures: _Pictures) -> str:
    logical_place = {result.id: place for place, result in enumerate(comparison.logical, start=1)}
    logical = heading != "Plain similarity"
    by_id = {result.id: result for result in comparison.logical}
    cards = []
    for place, result in enumerate(results, start=1):
        # The plain column shows the evidence too: it is what logic holds against a picture.
        judged = by_id.get(result.id, result)
        moved = "" if logical else _moved(place, logical_place.get(result.id), len(comparison.logical))
        cards.append(_card(place, judged if logical else result, judged.evidence, moved, pictures))
    reason = "no picture satisfies the query far enough" if comparison.plain else "there are no pictures"
    body = "<ol>\n" + "\n".join(cards) + "\n</ol>" if cards else f'<p class="note">{reason}</p>'
    return f'<div class="column"><h3>{escape(heading)}</h3>\n{body}</div>'


def _moved(place: int, new_place: int | None, places: int) -> str:
    if new_place is None and places:
        return f'<p class="moved dropped">with logic not among the first {places}</p>'
    if new_place is not None and new_place > place:
        return f'<p class="moved dropped">logic moves it to place {new_place}</p>'
    return ""


def _card(place: int, result: Ranked, evidence: Sequence[ConceptEvidence], moved: str, pictures: _Pictures) -> str:
    name = escape(str(result.id))
    correction = "" if result.correction == 0 else f" = {result.holistic:.3f} {result.correction:+.3f}"
    bars = "\n".join(_bar(item) for item in evidence)
    return f"""<li tabindex="0">
{_picture(place, result, pictures)}
<p class="name"><b>{place}</b> {name}</p>
<p class="score">score {result.score:.3f}{correction}</p>
<dl>
{bars}
</dl>{moved}
</li>"""


def _picture(place: int, result: Ranked, pictures: _Pictures) -> str:
    path = Path(result.candidate.payload)
    if path not in pictures:
        pictures[path] = _data_uri(path)
    picture = pictures[path]
    if isinstance(picture, ImageError):
        return f'<p class="missing">This picture could not be shown: {escape(picture.reason)}</p>'
    return f'<img src="{picture}" alt="place {place}: {escape(str(result.id))}" loading="lazy">'


def _bar(item: ConceptEvidence) -> str:
    label = escape(item.label)
    percent = round(100 * item.probability)
    return (
        f'<div><dt>{label} <span class="{"fits" if item.fits else "fails"}">{"✓" if item.fits else "✗"}</span></dt>'
        f'<dd class="{"unwanted" if item.negated else "wanted"}"><span class="bar" style="width:{percent}%"></span>'
        f'<span class="value">{percent} % seen</span></dd></div>'
    )


def _data_uri(path: Path) -> str | ImageError:
    try:
        thumbnail = jpeg_thumbnail(path, max_side=THUMBNAIL_SIDE)
    except ImageError as error:
        return error
    assert thumbnail is not None
    return "data:image/jpeg;base64," + base64.b64encode(thumbnail).decode("ascii")
