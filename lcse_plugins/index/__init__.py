"""An image folder as an index on disk: `image_index` is its face.

`update` brings it up to date with the folder, `opening` says whether it may be written there. `store` keeps it: `files`
are the rows on disk, `table` is what is known of each picture. `scale` makes the similarities of tiles comparable with
those of whole pictures.
"""

from lcse_plugins.index.image_index import ImageIndex, IndexReport

__all__ = ["ImageIndex", "IndexReport"]
