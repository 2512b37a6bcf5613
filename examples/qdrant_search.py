"""Boolean image search over a Qdrant collection, offline, in one process.

    python examples/qdrant_search.py [FOLDER] [QUERY]

Indexes the photographs of FOLDER (by default those that come with the package) into an in-memory Qdrant collection,
then asks the same query twice: by plain similarity, and by its logic. With a server, only the first line of `main`
changes: QdrantClient("http://localhost:6333").
"""

from __future__ import annotations

import sys
from pathlib import Path

from qdrant_client import QdrantClient
from qdrant_lcse import LogicSearch, index_images

import lcse_plugins
from lcse_plugins import LogicScorer, load_encoder

BUNDLED = Path(lcse_plugins.__file__).parent / "images" / "gallery"


def main(folder: Path, query: str) -> None:
    client = QdrantClient(":memory:")
    encoder = load_encoder("starter")
    report = index_images(client, "photos", folder, encoder)
    print(f"{report.indexed} pictures, {report.images_per_second:.0f} a second, {len(report.broken)} left out")

    plain = client.query_points("photos", query=encoder.encode_texts([query])[0].tolist(), limit=4)
    print(f"\nBy similarity to {query!r}:")
    for point in plain.points:
        print(f"  {point.score:+.3f}  {Path((point.payload or {})['path']).name}")

    hits = LogicSearch(client, "photos", LogicScorer(encoder)).query(query, limit=4)
    print(f"\nBy its logic ({'proved complete' if hits.exact else 'best of the candidates'}):")
    print(hits.explain())


if __name__ == "__main__":
    main(
        folder=Path(sys.argv[1]) if len(sys.argv) > 1 else BUNDLED,
        query=sys.argv[2] if len(sys.argv) > 2 else "a cup but no cat",
    )
