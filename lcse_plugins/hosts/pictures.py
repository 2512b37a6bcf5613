"""Pictures as hosts need them: opened for an embedding model, made small for a language model."""

from __future__ import annotations

import logging

from PIL.Image import Image

from lcse_plugins.errors import ImageError
from lcse_plugins.hosts.notices import Notices
from lcse_plugins.images.keys import holds_picture
from lcse_plugins.images.locations import ImageAccess, ImageLocation, is_web_url, location_name, read_image
from lcse_plugins.images.reading import load_image
from lcse_plugins.images.thumbnails import jpeg_thumbnail

__all__ = ["open_image", "picture_to_send"]

_notices = Notices(logging.getLogger(__name__))


def open_image(location: ImageLocation | Image, *, access: ImageAccess) -> Image:
    """The picture at a location, or one that is open already, fit for an encoder; an `ImageError` names the place."""
    if isinstance(location, Image):
        return load_image(location)
    picture = read_image(location, access=access)
    try:
        return load_image(picture)
    except ImageError as error:
        raise ImageError(location_name(location), error.reason) from error


def picture_to_send(
    location: ImageLocation, *, access: ImageAccess, max_side: int, max_bytes: int | None = None
) -> bytes | None:
    """A small JPEG of a picture, to go to a language model; None if it cannot be made small enough.

    A store must not choose which files leave the machine: only what `access` allows is read, and the log warns once if
    no root confines it. URLs are fetched here if that is allowed, and never handed on. What cannot be read, or may not
    be, is an `ImageError`.
    """
    picture = read_image(location, access=access)
    inline = isinstance(location, bytes) or holds_picture(location)
    if access.root is None and not inline and not is_web_url(str(location)):
        _notices.warn(
            "pictures are sent to a model from any path that the store names, first %s; confine them with "
            "image_access=ImageAccess(root=FOLDER)",
            location_name(location),
        )
    return jpeg_thumbnail(picture, max_side=max_side, max_bytes=max_bytes)
