"""The picture files of folders: which can be read, which cannot and why, and what was passed over."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from lcse_plugins.errors import ImageError
from lcse_plugins.images.reading import file_fault, picture_suffixes
from lcse_plugins.scoring.arguments import has_surrogates

__all__ = ["passed_over_note", "scan_folder", "walk_images"]

_PHONE = frozenset({".heic", ".heif", ".hif", ".avif"})
"""Read with the extra `heic`; .avif by Pillow alone where it was built with it."""

_UNREADABLE = frozenset(".arw .cr2 .cr3 .dng .jp2 .jxl .nef .orf .psd .raf .rw2 .svg".split())


def scan_folder(folder: str | Path, *, passed_over: Counter[str] | None = None) -> Iterator[Path | ImageError]:
    """Each picture file under a folder, chosen by suffix: its path, or an error for one that cannot be used.

    Only regular files of bounded size come as paths. Pipes, devices, links that lead nowhere, empty and oversized
    files, names that are not valid Unicode, and folders that cannot be listed come as errors. Nothing is opened.

    Files of a folder come first, then its sub-folders, each in the order of their names. Hidden files and folders are
    left out; links to files are followed, links to folders are not, so the scan always ends.
    """
    suffixes, unlisted = picture_suffixes(), list[ImageError]()

    def refuse(error: OSError) -> None:
        reasons = {FileNotFoundError: "there is no such folder", NotADirectoryError: "it is a file; give its folder"}
        fault = ImageError(error.filename or folder, f"cannot be listed ({reasons.get(type(error), error)})")
        if Path(fault.source) == Path(folder):
            raise fault from error
        fault.__cause__ = error
        unlisted.append(fault)

    for parent, folders, files in os.walk(folder, onerror=refuse):
        yield from unlisted
        unlisted.clear()
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            suffix = os.path.splitext(name)[1].lower()
            if name.startswith("."):
                continue
            if suffix in suffixes:
                path = Path(parent, name)
                if has_surrogates(str(path)):
                    yield ImageError(path, "its name is not valid Unicode; rename it")
                else:
                    yield file_fault(path) or path
            elif passed_over is not None and suffix in _PHONE | _UNREADABLE:
                passed_over[suffix] += 1
    yield from unlisted


def walk_images(folder: str | Path) -> list[Path]:
    """The picture files under a folder that can be read, in a fixed order."""
    return [found for found in scan_folder(folder) if isinstance(found, Path)]


def passed_over_note(passed_over: Mapping[str, int]) -> str | None:
    """One line that says how many pictures were passed over, and how to read them; None when none were."""
    notes = []
    for phone, advice in ((True, 'to read them, pip install "lcse-plugins[heic]"'), (False, "export them as JPEG")):
        counts = [f"{n:,} {suffix}" for suffix, n in sorted(passed_over.items()) if (suffix in _PHONE) == phone]
        notes += [f"{', '.join(counts)} passed over: {advice}"] if counts else []
    return "; ".join(notes) or None
