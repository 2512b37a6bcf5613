"""The report: the page as one HTML file with its answers and pictures inside.

It is the same page that `lcse serve` serves, with the same style and script. A content policy with their hashes lets
nothing else run and nothing be loaded.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from lcse_plugins.cli.answers import answer_of
from lcse_plugins.errors import ImageError
from lcse_plugins.images.thumbnails import jpeg_thumbnail
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.scoring.results import Ranking

THUMBNAIL_SIDE = 384


@dataclass(frozen=True, eq=False)
class Comparison:
    """One query ranked twice; candidates' payloads are the paths of their pictures.

    Attributes:
        encoded: The query.
        logical: The ranking that obeys it.
        plain: The ranking of the encoder alone.
        satisfying: How many pictures of the whole collection satisfy the query, where that is known.
    """

    encoded: EncodedQuery
    logical: Ranking
    plain: Ranking
    satisfying: int | None = None


def write_report(path: str | Path, comparisons: Iterable[Comparison], *, title: str = "Image search by logic") -> int:
    """Write the report, and say how many of its pictures could not be shown.

    Raises:
        OSError: the file cannot be written.
    """
    answers, pictures = [], dict[str, str | None]()
    for comparison in comparisons:
        answer = answer_of(comparison.logical, comparison.encoded, comparison.satisfying)
        answer["plain"] = answer_of(comparison.plain, comparison.encoded)["results"]
        answers.append(answer)
        for result in (*answer["results"], *answer["plain"]):
            picture = Path(result["path"])
            result["href"] = picture.absolute().as_uri()
            if result["id"] not in pictures:
                pictures[result["id"]] = _data_uri(picture)
    data = {"title": title, "answers": answers, "pictures": pictures}
    Path(path).write_text(_filled(data, title), encoding="utf-8")
    return sum(picture is None for picture in pictures.values())


def _filled(data: dict[str, Any], title: str) -> str:
    source = files("lcse_plugins.cli.page")
    page, style, script = ((source / name).read_text(encoding="utf-8") for name in ("page.html", "page.css", "page.js"))
    policy = (
        f"default-src 'none'; img-src data:; script-src {_hash(script)}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'"
    )
    # A "<" in JSON stands in texts only, where an escape means the same: no text can end the element it is in.
    inside = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c").replace("\u2028", "\\u2028")
    parts = {
        '<meta charset="utf-8">': '<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        "<title>Image search that obeys and, or, not</title>": f"<title>{escape(title)}</title>",
        '<link rel="stylesheet" href="page.css">': f"<style>{style}</style>",
        '<script src="page.js" defer></script>\n': "",
        "</body>": f'<script type="application/json" id="report">{inside}</script>\n<script>{script}</script>\n</body>',
    }
    for old, new in parts.items():
        before, found, after = page.partition(old)
        assert found, old
        page = before + new + after
    return page


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _data_uri(path: Path) -> str | None:
    try:
        thumbnail = jpeg_thumbnail(path, max_side=THUMBNAIL_SIDE)
    except ImageError:
        return None
    return "data:image/jpeg;base64," + base64.b64encode(thumbnail or b"").decode("ascii")
