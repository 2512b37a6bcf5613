"""What any client's exception means: whether the fault may pass, when, and whom it blames.

Clients differ. Nearly all of them put the HTTP status and the response on the exception they raise, or wrap one that
has them; what never reached a server is told by the names of its classes, since no client's types are ours to import.
"""

from __future__ import annotations

import email.utils
import re
import ssl
import time
from collections.abc import Iterator, Mapping

from lcse_plugins.errors import ParserOutputError, ParserUnavailable
from lcse_plugins.http_status import may_pass

__all__ = ["as_fault"]

_PASSING = re.compile(r"Timeout|ConnectError|ConnectionError|TransportError|ProtocolError")
_CLOSED = "client has been closed"
"""Said by a client that another thread closed meanwhile; the next try opens a new one."""
_LASTING = re.compile(r"UnsupportedProtocol|LocalProtocolError")
_MISMATCH = (ssl.SSLError, ssl.SSLCertVerificationError)
"""No TLS there, or not the right one; the subclasses of `SSLError` besides are connections that broke."""


def as_fault(error: Exception) -> ParserOutputError | ParserUnavailable:
    """The fault that `error` stands for, with `error` as its cause."""
    if isinstance(error, ParserOutputError | ParserUnavailable):
        return error
    fault = _unfinished(error) or _unavailable(error)
    fault.__cause__ = error
    return fault


def _unfinished(error: Exception) -> ParserOutputError | None:
    """The model did answer, and the client would not take the answer because of how it ended."""
    names = _names(error)
    if "LengthFinishReasonError" in names:
        return ParserOutputError("the reply was cut off at the token limit; be shorter")
    if "ContentFilterFinishReasonError" in names:
        return ParserOutputError("the server's content filter stopped the reply", repairable=False)
    return None


def _unavailable(error: Exception) -> ParserUnavailable:
    causes = list(_causes(error))
    for link in causes:
        response = getattr(link, "response", None)
        status = getattr(link, "status_code", None) or getattr(response, "status_code", None)
        if isinstance(status, int):
            passing = may_pass(status) and getattr(link, "code", None) != "insufficient_quota"
            headers = getattr(response, "headers", None)
            return ParserUnavailable(
                _told(error), retryable=passing, retry_after=_retry_after(headers) if headers else None
            )
    lasting = any(type(link) in _MISMATCH or _LASTING.search(_names(link)) for link in causes)
    passing = not lasting and any(_PASSING.search(_names(link)) or _CLOSED in str(link) for link in causes)
    reason = _told(error) if len(causes) == 1 else f"{_told(error)} ({_told(causes[-1])})"
    return ParserUnavailable(reason, retryable=passing)


def _causes(error: Exception) -> Iterator[Exception]:
    """The error, what caused it, and so on to the first."""
    seen: set[int] = set()
    link: BaseException | None = error
    while isinstance(link, Exception) and id(link) not in seen:  # a cancellation only carries out a time limit
        seen.add(id(link))
        yield link
        wrapped = next((part for part in link.args if isinstance(part, Exception)), None)
        link = link.__cause__ or wrapped or (None if link.__suppress_context__ else link.__context__)


def _names(error: Exception) -> str:
    return " ".join(kind.__name__ for kind in type(error).__mro__)


def _told(error: Exception) -> str:
    message = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the server asks to wait, from `retry-after-ms` or `retry-after` (seconds or a date)."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) / unit
        except ValueError:
            try:
                seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
            except (TypeError, ValueError):
                continue
        if seconds == seconds:  # not "nan"
            return max(0.0, seconds)
    return None
