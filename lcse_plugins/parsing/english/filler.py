"""Words around a thing that say nothing about it: requests, articles, openings, closings."""

from __future__ import annotations

from collections.abc import Sequence

from lcse_plugins.parsing.english.lexicon import Lexicon
from lcse_plugins.parsing.english.words import Chunk

__all__ = ["Filler"]


class Filler:
    """Finds filler in runs of words, by the tables."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._image = lexicon.words("image")
        self._request_word = lexicon.words("request word")
        self._pointer = lexicon.words("pointer")
        self._owner = lexicon.words("owner")
        self._counted = lexicon.words("counted")
        self._clothing = lexicon.words("clothing")
        self._off = frozenset({"off", "out", "up", "down", "over"})

    def content(self, chunk: Chunk, *, absent: bool = False) -> Chunk:
        """The chunk without request, article and filler around it; may be empty."""
        chunk = self.without_leading(chunk)
        if absent and len(chunk) > 1 and chunk[0].low in self._owner:
            chunk = chunk[1:]
        return self.without_closing(chunk, absent=absent)

    def without_leading(self, chunk: Chunk) -> Chunk:
        """The chunk without request frames, existential openings and articles in front."""
        low = [word.low for word in chunk]
        at = self._request(low)
        while at < len(low):
            length = self._image_frame(low, at) or self._leading(low, at)
            if not length:
                break
            at += length
        return chunk[at:] if not all(word in self._pointer for word in low[at:]) else []

    def _request(self, low: Sequence[str]) -> int:
        """Where a request such as `I was hoping to find some photos of` ends; 0 when there is none."""
        for at, word in enumerate(low[:16]):
            if word in self._image and ((length := self._image_frame(low, at)) > 1 or at + 1 == len(low)):
                return at + length
            if word not in self._request_word:
                return 0
        return 0

    def without_request(self, chunk: Chunk) -> Chunk:
        """The chunk without request frames in front, its article kept."""
        low = [word.low for word in chunk]
        at = 0
        while at < len(low) and (length := self._image_frame(low, at) or self._lexicon.framing.match(low, at)[0]):
            at += length
        return chunk[at:]

    def _image_frame(self, low: Sequence[str], at: int) -> int:
        if low[at] not in self._image:
            return 0
        if at + 1 == len(low):
            return 1
        length, _ = self._lexicon.link.match(low, at + 1)
        return 1 + length if length else 0

    def _leading(self, low: Sequence[str], at: int) -> int:
        length, tag = self._lexicon.leading.match(low, at)
        if low[at + length - 1] == "a" and low[at + length : at + length + 1] and low[at + length] in self._counted:
            length -= 1  # "a few"
        if tag == "request" and self._lexicon.names.match(low, at)[0] > length:
            return 0  # "display case", "make sure sign"
        if tag == "request" and length == 1:
            after = low[at + 1] if at + 1 < len(low) else ""
            if after.isalpha() and low[at] in self._lexicon.words("wake"):
                return 0  # "alexa speaker"
            if after.endswith("ing") or after in self._off:
                return 0  # "show jumping", "keep off"
            if at and low[at - 1] in self._lexicon.words("article"):
                return 0  # "a display of fruit"
        return length

    def without_closing(self, chunk: Chunk, *, absent: bool = False) -> Chunk:
        """The chunk without what is said after a thing: `please`, `in the picture`, `is present`."""
        table = self._lexicon.closing_absent if absent else self._lexicon.closing
        articles = self._lexicon.words("article")
        while len(chunk) > 1:
            low = [word.low for word in chunk]
            length, _ = table.match(low[::-1])
            if not length or length >= len(chunk) or low[-length - 1] in articles:  # "with a present"
                if (low[-1] == "on" and low[-2] in self._clothing) or (absent and self._stands_in(low)):
                    length = 1
                else:
                    break
            chunk = chunk[:-length]
        return chunk

    def _stands_in(self, low: Sequence[str]) -> bool:
        """Whether the last word stands for a thing already named: `red ones`."""
        return low[-1] in ("one", "ones") and low[-2] in self._lexicon.words("adjective")

    def without_dangling(self, chunk: Chunk) -> Chunk:
        """The chunk without the words that only led up to a negation: `that has`, `with`, `where there are`."""
        while chunk:
            length, _ = self._lexicon.dangling.match([word.low for word in reversed(chunk)])
            if not length:
                break
            chunk = chunk[:-length]
        return chunk

    def picture_words(self, chunk: Chunk) -> Chunk:
        """The words for pictures in the chunk: absent from a wall, they are things like any other."""
        return [word for word in chunk if word.low in self._image]

    def people_meant(self, chunk: Chunk) -> Chunk:
        """The chunk where it points to people and names nothing else: `me`, `you and me`; else nothing."""
        people = {word.low for word in chunk} - {"and", "only", "just"}
        if people == {"i"}:  # "I am not in it"
            return [chunk[0]._replace(instead="me")]
        return chunk if people - {"you"} and people <= self._lexicon.words("person meant") else []

    def starts_with_frame(self, chunk: Chunk) -> bool:
        """Whether the chunk begins like a request or with `there is`."""
        low = [word.low for word in chunk]
        return bool(low) and bool(
            self._request(low) or self._lexicon.framing.match(low)[0] or self._image_frame(low, 0) > 1
        )

    def permitted_thing(self, chunk: Chunk) -> Chunk:
        """The thing that the chunk allows without asking for it: `dogs` in `dogs are fine`; else nothing."""
        length, _ = self._lexicon.permission.match([word.low for word in reversed(chunk)])
        return chunk[:-length] if length else []

    def says_present(self, chunk: Chunk) -> bool:
        """Whether the chunk already says of its thing that it is there."""
        return len(self.without_closing(chunk)) < len(chunk)
