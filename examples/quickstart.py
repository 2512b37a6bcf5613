"""Rank a folder of photographs by logic, with the reason beside each: nothing to download, nothing to set up.

python examples/quickstart.py [FOLDER] ["QUERY"]
"""

from __future__ import annotations

import sys
from pathlib import Path

import lcse_plugins
from lcse_plugins import Candidate, LogicScorer, ScoringConfig, load_encoder
from lcse_plugins.images.reading import walk_images

BUNDLED = Path(lcse_plugins.__file__).parent / "demo_photos"


def main(folder: str | Path = BUNDLED, query: str = "a cup and no cat") -> None:
    photos = list(walk_images(folder))
    encoder = load_encoder("starter")
    gallery = [
        Candidate(photo.name, vector) for photo, vector in zip(photos, encoder.encode_images(photos), strict=True)
    ]

    plain = LogicScorer(encoder, config=ScoringConfig(mode="holistic"))
    print("plain similarity:", *(result.id for result in plain.rank(query, gallery, limit=3)))

    for result in LogicScorer(encoder).rank(query, gallery, limit=3):
        print(result.explain())


if __name__ == "__main__":
    main(*sys.argv[1:3])
