"""The bundled photographs: 48 everyday pictures under CC BY 2.0, for demos and examples; see SOURCES.md."""

from __future__ import annotations

from pathlib import Path

__all__ = ["demo_photos"]


def demo_photos() -> list[Path]:
    """The paths of the bundled photographs, by name; `demo_photos()[0].parent` is their folder."""
    return sorted(Path(__file__).parent.glob("*.jpg"))
