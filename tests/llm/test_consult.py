"""The conversation with a model, driven by hand and by a clock of one's own."""

from __future__ import annotations

import pytest

from lcse_plugins.errors import ParserUnavailable
from lcse_plugins.parsing.consult import Patience, Pause, Question, consult
from lcse_plugins.query import Concept


def test_no_question_outlasts_the_deadline() -> None:
    now = 0.0
    patience = Patience(timeout=15, deadline=20, max_retries=3, first_wait=1)
    talk = consult("a dog", patience=patience, decode=lambda _: Concept("dog"), clock=lambda: now)
    first = next(talk)
    assert isinstance(first, Question)
    assert first.time_limit == 15
    now = 12.0
    assert isinstance(talk.throw(ParserUnavailable("busy", retryable=True)), Pause)
    second = talk.send("")
    assert isinstance(second, Question)
    assert second.time_limit == 8
    now = 19.9
    with pytest.raises(ParserUnavailable, match="no time for another try within 20 s"):
        talk.throw(ParserUnavailable("busy", retryable=True))
