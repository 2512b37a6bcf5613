"""Edit: correct the ordinary similarity by what the logic says.

    score = s_hol + (logit p_logic - logit p_soft) / β

`p_soft` is what the encoder heard (the concepts, no operator), `p_logic` is what was said; the score moves by their
difference. A query without logic moves by nothing: its scores are the encoder's own, bit for bit.

The other modes use the logic as a similarity of its own, logit p_logic / β + μ; for one affirmed concept that is its
cosine. `anchored` averages it with a plain similarity: that of what the query affirms,

    score = (s_affirmed + logit p_logic / β + μ) / 2

There is nothing to subtract, because the affirmed text holds no negated concept that the encoder could have heard.
Where nothing is affirmed, and for OR (whose text prefers images that show both sides), the plain half is the mean of
the concepts' own similarities, those of negated ones reflected at μ.
"""

from __future__ import annotations

from collections.abc import Mapping

from array_api_compat import array_namespace, is_array_api_obj

from lcse_plugins.errors import InvalidCandidate
from lcse_plugins.query import Or, Query, affirms_nothing, canonical, concepts, has_logic, leaves, ordered
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.config import DEFAULT_CONFIG, ScoringConfig
from lcse_plugins.scoring.evidence import Array, Logits, gather_logits
from lcse_plugins.scoring.logic import soft_floor, soft_logit, truth_ceiling, truth_logit

__all__ = [
    "edits_nothing",
    "holistic_share",
    "leaf_weights",
    "score_arrays",
    "score_ceiling",
    "score_reach",
    "score_tree",
]


def score_arrays(
    query: Query,
    holistic: Array,
    similarities: Mapping[str, Array],
    *,
    calibration: Calibration,
    config: ScoringConfig = DEFAULT_CONFIG,
) -> Array:
    """(n,) scores of n images under the query.

    Args:
        query: Any tree.
        holistic: (n,) similarities of the images to the whole query text (in mode `anchored`: to its affirmed part).
        similarities: Concept text → (n,) similarities, for every concept of the query.
        calibration: μ and β of the encoder that made the similarities.
        config: Mode and aggregation.

    Returns:
        A new array of the kind and precision of `holistic`; half precision is computed in float32.

    Raises:
        QueryError: the query is not a tree.
        InvalidCandidate: an array is missing, is of another kind or length, or holds NaN or infinite values.
    """
    tree = ordered(canonical(query))
    _check_finite("holistic", holistic)
    xp = array_namespace(holistic)
    computed = xp.float32 if xp.finfo(holistic.dtype).bits < 32 else holistic.dtype
    wanted = {}
    for concept in concepts(tree):
        if concept not in similarities:
            raise InvalidCandidate(f"no similarities for concept {concept!r}; got {sorted(similarities)}")
        wanted[concept] = similarities[concept]
        _check_finite(f"similarities of {concept!r}", wanted[concept])
        if wanted[concept].shape != holistic.shape:
            raise InvalidCandidate(
                f"similarities of {concept!r} have shape {tuple(wanted[concept].shape)}, "
                f"holistic has {tuple(holistic.shape)}"
            )
        if array_namespace(wanted[concept]) is not xp:
            raise InvalidCandidate(f"similarities of {concept!r} and holistic are of two array libraries; use one")
        wanted[concept] = xp.astype(wanted[concept], computed)
    scores, _ = score_tree(tree, xp.astype(holistic, computed), wanted, calibration=calibration, config=config)
    return xp.astype(scores, holistic.dtype, copy=True)


def score_tree(
    tree: Query,
    holistic: Array,
    similarities: Mapping[str, Array],
    *,
    calibration: Calibration,
    config: ScoringConfig,
) -> tuple[Array, Array]:
    """(n,) scores and (n,) logits of the truth for a tree that is canonical and ordered, without checks.

    The soft truth is that of all concepts given, of which the tree may be one side of an OR. They are taken in the
    order of their names, so that equivalent queries are edited alike to the last bit.
    """
    logits = gather_logits(similarities, calibration)
    truth = truth_logit(tree, logits, config=config)
    if edits_nothing(tree, config):
        return holistic, truth
    if config.mode == "lcse":
        soft = soft_logit([logits[concept] for concept in sorted(logits)])
        return holistic + (truth - soft) / calibration.beta, truth
    return _blend(tree, holistic, truth, logits, calibration, config), truth


def score_ceiling(
    tree: Query,
    holistic: Array,
    similarities: Mapping[str, Array],
    *,
    calibration: Calibration,
    config: ScoringConfig,
) -> Array:
    """(n,) numbers not below the scores of `score_tree`, at a fraction of the work; for a tree with logic in it."""
    logits = gather_logits(similarities, calibration)
    ceiling = truth_ceiling(tree, logits, config=config)
    if config.mode == "lcse":
        return holistic + (ceiling - soft_floor(list(logits.values()))) / calibration.beta
    return _blend(tree, holistic, ceiling, logits, calibration, config)


def edits_nothing(tree: Query, config: ScoringConfig) -> bool:
    """Whether every score under a canonical tree is the holistic similarity itself."""
    if config.mode == "holistic":
        return True
    return config.mode != "factored" and not has_logic(tree)


def holistic_share(tree: Query, config: ScoringConfig) -> float:
    """The weight of the holistic similarity in a score; outside `lcse` the logic has the rest.

    Mode `anchored` gives half to the similarity of the affirmed part, where the query says things together.
    """
    if edits_nothing(tree, config) or config.mode == "lcse":
        return 1.0
    return 0.5 if config.mode == "anchored" and _has_anchor(tree) else 0.0


def score_reach(tree: Query, config: ScoringConfig) -> tuple[float, float] | None:
    """How far a score moves when similarities do: by at most a |Δ holistic| + b max |Δ concept|; None when unknown.

    In logits a power mean with exponent ≥ -1, like the minimum and the maximum, moves no further than its arguments.
    """
    if config.aggregator == "probabilistic":
        return None
    if config.aggregator == "power" and min(config.gamma_and, config.gamma_or) < -1.0:
        return None
    share = holistic_share(tree, config)
    return share, 2.0 if config.mode == "lcse" else 1.0 - share


def leaf_weights(tree: Query, config: ScoringConfig) -> dict[str, float]:
    """Concept → its weight in the plain half of an `anchored` score, where no text stands for that half.

    All leaves weigh the same but for their sign. Empty where the logic alone, or a text, gives the score.
    """
    if config.mode != "anchored" or edits_nothing(tree, config) or _has_anchor(tree):
        return {}
    signs = [(leaf.text, -1.0 if negated else 1.0) for leaf, negated in leaves(tree)]
    return {text: sum(sign for name, sign in signs if name == text) / len(signs) for text in dict(signs)}


def _has_anchor(tree: Query) -> bool:
    """Whether the text of what is affirmed is a good anchor: something is, and not as one of several choices."""
    return not isinstance(tree, Or) and not affirms_nothing(tree)


def _blend(
    tree: Query, holistic: Array, truth: Array, logits: Logits, calibration: Calibration, config: ScoringConfig
) -> Array:
    """The logic as a similarity, averaged with a plain one where the mode says so."""
    weights = leaf_weights(tree, config)
    if weights:
        plain = [weight * logits[text] for text, weight in weights.items()]
        truth = (truth + sum(plain[1:], plain[0])) / 2
    logic, share = truth / calibration.beta + calibration.mu, holistic_share(tree, config)
    return logic if share == 0.0 else share * holistic + (1.0 - share) * logic


def _check_finite(name: str, values: Array) -> None:
    if not is_array_api_obj(values):
        raise InvalidCandidate(f"{name} must be an array, not {type(values).__name__}")
    xp = array_namespace(values)
    if not xp.isdtype(values.dtype, "real floating"):
        raise InvalidCandidate(f"{name} must be floats, not {values.dtype}")
    if not bool(xp.all(xp.isfinite(values))):
        raise InvalidCandidate(f"{name} hold NaN or infinite values; remove those images first")
