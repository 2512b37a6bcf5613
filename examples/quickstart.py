"""Rank a folder of photographs by logic, with the reason beside each: nothing to download, nothing to set up.

python examples/quickstart.py [FOLDER] ["QUERY"]
"""

from __future__ import annotations

import sys
from pathlib import Path

from lcse_plugins import Candidate, LogicScorer, ScoringConfig, load_encoder
from lcse_plugins.images.gallery import demo_photos
from lcse_plugins.images.scan import walk_images


def main(folder: str | Path | None = None, query: str = "a dog and no person") -> None:
    photos = demo_photos() if folder is None else list(walk_images(folder))
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
