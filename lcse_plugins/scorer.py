"""LogicScorer: from a query and images to a ranked, explained list, in five steps.

    query text → parse → encode → evidence → logic → edit → ranked results

Parsing and encoding happen here; the arithmetic is in `evidence`, `logic` and `edit`, run by `pool` over many images at
once and by `search` over collections that only answer nearest-vector searches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.encoders.lru_cache import Recent
from lcse_plugins.encoders.protocol import Encoder, FloatArray, concept_vectors
from lcse_plugins.encoders.registry import load_encoder
from lcse_plugins.errors import CalibrationError, EncoderError, InvalidCandidate, LcseError, QueryError
from lcse_plugins.off_loop import compute
from lcse_plugins.parsing.grammar import parse as parse_offline
from lcse_plugins.parsing.result import Parse, Parser, affirmative_text, aread_with, read_with, taken_whole
from lcse_plugins.query import Query, canonical, concepts, describe, is_tree, ordered
from lcse_plugins.retrieval.pool import VectorPool
from lcse_plugins.retrieval.sources import VectorSource, rank_pool, search_source
from lcse_plugins.scoring.arguments import check_limits
from lcse_plugins.scoring.calibration import Calibration, load_calibration
from lcse_plugins.scoring.config import DEFAULT_CONFIG, ScoringConfig
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.scoring.results import Candidate, Ranking

__all__ = ["Candidates", "LogicScorer"]

Candidates: TypeAlias = "VectorPool | NDArray[np.floating] | Iterable[Candidate]"
"""What can be ranked: a pool, a table (n, d) of vectors, or candidates."""

CACHED_TEXTS = 4096
"""Text vectors kept; 4096 of 512 float32 numbers are 8 MB."""


class LogicScorer:
    """Ranks images by what a query says, operators included. Safe to share between threads.

    Args:
        encoder: The frozen encoder that made the image vectors, or its name.
        parser: Text to tree; by default the offline grammar.
        calibration: μ and β, or the file that holds them; by default the encoder's preset.
        config: Mode, aggregation and which text gives the ordinary similarity.

    Raises:
        UnknownEncoder: no encoder has that name, or what was given is not an encoder.
        CalibrationMismatch: the calibration was fitted for another encoder.
        CalibrationError: no calibration was given and the encoder has no preset, or the file does not hold one.
    """

    def __init__(
        self,
        encoder: Encoder | str,
        *,
        parser: Parser = parse_offline,
        calibration: Calibration | str | Path | None = None,
        config: ScoringConfig = DEFAULT_CONFIG,
    ) -> None:
        encoder = load_encoder(encoder)
        chosen = encoder.calibration if calibration is None else _calibration(calibration)
        if chosen is None:
            raise CalibrationError(
                f"encoder {encoder.encoder_id!r} has no preset calibration; fit one with `lcse calibrate`"
            )
        chosen.check(encoder.encoder_id)
        self.encoder = encoder
        self.parser = parser
        self.calibration = chosen
        self.config = config
        self._vectors = _TextVectors(encoder, config.templates)

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
        check_limits(limit, min_truth)
        pool = _as_pool(candidates)
        maker = getattr(pool, "encoder_id", self.encoder.encoder_id)
        if maker != self.encoder.encoder_id:
            raise InvalidCandidate(
                f"these images were encoded by {maker!r}, the query by {self.encoder.encoder_id!r}; use one encoder"
            )
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
        if is_tree(query):
            text = describe(query)
            return Parse(text=text, query=query, affirmative=affirmative_text(query, text), parser="tree")
        if not isinstance(query, str):
            raise QueryError(f"a query is a text or a tree of concepts, not {query!r:.80}")
        try:
            return read_with(self.parser, query)
        except LcseError:
            raise
        except Exception as error:
            return _unread(query, error)

    async def aread(self, query: str | Query) -> Parse:
        """As `read`, off the event loop; a parser with an `aread` of its own is awaited."""
        if not isinstance(query, str):
            return self.read(query)
        try:
            return await aread_with(self.parser, query)
        except LcseError:
            raise
        except Exception as error:
            return _unread(query, error)

    def encode(self, query: str | Query | Parse) -> EncodedQuery:
        """The query with its vectors, ready to score images or to be searched for by a host."""
        parse = query if isinstance(query, Parse) else self.read(query)
        tree = canonical(parse.query)
        holistic, rows = self._vectors.of(self._holistic_text(parse, tree), concepts(tree))
        return EncodedQuery(parse, holistic, rows, self.calibration, self.config)

    async def aencode(self, query: str | Query | Parse) -> EncodedQuery:
        """As `encode`, off the event loop."""
        if isinstance(query, str) and self.parser is not parse_offline:  # others may wait for something
            query = await self.aread(query)
        return await compute(self.encode, query)

    def _holistic_text(self, parse: Parse, tree: Query) -> str:
        text = describe(ordered(tree)) if self.config.holistic == "canonical" else parse.text
        if not parse.constrained:
            return text
        if self.config.mode != "anchored" and self.config.holistic != "affirmative":
            return text
        affirmed = affirmative_text(ordered(tree), text) if self.config.holistic == "canonical" else parse.affirmative
        return affirmed or text


def _unread(text: str, error: Exception) -> Parse:
    return taken_whole(
        text, note="the parser failed; scored by plain similarity", error=f"{type(error).__name__}: {error}"
    )


def _calibration(given: Calibration | str | Path) -> Calibration:
    if isinstance(given, str | Path):
        return load_calibration(given)
    if not isinstance(given, Calibration):
        raise CalibrationError(f"a calibration is a Calibration or the path of its file, not {type(given).__name__}")
    return given


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
    if all(isinstance(item, Candidate) for item in items):
        return VectorPool.of(items)
    return VectorPool(items)


class _TextVectors:
    """Vectors of texts and concepts, each encoded once."""

    def __init__(self, encoder: Encoder, templates: tuple[str, ...]) -> None:
        self._encoder = encoder
        self._templates = templates
        self._kept: Recent[tuple[str, str], FloatArray] = Recent(CACHED_TEXTS)

    def of(self, text: str, concepts: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """The (d,) vector of a text and the (m, d) vectors of concepts."""
        wanted = [("text", text), *(("concept", concept) for concept in concepts)]
        found = self._kept.known(wanted)
        missing = [key for key in dict.fromkeys(wanted) if key not in found]
        if missing:
            encoded = self._encode(missing)
            self._kept.keep(encoded)
            found.update(encoded)
        rows = [found[key] for key in wanted]
        return rows[0], np.stack(rows[1:])

    def _encode(self, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], FloatArray]:
        vectors: dict[tuple[str, str], FloatArray] = {}
        for kind in ("text", "concept"):
            names = [name for key, name in keys if key == kind]
            if not names:
                continue
            templates = ("{}",) if kind == "text" else self._templates
            rows = concept_vectors(self._encoder, names, templates=templates)
            if not np.isfinite(rows).all():
                raise EncoderError(f"encoder {self._encoder.encoder_id!r} gave NaN or infinite vectors for {names}")
            rows.flags.writeable = False
            vectors.update({(kind, name): row for name, row in zip(names, rows, strict=True)})
        return vectors
