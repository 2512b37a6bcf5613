"""Make the bundled gallery: everyday photographs under CC BY 2.0, small, with their sources.

    python tools/build_gallery.py FOLDER

FOLDER holds photographs of COCO val2017 and a `photos.jsonl` with id, file, license_name and flickr_url of each. Every
photograph chosen below must be there under the Attribution License. The pictures and SOURCES.md are written to
`lcse_plugins/images/gallery`; what is there is replaced.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from urllib.parse import urlsplit

from PIL import Image

GALLERY = Path(__file__).parents[1] / "lcse_plugins" / "images" / "gallery"
LONG_SIDE = 384
QUALITY = 90
LICENCE = "Attribution License"

CHOSEN = {
    # dogs, alone
    17029: "dog-catching-frisbee",
    283412: "puppy-with-newspaper",
    377575: "poodle-on-path",
    392818: "spaniel-in-harness",
    446522: "dog-in-armchair",
    546829: "white-dog-on-bench",
    # dogs with people
    80153: "skier-with-dog",
    107226: "dogs-pulling-carts",
    190140: "man-and-dogs-in-boat",
    490171: "surfer-and-dog",
    # cats
    119233: "cat-on-laptop",
    181859: "cat-in-sink",
    343076: "tabby-on-chair",
    # streets with cars
    97679: "parked-cars",
    189698: "car-by-street-sign",
    210273: "traffic-jam",
    313588: "umbrella-in-street",
    # streets without
    356387: "street-with-bicycles",
    415536: "bus-in-forest",
    426166: "bicycle-by-shutters",
    496722: "red-post-box",
    531036: "red-bus",
    # trains
    565778: "blue-train",
    566524: "train-by-sea",
    # kitchens, empty and not
    30213: "old-kitchen",
    175364: "kitchen-cabinets",
    565776: "white-kitchen",
    294350: "cook-at-stove",
    374083: "cutting-a-cake",
    # food
    56288: "ham-sandwich",
    174123: "pizza-with-fork",
    286553: "couple-with-pizza",
    352900: "pasta",
    498919: "oranges-and-pears",
    # animals
    21903: "feeding-an-elephant",
    51309: "horses",
    79565: "giraffes",
    126107: "gull-over-beach",
    218424: "zebras",
    309452: "yellow-bird",
    347456: "elephants",
    454798: "horse-and-rider",
    # sports and places
    39551: "tennis-player",
    148739: "surfer",
    190753: "people-on-benches",
    409475: "two-skiers",
    421757: "boats",
    553664: "laptop-on-desk",
}

LETTERBOXED = {"traffic-jam"}
"""Photographs with black bars above and below; the bars are cut off."""

HEAD = """# Sources

The photographs that `lcse demo` and the examples search: {count} pictures of COCO val2017, first published on Flickr
under the Creative Commons Attribution 2.0 licence (CC BY 2.0, https://creativecommons.org/licenses/by/2.0/). They are
scaled down to at most {side} pixels and renamed; {cropped} also lost its black bars. The page of each names its author.

| file | picture | page | licence |
|---|---|---|---|
"""


def main(folder: str) -> None:
    """Write the gallery from the photographs in a folder."""
    records = map(json.loads, (Path(folder) / "photos.jsonl").read_text(encoding="utf-8").splitlines())
    known = {record["id"]: record for record in records}
    for old in GALLERY.glob("*.jpg"):
        old.unlink()
    rows = []
    for number, name in sorted(CHOSEN.items(), key=lambda item: item[1]):
        record = known[number]
        if record["license_name"] != LICENCE:
            raise SystemExit(f"{name} is under {record['license_name']!r}")
        _write(Path(folder) / record["file"], name)
        source = record["flickr_url"].replace("http://", "https://")
        photo = urlsplit(source).path.rpartition("/")[2].partition("_")[0]
        rows.append(f"| {name}.jpg | {source} | https://www.flickr.com/photo.gne?id={photo} | CC BY 2.0 |\n")
    head = HEAD.format(count=len(rows), side=LONG_SIDE, cropped=", ".join(sorted(LETTERBOXED)))
    (GALLERY / "SOURCES.md").write_text(head + "".join(rows), encoding="utf-8")
    size = sum(path.stat().st_size for path in GALLERY.glob("*.jpg"))
    print(f"{len(rows)} photographs, {size / 1e6:.2f} MB, in {GALLERY}")


def _write(source: Path, name: str) -> None:
    picture = Image.open(source).convert("RGB")
    if name in LETTERBOXED:
        bright = picture.convert("L").point(lambda value: 255 if value > 40 else 0)
        _, top, _, bottom = bright.getbbox() or (0, 0, *picture.size)
        picture = picture.crop((0, top + 2, picture.width, bottom - 2))
    picture.thumbnail((LONG_SIDE, LONG_SIDE), Image.Resampling.LANCZOS)
    picture.save(GALLERY / f"{name}.jpg", "JPEG", quality=QUALITY, optimize=True, progressive=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
