"""Edit: from the truth of the query to the score that images are ranked by.

    anchored    score = (s_affirmed + logit p_logic / β + μ) / 2
    lcse        score = s_hol + (logit p_logic - logit p_soft) / β

`anchored`, the default, takes the logic as a similarity, logit p_logic / β + μ (for one affirmed concept that is its
cosine), and averages it with the similarity of what the query affirms. Where nothing is affirmed, and for OR (whose
text prefers images that show both sides), the plain half is the mean of the concepts' own similarities, those of
negated ones reflected at μ.

`lcse`, the paper's, moves the ordinary similarity: `p_soft` is what the encoder heard (the concepts, no operator),
`p_logic` is what was said. A query without logic moves by nothing: its scores are the encoder's own, bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping

from array_api_compat import array_namespace, is_array_api_obj

from lcse_plugins.errors import InvalidCandidate
from lcse_plugins.query import Or, Query, affirms_nothing, canonical, concepts, has_logic, leaves
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.config import DEFAULT_CONFIG, ScoringConfig
from lcse_plugins.scoring.logic import Array, soft_logit, truth_logit

__all__ = ["edits_nothing", "holistic_share", "leaf_weights", "score_arrays", "score_tree"]

BEYOND_COSINES = 1e5
"""Larger numbers count as this, so that any finite input gives a finite score."""


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
        holistic: (n,) similarities of the images to the whole query text (in mode `anchored` to its affirmed part).
        similarities: Concept text → (n,) similarities, for every concept of the query.
        calibration: μ and β of the encoder that made the similarities.
        config: Mode and aggregation.

    Returns:
        A new array of the kind and precision of `holistic`; half precision is computed in float32.

    Raises:
        QueryError: the query is not a tree.
        InvalidCandidate: an array is missing, is of another kind or length, or holds NaN or infinite values.
    """
    tree = canonical(query)
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
        wanted[concept] = xp.astype(wanted[concept], computed).clip(-BEYOND_COSINES, BEYOND_COSINES)
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
    """(n,) scores and (n,) logits of the truth for a canonical tree, without checks."""
    logits = {name: (values - calibration.mu) * calibration.beta for name, values in similarities.items()}
    truth = truth_logit(tree, logits, config=config)
    if edits_nothing(tree, config):
        return holistic, truth
    if config.mode == "lcse":
        return holistic + (truth - soft_logit(list(logits.values()))) / calibration.beta, truth
    logic = truth
    if weights := leaf_weights(tree, config):
        logic = (truth + sum(weight * logits[text] for text, weight in weights.items())) / 2
    score, share = logic / calibration.beta + calibration.mu, holistic_share(tree, config)
    return (share * holistic + (1.0 - share) * score if share else score), truth


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


def _check_finite(name: str, values: Array) -> None:
    if not is_array_api_obj(values):
        raise InvalidCandidate(f"{name} must be an array, not {type(values).__name__}")
    xp = array_namespace(values)
    if not xp.isdtype(values.dtype, "real floating"):
        raise InvalidCandidate(f"{name} must be floats, not {values.dtype}")
    if not bool(xp.all(xp.isfinite(values))):
        raise InvalidCandidate(f"{name} hold NaN or infinite values; remove those images first")
