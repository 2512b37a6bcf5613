"""Folders of pictures as an index on disk.

`image_index` is its face: build, open, search. `update` brings it up to date with the folders; `store` keeps it: a
table of pictures, a file of vectors, checksums of both.
"""

from lcse_plugins.index.image_index import ImageIndex, IndexReport, cache_place
from lcse_plugins.index.store import is_index

__all__ = ["ImageIndex", "IndexReport", "cache_place", "is_index"]
