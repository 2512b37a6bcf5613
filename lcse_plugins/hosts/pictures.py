"""Pictures for a host's embeddings, opened wherever they are."""

from __future__ import annotations

from PIL.Image import Image

from lcse_plugins.errors import ImageError
from lcse_plugins.images.locations import ImageAccess, ImageLocation, location_name, read_image
from lcse_plugins.images.reading import load_image

__all__ = ["open_image"]


def open_image(location: ImageLocation | Image, *, access: ImageAccess) -> Image:
    """The picture at a location; one that is open already is made fit for an encoder.

    Raises:
        ImageError: it cannot be read or decoded; the error names the location.
    """
    if isinstance(location, Image):
        return load_image(location)
    picture = read_image(location, access=access)
    try:
        return load_image(picture)
    except ImageError as error:
        raise ImageError(location_name(location), error.reason) from error
