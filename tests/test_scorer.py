from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcse_plugins import (
    Calibration,
    Candidate,
    Concept,
    LogicScorer,
    Query,
    ScoringConfig,
    VectorPool,
    load_encoder,
    parse,
)
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import (
    CalibrationError,
    CalibrationMismatch,
    InvalidCandidate,
    InvalidOption,
    ParserUnavailable,
    QueryError,
)
from lcse_plugins.retrieval.pool import BLOCK
from lcse_plugins.retrieval.tiles import RegionPool
from lcse_plugins.scoring.calibration import CLIP_PRESET, PresenceCurve
from lcse_plugins.testing import ToyEncoder, toy_gallery
from tests.strategies import trees

UMBRELLA, PERSON = Concept("umbrella"), Concept("person")
QUERY = UMBRELLA & ~PERSON


@pytest.fixture
def gallery() -> tuple[LogicScorer, list[Candidate]]:
    encoder, candidates = toy_gallery()
    return LogicScorer(encoder), candidates


def test_logic_drops_what_similarity_puts_first(gallery: Any) -> None:
    scorer, candidates = gallery
    plain = LogicScorer(scorer.encoder, config=ScoringConfig(mode="holistic"))
    assert plain.rank("umbrella and no person", candidates)[0].id == "umbrella person"
    ranking = scorer.rank("umbrella and no person", candidates)
    assert [result.id for result in ranking[:2]] == ["umbrella", "umbrella bench"]
    assert ranking.exact
    assert ranking.parse.query == QUERY
    best = ranking[0]
    assert best.score == pytest.approx(best.holistic + best.correction)
    assert [(e.concept, e.negated) for e in best.evidence] == [("umbrella", False), ("person", True)]
    assert best.evidence[0].probability > 0.9 > 0.1 > best.evidence[1].probability
    assert best.truth > 0.9
    assert best.candidate is candidates[1]
    assert best.satisfies
    assert best.reason == "umbrella: clear · no person: not seen"
    assert best.explain().startswith(f"{best.id}: {best.reason} (score {best.score:.3f} = similarity")


@pytest.mark.parametrize(
    ("query", "count", "summary"),
    [
        (QUERY, 2, "2 pictures satisfy this; the rest are the nearest."),
        ("a dog and a cat", 1, "1 picture satisfies this; the rest are the nearest."),
        ("a kangaroo", 0, "Nothing here satisfies this; these are the nearest."),
    ],
)
def test_a_ranking_says_where_the_answer_ends(query: Any, count: int, summary: str, gallery: Any) -> None:
    scorer, candidates = gallery
    ranking = scorer.rank(query, candidates)
    assert (ranking.satisfied, ranking.summary) == (count, summary)
    assert [r.satisfies for r in ranking] == [True] * count + [False] * (len(ranking) - count)
    assert ranking.to_json()["satisfied"] == count
    if count:
        assert ranking[:count].summary == summary.partition(";")[0] + "."
    assert scorer.rank(query, candidates, min_truth=1.0).summary == "Nothing was found."


def test_what_satisfies_a_query_is_told_by_the_presence_curve(gallery: Any) -> None:
    scorer, candidates = gallery
    strict = Calibration(mu=0.35, beta=20.0, presence=PresenceCurve(-18.0, 20.0))  # there from a cosine of 0.9
    ranking = LogicScorer(scorer.encoder, calibration=strict).rank(QUERY, candidates)
    assert [r.id for r in ranking if r.satisfies] == ["umbrella"]
    assert ranking[0].evidence[0].presence == pytest.approx(0.88, abs=0.01)
    assert "umbrella: clear, 88 %" in [item.text for item in ranking[0].evidence]
    # the weakest part of an AND, the strongest of an OR
    either = LogicScorer(scorer.encoder, calibration=strict).rank(UMBRELLA | Concept("person"), candidates)
    assert {r.id for r in either if r.satisfies} == {"umbrella", "person"}


def test_a_mode_is_taken_where_a_config_is() -> None:
    encoder, _ = toy_gallery()
    scorer = LogicScorer(encoder, mode="lcse")
    assert scorer.config == ScoringConfig(mode="lcse")
    assert LogicScorer(encoder).config.mode == "anchored"
    with pytest.raises(InvalidOption, match="not both"):
        LogicScorer(encoder, config=ScoringConfig(), mode="lcse")
    with pytest.raises(InvalidOption, match="unknown mode"):
        LogicScorer(encoder, mode="magic")  # type: ignore[arg-type]
    assert LogicScorer.of(scorer) is scorer is LogicScorer.of(scorer, mode="lcse")
    other = LogicScorer.of(scorer, mode="anchored")
    assert (other.config, other.calibration) == (ScoringConfig(), scorer.calibration)
    assert LogicScorer.of(encoder, mode="routed").config.mode == "routed"
    assert LogicScorer.of("starter").encoder.encoder_id == load_encoder("starter").encoder_id


@pytest.mark.parametrize("options", [{}, {"limit": 4}, {"min_truth": 0.0}, {"limit": 4, "min_truth": 0.0}])
@pytest.mark.parametrize("images", [5, 17, 1001])
def test_no_operator_is_the_plain_encoder_bit_for_bit(images: int, options: Any) -> None:
    scorer, vectors = LogicScorer(ToyEncoder()), gallery_of(images)
    ranking = scorer.rank("an umbrella on a bench", vectors, **options)
    plain = vectors @ scorer.encoder.encode_texts(["an umbrella on a bench"])[0]
    assert [r.id for r in ranking] == list(np.argsort(-plain, kind="stable")[: len(ranking)])
    assert [r.score for r in ranking] == [float(plain[r.id]) for r in ranking]
    assert all(r.correction == 0.0 and r.holistic == r.score for r in ranking)


def test_nothing_given_is_changed(gallery: Any) -> None:
    scorer, candidates = gallery
    table = np.stack([candidate.vector for candidate in candidates]) * 3.0
    before = table.copy()
    first, again = scorer.rank(QUERY, table), scorer.rank(QUERY, table)
    np.testing.assert_array_equal(table, before)
    assert [(r.id, r.score) for r in first] == [(r.id, r.score) for r in again]


def test_ties_keep_the_incoming_order(gallery: Any) -> None:
    scorer, candidates = gallery
    twins = [Candidate(id=f"{i}", vector=candidates[1].vector) for i in range(50)]
    assert [r.id for r in scorer.rank(QUERY, twins, limit=7)] == [str(i) for i in range(7)]
    assert [r.id for r in scorer.rank(QUERY, twins)] == [str(i) for i in range(50)]


@settings(deadline=None, max_examples=40)
@given(
    trees(max_leaves=8),
    st.sampled_from([1, 5, 60, 400]),
    st.sampled_from(["anchored", "lcse", "factored"]),
    st.sampled_from([None, 0.0, 0.3]),
)
def test_a_limit_gives_the_head_of_the_whole_ranking(
    query: Query, limit: int, mode: Any, min_truth: float | None
) -> None:
    """Of pools large enough for bounds to be used."""
    scorer, pool = LogicScorer(ToyEncoder(), mode=mode), VectorPool(gallery_of(3_000))
    whole = scorer.rank(query, pool, min_truth=min_truth)
    head = scorer.rank(query, pool, limit=limit, min_truth=min_truth)
    assert len(head) == min(limit, len(whole))
    np.testing.assert_allclose([r.score for r in head], [r.score for r in whole[:limit]], rtol=0, atol=1e-6)
    for one, other in zip(head, whole, strict=False):
        assert one.id == other.id or abs(one.score - other.score) < 1e-6


def gallery_of(images: int) -> FloatArray:
    vectors = np.random.default_rng(0).standard_normal((images, 64)).astype(np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_large_tables_and_memory_maps_of_any_length_and_precision(dtype: Any, tmp_path: Path) -> None:
    scorer, vectors = LogicScorer(ToyEncoder()), gallery_of(2 * BLOCK + 17)
    table = (vectors * np.linspace(0.5, 7.0, len(vectors))[:, None]).astype(dtype)
    np.save(tmp_path / "vectors.npy", table)
    mapped = VectorPool(np.load(tmp_path / "vectors.npy", mmap_mode="r"))
    assert isinstance(mapped.vectors, np.memmap)
    for query in (QUERY, UMBRELLA | PERSON, UMBRELLA):
        encoded = scorer.encode(query)
        scores, _ = encoded.score_similarities(vectors @ encoded.matrix.T)
        for pool in (VectorPool(table), mapped):
            found = scorer.rank(query, pool, limit=20)
            tolerance = 2e-3 if dtype is np.float16 else 1e-5
            np.testing.assert_allclose([r.score for r in found], np.sort(scores)[::-1][:20], atol=tolerance)
            assert np.linalg.norm(found[0].candidate.vector) == pytest.approx(1.0, abs=1e-3)


def test_min_truth_is_a_hard_filter(gallery: Any) -> None:
    scorer, candidates = gallery
    kept = scorer.rank(QUERY, candidates, min_truth=0.5)
    assert {r.id for r in kept} == {"umbrella", "umbrella bench"}
    assert all(r.truth >= 0.5 for r in kept)
    assert scorer.rank(UMBRELLA & ~UMBRELLA, candidates, min_truth=0.9) == []


@pytest.mark.parametrize("limit", [None, 2])
def test_a_truth_of_min_truth_itself_is_enough(limit: int | None) -> None:
    shares = np.array([0.9, 0.5, 0.0])  # the second has a truth of one half, to the last bit
    encoder = ToyEncoder({"dog": [1.0, 0.0]})
    scorer = LogicScorer(encoder, calibration=Calibration(mu=0.5, beta=20.0))
    ranking = scorer.rank("no dog", np.stack([shares, np.sqrt(1.0 - shares**2)], axis=1), limit=limit, min_truth=0.5)
    assert [r.id for r in ranking] == [2, 1]


@pytest.mark.parametrize(
    ("mode", "query", "text"),
    [
        ("anchored", "umbrella and no person", "umbrella"),
        ("anchored", "no person", "no person"),
        ("lcse", "umbrella and no person", "umbrella and no person"),
    ],
)
def test_which_text_gives_the_similarity(mode: Any, query: str, text: str) -> None:
    encoder = ToyEncoder()
    found = LogicScorer(encoder, mode=mode).encode(query).holistic_vector
    np.testing.assert_allclose(found, encoder.encode_texts([text])[0], atol=1e-6)


def out_of_tokens(text: str) -> Query:
    raise RuntimeError("out of tokens")


@pytest.mark.parametrize(("parser", "error"), [(out_of_tokens, "RuntimeError: out of tokens"), (print, "TypeError")])
async def test_a_broken_parser_is_not_silent(parser: Any, error: str, gallery: Any) -> None:
    scorer, candidates = gallery
    broken = LogicScorer(scorer.encoder, parser=parser)
    ranking = broken.rank("umbrella and no person", candidates)
    part = ranking[:3]
    assert (part.parse, part.mode, part.exact) == (ranking.parse, "anchored", True)
    told = part.to_json()
    assert told["parser"] == ranking.parse.parser == "holistic"
    assert told["error"] == ranking.parse.error == (await broken.aread("umbrella and no person")).error
    assert error in told["error"]
    assert told["notes"] == list(ranking.parse.notes) != []
    assert all(r.correction == 0.0 for r in ranking)


def test_declared_errors_of_a_parser_pass() -> None:
    def down(text: str) -> Query:
        raise ParserUnavailable("service is down")

    encoder, candidates = toy_gallery()
    with pytest.raises(ParserUnavailable):
        LogicScorer(encoder, parser=down).rank("umbrella", candidates)


def test_texts_are_encoded_once(gallery: Any) -> None:
    scorer, candidates = gallery
    scorer.rank(QUERY, candidates)
    count = scorer.encoder.texts_encoded
    scorer.rank(QUERY, candidates)
    assert scorer.encoder.texts_encoded == count
    scorer.rank(QUERY & Concept("bench"), candidates)
    assert scorer.encoder.texts_encoded == count + 1 + 4


def test_a_copy_ranks_alike(gallery: Any) -> None:
    scorer, candidates = gallery
    expected = [r.score for r in scorer.rank(QUERY, candidates)]
    assert [r.score for r in pickle.loads(pickle.dumps(scorer)).rank(QUERY, candidates)] == expected


def test_threads_get_their_own_answers() -> None:
    encoder, candidates = toy_gallery()
    scorer = LogicScorer(encoder)
    words = ["umbrella", "person", "street", "dog", "cat", "sofa", "park", "bench"]
    expected = {word: LogicScorer(encoder).rank(f"no {word}", candidates)[0].id for word in words}

    def right(word: str) -> bool:
        return all(scorer.rank(f"no {word}", candidates)[0].id == expected[word] for _ in range(30))

    with ThreadPoolExecutor(len(words)) as threads:
        assert all(threads.map(right, words))


def test_vectors_may_be_tensors_or_any_table(gallery: Any) -> None:
    torch = pytest.importorskip("torch")
    scorer, candidates = gallery
    table = np.stack([candidate.vector for candidate in candidates])
    learned = torch.tensor(table, requires_grad=True)
    coarse = learned.detach().bfloat16()
    tables = (learned, coarse, list(learned), table.tolist(), table.view(np.matrix))
    for images in (*tables, *([Candidate(i, row) for i, row in enumerate(rows)] for rows in (learned, coarse))):
        assert [r.id for r in scorer.rank(QUERY, images, limit=2)] == [1, 3]


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        (None, "not None"),
        ([Candidate("a", None)], "must be numbers"),  # type: ignore[arg-type]
        (np.empty((0, 64), np.float32), "no image vectors"),
        (np.zeros((2, 64), np.float32), "are zero, the first at position 0"),
        (np.full((2, 64), np.nan, np.float32), "NaN or infinite"),
        (np.ones((2, 63), np.float32), "63 dimensions"),
        (np.ones(64, np.float32), "table"),
        ([Candidate("a", np.ones(64, np.float32)), Candidate("b", np.ones(3, np.float32))], "different lengths"),
        (np.array([["x"] * 64]), "must be numbers"),
        ([[1.0, 2.0], [3.0]], "table"),
        ([Candidate("a", np.ones(64, np.float32)), np.ones(64, np.float32)], "table"),
    ],
)
def test_bad_vectors_are_refused(candidates: Any, message: str) -> None:
    encoder, _ = toy_gallery()
    with pytest.raises(InvalidCandidate, match=message):
        LogicScorer(encoder).rank(QUERY, candidates)


BAD_OPTIONS: list[dict[str, Any]] = [
    *({"limit": value} for value in (0, -1, 5.0, "5", True)),
    *({"min_truth": value} for value in (1.5, float("nan"), "half")),
]


@pytest.mark.parametrize("options", BAD_OPTIONS, ids=str)
@pytest.mark.parametrize("query", [QUERY, ~UMBRELLA, UMBRELLA])
def test_bad_limits_are_refused(query: Query, options: dict[str, Any], gallery: Any) -> None:
    scorer, candidates = gallery
    vectors = np.stack([candidate.vector for candidate in candidates])
    with pytest.raises(InvalidOption):
        scorer.rank(query, candidates, **options)
    for pool in (VectorPool(vectors), RegionPool(vectors, vectors[:, None, :])):
        with pytest.raises(InvalidOption):
            pool.top(scorer.encode(query), **options)


@pytest.mark.parametrize("query", ["", "   ", None, 5, {"op": "and"}, ["dog"]])
def test_what_is_no_query_is_refused(query: Any, gallery: Any) -> None:
    scorer, candidates = gallery
    with pytest.raises(QueryError):
        scorer.rank(query, candidates)


async def test_bytes_that_are_no_letters_are_refused_whatever_the_parser(gallery: Any) -> None:
    scorer, candidates = gallery
    for parser in (parse, lambda text: Concept("dog")):
        strict = LogicScorer(scorer.encoder, parser=parser)
        with pytest.raises(QueryError, match="write it in UTF-8"):
            strict.rank("caf\udce9 and no dog", candidates)
        with pytest.raises(QueryError, match="write it in UTF-8"):
            await strict.aencode("caf\udce9 and no dog")


def test_calibration_belongs_to_its_encoder() -> None:
    encoder, candidates = toy_gallery()
    with pytest.raises(CalibrationMismatch, match="lcse calibrate"):
        LogicScorer(encoder, calibration=Calibration(mu=0.2, beta=30, encoder_id="another"))
    assert LogicScorer(encoder, calibration=CLIP_PRESET).rank(QUERY, candidates)

    class Uncalibrated(ToyEncoder):
        calibration = None  # type: ignore[assignment]

    with pytest.raises(CalibrationError, match="estimate_calibration"):
        LogicScorer(Uncalibrated())


def test_a_calibration_may_be_named_by_its_file(tmp_path: Path) -> None:
    written = Calibration(mu=0.2, beta=30.0)
    written.save(tmp_path / "mine.json")
    for place in (tmp_path / "mine.json", str(tmp_path / "mine.json")):
        assert LogicScorer(ToyEncoder(), calibration=place).calibration == written
    with pytest.raises(CalibrationError, match="cannot be read"):
        LogicScorer(ToyEncoder(), calibration=tmp_path / "none.json")
    with pytest.raises(CalibrationError, match="or the path of its file, not dict"):
        LogicScorer(ToyEncoder(), calibration={"mu": 0.2})  # type: ignore[arg-type]
