"""Image retrieval that obeys *and*, *or* and *not*.

    >>> from lcse_plugins import LogicScorer
    >>> scorer = LogicScorer("starter")
    >>> for result in scorer.rank("an umbrella and no person", vectors, limit=5):
    ...     print(result.explain())

One folder per step, in the order in which a query goes through them:

    query/        the tree of concepts and operators          retrieval/    the best of many vectors, proved
    parsing/      a text becomes a tree                       images/       where pictures are, reading them safely
    encoders/     texts and pictures become vectors           index/        a folder of pictures on disk
    scoring/      the method: evidence, logic, edit           calibrating/  fitting μ, β and the presence curve

`scorer` leads through them. `hosts/` is what the wrappers in `integrations/` share, `cli/` the command line, `bench/`
measures, `testing` has an encoder for tests. Names are resolved on first use, so that importing stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lcse_plugins.calibrating.fitting import fit_calibration as fit_calibration
    from lcse_plugins.calibrating.unlabelled import estimate_calibration as estimate_calibration
    from lcse_plugins.encoders.protocol import Encoder as Encoder
    from lcse_plugins.encoders.registry import available_encoders as available_encoders
    from lcse_plugins.encoders.registry import load_encoder as load_encoder
    from lcse_plugins.errors import LcseError as LcseError
    from lcse_plugins.images.gallery import demo_photos as demo_photos
    from lcse_plugins.images.locations import ImageAccess as ImageAccess
    from lcse_plugins.index import ImageIndex as ImageIndex
    from lcse_plugins.parsing.grammar import parse as parse
    from lcse_plugins.parsing.hybrid import HybridParser as HybridParser
    from lcse_plugins.parsing.llm.cached import CachedParser as CachedParser
    from lcse_plugins.parsing.llm.openai import OpenAIParser as OpenAIParser
    from lcse_plugins.parsing.result import Parse as Parse
    from lcse_plugins.parsing.result import Parser as Parser
    from lcse_plugins.query import And as And
    from lcse_plugins.query import Concept as Concept
    from lcse_plugins.query import Not as Not
    from lcse_plugins.query import Or as Or
    from lcse_plugins.query import Query as Query
    from lcse_plugins.query import canonical as canonical
    from lcse_plugins.query import format_query as format_query
    from lcse_plugins.retrieval.pool import VectorPool as VectorPool
    from lcse_plugins.retrieval.sources import VectorSource as VectorSource
    from lcse_plugins.scorer import LogicScorer as LogicScorer
    from lcse_plugins.scoring.calibration import Calibration as Calibration
    from lcse_plugins.scoring.config import ScoringConfig as ScoringConfig
    from lcse_plugins.scoring.edit import score_arrays as score_arrays
    from lcse_plugins.scoring.results import Candidate as Candidate
    from lcse_plugins.scoring.results import Ranked as Ranked
    from lcse_plugins.scoring.results import Ranking as Ranking

_HOMES = {
    "calibrating.fitting": "fit_calibration",
    "calibrating.unlabelled": "estimate_calibration",
    "encoders.protocol": "Encoder",
    "encoders.registry": "available_encoders load_encoder",
    "errors": "LcseError",
    "images.gallery": "demo_photos",
    "images.locations": "ImageAccess",
    "index": "ImageIndex",
    "parsing.grammar": "parse",
    "parsing.hybrid": "HybridParser",
    "parsing.llm.cached": "CachedParser",
    "parsing.llm.openai": "OpenAIParser",
    "parsing.result": "Parse Parser",
    "query": "And Concept Not Or Query canonical format_query",
    "retrieval.pool": "VectorPool",
    "retrieval.sources": "VectorSource",
    "scorer": "LogicScorer",
    "scoring.calibration": "Calibration",
    "scoring.config": "ScoringConfig",
    "scoring.edit": "score_arrays",
    "scoring.results": "Candidate Ranked Ranking",
}
"""Module → the names it has."""

_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}
_NEEDS_AN_EXTRA = {"OpenAIParser"}

__version__ = "0.1.0"
__all__ = sorted({*_HOME_OF, "__version__"} - _NEEDS_AN_EXTRA)


if not TYPE_CHECKING:  # type checkers know the names above, and should know that there are no others

    def __getattr__(name: str) -> Any:
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
