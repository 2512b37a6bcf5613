"""Image retrieval that obeys *and*, *or* and *not*.

    >>> from lcse_plugins import LogicScorer, load_encoder
    >>> scorer = LogicScorer(encoder=load_encoder("starter"))
    >>> for result in scorer.rank("an umbrella and no person", vectors, limit=5):
    ...     print(result.explain())

Where things are, in the order in which a query goes through them:

- `query/` is the tree of concepts and operators; `parsing/` makes one from a text.
- `encoders/` turn texts and pictures into vectors; `images/` gets the pictures; `calibrate` holds μ and β of an
  encoder, which `fitting` finds with labels (`labelled`, `operator_tests`) and `unlabelled` without.
- `evidence`, `logic` and `edit` are the method: similarities to probabilities to the truth of the query to a score.
- `scorer` leads through all of this. `encoded` is a query ready to be scored, `results` what comes out.
- `pool` scores many vectors (`tables`, `first_pass`, `leaders`, `quantised`), `regions` several views of each picture,
  `search` collections that only answer vector searches. For both `plan` finds the vectors: `vantage` and `tangents`
  those that find images, `bounds` (with `ceiling`) those that tell the most they can score. `index/` is a folder of
  pictures on disk.
- `cli` with `commands/` and `report` is the command line, `bench/` measures, `hosting/` is what wrappers share,
  `testing` has an encoder for tests.
- `config` has the choices a user may make about scoring, `errors` all that is raised on purpose; `arguments`,
  `batches`, `forks`, `http_status`, `off_loop`, `ranks` and `recent` are small helpers of all of these.

Names are resolved on first use, so that importing the package stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lcse_plugins.calibrating.fitting import fit_calibration as fit_calibration
    from lcse_plugins.calibrating.unlabelled import estimate_calibration as estimate_calibration
    from lcse_plugins.encoders.protocol import Encoder as Encoder
    from lcse_plugins.encoders.protocol import concept_vectors as concept_vectors
    from lcse_plugins.encoders.registry import available_encoders as available_encoders
    from lcse_plugins.encoders.registry import load_encoder as load_encoder
    from lcse_plugins.errors import LcseError as LcseError
    from lcse_plugins.images.cache import ImageVectorCache as ImageVectorCache
    from lcse_plugins.images.locations import ImageAccess as ImageAccess
    from lcse_plugins.index import ImageIndex as ImageIndex
    from lcse_plugins.index import IndexReport as IndexReport
    from lcse_plugins.parsing.cache import ParseCache as ParseCache
    from lcse_plugins.parsing.consult import Patience as Patience
    from lcse_plugins.parsing.grammar import GrammarParser as GrammarParser
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
    from lcse_plugins.query import Plain as Plain
    from lcse_plugins.query import Query as Query
    from lcse_plugins.query import canonical as canonical
    from lcse_plugins.query import concepts as concepts
    from lcse_plugins.query import format_query as format_query
    from lcse_plugins.query import from_flat as from_flat
    from lcse_plugins.query import from_json as from_json
    from lcse_plugins.query import to_flat as to_flat
    from lcse_plugins.query import to_json as to_json
    from lcse_plugins.retrieval.plan import Plan as Plan
    from lcse_plugins.retrieval.pool import VectorPool as VectorPool
    from lcse_plugins.retrieval.sources import VectorSource as VectorSource
    from lcse_plugins.retrieval.tiles import RegionPool as RegionPool
    from lcse_plugins.retrieval.tiles import encode_regions as encode_regions
    from lcse_plugins.scorer import LogicScorer as LogicScorer
    from lcse_plugins.scoring.calibration import CLIP_PRESET as CLIP_PRESET
    from lcse_plugins.scoring.calibration import SIGLIP2_PRESET as SIGLIP2_PRESET
    from lcse_plugins.scoring.calibration import Calibration as Calibration
    from lcse_plugins.scoring.calibration import load_calibration as load_calibration
    from lcse_plugins.scoring.config import DEFAULT_CONFIG as DEFAULT_CONFIG
    from lcse_plugins.scoring.config import ScoringConfig as ScoringConfig
    from lcse_plugins.scoring.edit import score_arrays as score_arrays
    from lcse_plugins.scoring.encoded import EncodedQuery as EncodedQuery
    from lcse_plugins.scoring.results import Candidate as Candidate
    from lcse_plugins.scoring.results import Ranked as Ranked
    from lcse_plugins.scoring.results import Ranking as Ranking

_HOMES = {
    "scoring.calibration": ("CLIP_PRESET", "Calibration", "SIGLIP2_PRESET", "load_calibration"),
    "scoring.config": ("DEFAULT_CONFIG", "ScoringConfig"),
    "scoring.edit": ("score_arrays",),
    "scoring.encoded": ("EncodedQuery",),
    "encoders.protocol": ("Encoder", "concept_vectors"),
    "encoders.registry": ("available_encoders", "load_encoder"),
    "errors": ("LcseError",),
    "calibrating.fitting": ("fit_calibration",),
    "images.cache": ("ImageVectorCache",),
    "images.locations": ("ImageAccess",),
    "index": ("ImageIndex", "IndexReport"),
    "parsing.cache": ("ParseCache",),
    "parsing.llm.cached": ("CachedParser",),
    "parsing.consult": ("Patience",),
    "parsing.grammar": ("GrammarParser", "parse"),
    "parsing.hybrid": ("HybridParser",),
    "parsing.llm.openai": ("OpenAIParser",),
    "parsing.result": ("Parse", "Parser"),
    "retrieval.plan": ("Plan",),
    "retrieval.pool": ("VectorPool",),
    "retrieval.tiles": ("RegionPool", "encode_regions"),
    "calibrating.unlabelled": ("estimate_calibration",),
    "query": (
        "And",
        "Concept",
        "Not",
        "Or",
        "Plain",
        "Query",
        "canonical",
        "concepts",
        "format_query",
        "from_flat",
        "from_json",
        "to_flat",
        "to_json",
    ),
    "scoring.results": ("Candidate", "Ranked", "Ranking"),
    "scorer": ("LogicScorer",),
    "retrieval.sources": ("VectorSource",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_NEED_AN_EXTRA = {"OpenAIParser"}

__version__ = "0.1.0"
__all__ = sorted({*_HOME_OF, "__version__"} - _NEED_AN_EXTRA)


if not TYPE_CHECKING:  # type checkers know the names above, and should know that there are no others

    def __getattr__(name: str) -> Any:
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
