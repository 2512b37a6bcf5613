"""Every error this package raises on purpose.

    LcseError
    ├── QueryError (ValueError)          the query cannot be used
    │   ├── QuerySyntaxError             its text breaks the explicit Boolean language
    │   ├── QueryTooComplex              it is too long, too deep or too large
    │   └── QueryNotFlat                 a nested tree was asked for in the flat form
    ├── InvalidCandidate (ValueError)    an image vector, or the set of them, cannot be scored
    ├── InvalidOption (ValueError)       an argument or setting is out of its range
    ├── CalibrationError (ValueError)
    │   ├── CalibrationMismatch          a calibration fitted for one encoder met another
    │   └── LabelFileError               a file of labelled images cannot be read
    ├── EncoderError
    │   ├── UnknownEncoder (ValueError)  no encoder has that name
    │   └── ModelFileError               weights are missing, damaged or do not fit
    ├── ImageError (ValueError)          a picture cannot be read safely
    ├── IndexFileError                   an image index on disk cannot be used
    ├── CollectionError (ValueError)     a vector collection is missing or cannot be scored as asked
    ├── SearchUnavailable                the vector database did not answer
    ├── ParserOutputError                a language model's reply is not a usable tree
    ├── ParserUnavailable                the parser service did not answer
    └── MissingExtra (ImportError)       an optional dependency is not installed

Each message says what was wrong and what to do next; each class carries the facts as attributes.
"""

from __future__ import annotations

from pathlib import Path

_SHOWN = 72
"""Characters of a query that are shown around a fault in it."""


class LcseError(Exception):
    """Base of all errors of this package."""


class QueryError(LcseError, ValueError):
    """The query cannot be used."""


class QuerySyntaxError(QueryError):
    """The text breaks the explicit Boolean language; prints with a caret under the fault."""

    def __init__(self, text: str, offset: int, expected: str, found: str = "") -> None:
        self.text = text
        self.offset = offset
        self.expected = expected
        self.found = found
        super().__init__(text, offset, expected, found)

    def __str__(self) -> str:
        found = f", found {self.found!r}" if self.found else ""
        return f"expected {self.expected} at offset {self.offset}{found}\n{self.context()}"

    def context(self) -> str:
        """The line around the fault, and a caret under it."""
        start = max(0, min(self.offset - _SHOWN // 2, len(self.text) - _SHOWN))
        window = self.text[start : start + _SHOWN]
        printable = "".join(c if c.isprintable() else " " for c in window)
        return f"  {printable}\n  {' ' * (self.offset - start)}^"


class QueryTooComplex(QueryError):
    """The query is too long, too deep or has too many nodes."""


class QueryNotFlat(QueryError):
    """A nested tree has no `{concepts, operator}` form."""


class InvalidCandidate(LcseError, ValueError):
    """An image vector, or the set of them, cannot be scored."""


class InvalidOption(LcseError, ValueError):
    """An argument or setting is out of its range."""


class CalibrationError(LcseError, ValueError):
    """A calibration cannot be fitted, read or used."""


class CalibrationMismatch(CalibrationError):
    """A calibration fitted for one encoder met another."""

    def __init__(self, fitted_for: str, used_with: str) -> None:
        self.fitted_for = fitted_for
        self.used_with = used_with
        super().__init__(fitted_for, used_with)

    def __str__(self) -> str:
        return (
            f"calibration was fitted for encoder {self.fitted_for!r}, not for {self.used_with!r}; "
            "fit one for this encoder with `lcse calibrate`, or pass calibration=None for its preset"
        )


class LabelFileError(CalibrationError):
    """A file of labelled images cannot be read; `line` says where, when that is known."""

    def __init__(self, path: str | Path, reason: str, *, line: int | None = None) -> None:
        self.path = str(path)
        self.reason = reason
        self.line = line
        super().__init__(path, reason)

    def __str__(self) -> str:
        return f"{self.path}{'' if self.line is None else f', line {self.line}'}: {self.reason}"


class EncoderError(LcseError):
    """An encoder cannot be built or cannot do its work."""


class UnknownEncoder(EncoderError, ValueError):
    """No encoder has that name."""


class ModelFileError(EncoderError):
    """Model weights are missing, damaged or do not fit the model."""


class ImageError(LcseError, ValueError):
    """A picture cannot be read safely; `source` says which one."""

    def __init__(self, source: str | Path, reason: str) -> None:
        self.source = str(source)
        self.reason = reason
        super().__init__(source, reason)

    def __str__(self) -> str:
        return f"{self.source}: {self.reason}"


class IndexFileError(LcseError):
    """An image index on disk is missing, damaged or made with another encoder."""


class CollectionError(LcseError, ValueError):
    """A vector collection is missing, or cannot be scored as asked; `collection` says which one."""

    def __init__(self, collection: str, reason: str) -> None:
        self.collection = collection
        self.reason = reason
        super().__init__(collection, reason)

    def __str__(self) -> str:
        return f"collection {self.collection!r}: {self.reason}"


class SearchUnavailable(LcseError):
    """The vector database did not answer; asking again may help."""


class ParserOutputError(LcseError):
    """A language model's reply is not a usable tree."""


class ParserUnavailable(LcseError):
    """The parser service did not answer; asking again may help."""


class MissingExtra(LcseError, ImportError):
    """An optional dependency is not installed or too old; the message names the extra that brings it."""

    def __init__(self, feature: str, extra: str, lacking: str = "an optional dependency") -> None:
        self.feature = feature
        self.extra = extra
        self.lacking = lacking
        super().__init__(feature, extra, lacking)

    def __str__(self) -> str:
        return f'{self.feature} needs {self.lacking}: pip install "lcse-plugins[{self.extra}]"'
