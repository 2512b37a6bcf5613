"""LogicScorer: from a query and images to a ranked, explained list.

    query text → parsing → encoders → scoring → retrieval → ranked results

`read` makes a tree of the text, `encode` adds the vectors of what it names. `rank` scores every image of a pool by
them, `search` fetches candidates from a collection that only answers nearest-vector searches. The arithmetic is in
`scoring`, the way to the best of many images in `retrieval`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.encoders.protocol import Encoder, checked
from lcse_plugins.encoders.registry import load_encoder
from lcse_plugins.encoders.text_vectors import TextVectors
from lcse_plugins.errors import CalibrationError, InvalidCandidate, InvalidOption, LcseError, QueryError
from lcse_plugins.parsing.grammar import parse as parse_offline
from lcse_plugins.parsing.result import Parse, Parser, affirmative_text, aread_with, read_with, taken_whole
from lcse_plugins.query import Query, concepts, describe, is_tree
from lcse_plugins.retrieval.pool import VectorPool
from lcse_plugins.retrieval.sources import VectorSource, rank_pool, search_source
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.config import DEFAULT_CONFIG, Mode, ScoringConfig
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.scoring.results import Candidate, Ranking

__all__ = ["Candidates", "LogicScorer"]

Candidates: TypeAlias = "VectorPool | NDArray[np.floating] | Iterable[Candidate]"
"""What can be ranked: a pool, a table (n, d) of vectors, or candidates."""


class LogicScorer:
    """Ranks images by what a query says, operators included. Safe to share between threads.

    Args:
        encoder: The frozen encoder that made the image vectors, or its name.
        parser: Text to tree; by default the offline grammar.
        calibration: μ, β and the presence curve, or the file that holds them; by default the encoder's preset.
        config: Mode, aggregation and prompts.
        mode: The mode alone, instead of a config: "anchored" (the default), "lcse", "factored", "routed", "holistic".

    Raises:
        InvalidOption: `config` and `mode` were both given, or the mode is unknown.
        UnknownEncoder: no encoder has that name, or what was given is not an encoder.
        CalibrationError: there is no calibration for this encoder, or the file does not hold one.
    """

    def __init__(
        self,
        encoder: Encoder | str,
        *,
        parser: Parser = parse_offline,
        calibration: Calibration | str | Path | None = None,
        config: ScoringConfig | None = None,
        mode: Mode | None = None,
    ) -> None:
        self.encoder = checked(load_encoder(encoder) if isinstance(encoder, str) else encoder)
        self.parser = parser
        self.calibration = _calibration_for(self.encoder, calibration)
        if config is not None and mode is not None:
            raise InvalidOption("give config= or mode=, not both; a config has a mode")
        self.config = ScoringConfig(mode=mode) if mode is not None else config or DEFAULT_CONFIG
        self._vectors = TextVectors(self.encoder, self.config.templates)

    @classmethod
    def of(cls, scorer: LogicScorer | Encoder | str, *, mode: Mode | None = None) -> LogicScorer:
        """A scorer from what hosts take as `scorer=`: a scorer, an encoder or its name; in another mode, if given."""
        if not isinstance(scorer, LogicScorer):
            return cls(scorer, mode=mode)
        if mode is None or mode == scorer.config.mode:
            return scorer
        config = scorer.config.with_mode(mode)
        return cls(scorer.encoder, parser=scorer.parser, calibration=scorer.calibration, config=config)

    def rank(
        self, query: str | Query, candidates: Candidates, *, limit: int | None = None, min_truth: float | None = None
    ) -> Ranking:
        """Rank images, best first; equal scores keep the order in which they came.

        Args:
            query: Text for the parser, or a tree.
            candidates: A pool, a table (n, d) of image vectors, or `Candidate`s.
            limit: How many to return; None for all.
            min_truth: Leave out images for which the query holds less than this.

        Raises:
            QueryError: the query cannot be read.
            InvalidCandidate: there are no vectors; one is NaN, zero or of the wrong length; or the pool says that
                another encoder made it.
            InvalidOption: `limit` or `min_truth` is out of range.
        """
        pool, own = _as_pool(candidates), self.encoder.encoder_id
        if (maker := getattr(pool, "encoder_id", own)) != own:
            raise InvalidCandidate(f"these images were encoded by {maker!r}, the query by {own!r}; use one encoder")
        return rank_pool(self.encode(query), pool, limit=limit, min_truth=min_truth)

    def search(
        self,
        query: str | Query,
        source: VectorSource | Candidates,
        *,
        limit: int = 10,
        depth: int = 1000,
        exact: bool = False,
        min_truth: float | None = None,
    ) -> Ranking:
        """The best images of a collection; `Ranking.exact` says whether that is proved.

        Args:
            query: Text for the parser, or a tree.
            source: A collection that answers nearest-vector searches, or anything `rank` takes.
            limit: How many to return.
            depth: Candidates to fetch from a source for each search vector.
            exact: Search a source deeper until the result is proved or the source is exhausted.
            min_truth: Leave out images for which the query holds less than this.
        """
        if not isinstance(source, VectorSource):
            return self.rank(query, source, limit=limit, min_truth=min_truth)
        return search_source(self.encode(query), source, limit=limit, depth=depth, exact=exact, min_truth=min_truth)

    def read(self, query: str | Query) -> Parse:
        """How the query is understood. A parser that breaks leaves the query without logic, and the parse says so."""
        if not isinstance(query, str):
            return _parse_of(query)
        try:
            return read_with(self.parser, query)
        except Exception as error:
            return _unread(query, error)

    async def aread(self, query: str | Query) -> Parse:
        """As `read`, off the event loop; a parser with an `aread` of its own is awaited."""
        if not isinstance(query, str):
            return _parse_of(query)
        try:
            return await aread_with(self.parser, query)
        except Exception as error:
            return _unread(query, error)

    def encode(self, query: str | Query | Parse) -> EncodedQuery:
        """The query with its vectors, ready to score images or to be searched for by a host."""
        parse = query if isinstance(query, Parse) else self.read(query)
        holistic, rows = self._vectors.of(self._holistic_text(parse), concepts(parse.tree))
        return EncodedQuery(parse, holistic, rows, self.calibration, self.config)

    async def aencode(self, query: str | Query | Parse) -> EncodedQuery:
        """As `encode`, off the event loop."""
        if isinstance(query, str) and self.parser is not parse_offline:  # others may wait for something
            query = await self.aread(query)
        return await asyncio.to_thread(self.encode, query)

    def _holistic_text(self, parse: Parse) -> str:
        """The text whose similarity is the ordinary one; in mode `anchored` what the query affirms of it."""
        affirms = self.config.mode == "anchored" and parse.constrained
        return (parse.affirmative if affirms else "") or parse.text


def _parse_of(query: object) -> Parse:
    if not is_tree(query):
        raise QueryError(f"a query is a text or a tree of concepts, not {query!r:.80}")
    text = describe(query)
    return Parse(text=text, query=query, affirmative=affirmative_text(query, text), parser="tree")


def _unread(text: str, error: Exception) -> Parse:
    """The text without logic, where its parser broke; our own errors say what to do about them."""
    if isinstance(error, LcseError):
        raise error
    return taken_whole(
        text, note="the parser failed; scored by plain similarity", error=f"{type(error).__name__}: {error}"
    )


def _calibration_for(encoder: Encoder, given: Calibration | str | Path | None) -> Calibration:
    """The calibration given, or read from a file, or the encoder's own."""
    found = Calibration.load(given) if isinstance(given, str | Path) else given or encoder.calibration
    if found is None:
        raise CalibrationError(
            f"encoder {encoder.encoder_id!r} has no preset calibration; fit one with `lcse calibrate`, "
            "or pass calibration=estimate_calibration(encoder, image_vectors), which needs no labels"
        )
    if not isinstance(found, Calibration):
        raise CalibrationError(f"a calibration is a Calibration or the path of its file, not {type(found).__name__}")
    found.check(encoder.encoder_id)
    return found


def _as_pool(candidates: Candidates) -> VectorPool:
    if isinstance(candidates, VectorPool):
        return candidates
    if hasattr(candidates, "__array__"):  # numpy's, and the tables of torch and pandas
        return VectorPool(candidates)  # type: ignore[arg-type]
    try:
        items = list(candidates)
    except TypeError:
        raise InvalidCandidate(
            f"what is ranked is a pool, a table (n, d) of vectors or a list of candidates, not {candidates!r:.80}"
        ) from None
    return VectorPool.of(items) if all(isinstance(item, Candidate) for item in items) else VectorPool(items)
