"""Make `examples/demo.jpg` and its copy for the site: the demo's lead query, by plain similarity and by logic.

python tools/build_demo_picture.py
"""

from __future__ import annotations

from pathlib import Path

from PIL import Image, ImageDraw, ImageFont, ImageOps

from lcse_plugins import Candidate, LogicScorer
from lcse_plugins.cli.demo import QUERIES
from lcse_plugins.images.gallery import demo_photos
from lcse_plugins.scoring.results import Ranking

ROOT = Path(__file__).parents[1]
TARGETS = (ROOT / "examples" / "demo.jpg", ROOT / "docs" / "assets" / "demo.jpg")
WIDTH, HEIGHT, GAP, SHOWN = 240, 180, 18, 5
GROUND, INK, QUIET, GOOD, BAD = "#fafaf8", "#171a1e", "#57606a", "#17734a", "#b3261e"


def main() -> None:
    """Rank the gallery twice and draw both rows."""
    photos = demo_photos()
    scorer = LogicScorer("starter")
    vectors = scorer.encoder.encode_images(photos)
    gallery = [Candidate(photo.name, vector, photo) for photo, vector in zip(photos, vectors, strict=True)]
    query = QUERIES[0]
    plain = LogicScorer.of(scorer, mode="holistic").rank(query, gallery, limit=SHOWN)
    logical = scorer.rank(query, gallery, limit=SHOWN)
    row = 34 + HEIGHT + 34
    sheet = Image.new("RGB", (GAP + SHOWN * (WIDTH + GAP), 76 + 2 * row + GAP), GROUND)
    draw = ImageDraw.Draw(sheet)
    draw.text((GAP, 18), f"“{query}”", fill=INK, font=_font(32))
    _row(sheet, 76, "Plain similarity", plain)
    _row(sheet, 76 + row, "With logic", logical)
    for target in TARGETS:
        sheet.save(target, "JPEG", quality=88, optimize=True)
        print(f"{target}: {sheet.width} × {sheet.height}, {target.stat().st_size / 1000:.0f} kB")


def _row(sheet: Image.Image, top: int, title: str, ranking: Ranking) -> None:
    draw = ImageDraw.Draw(sheet)
    draw.text((GAP, top), title, fill=QUIET, font=_font(19))
    for place, result in enumerate(ranking):
        left = GAP + place * (WIDTH + GAP)
        picture = ImageOps.fit(Image.open(result.candidate.payload), (WIDTH, HEIGHT), Image.Resampling.LANCZOS)
        sheet.paste(picture, (left, top + 32))
        colour = GOOD if result.satisfies else BAD
        draw.rectangle((left, top + 32 + HEIGHT, left + WIDTH - 1, top + 36 + HEIGHT), fill=colour)
        draw.text((left, top + 40 + HEIGHT), result.reason, fill=colour, font=_font(14))


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


if __name__ == "__main__":
    main()
