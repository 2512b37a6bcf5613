"""The server of the page: a small Starlette application over one collection.

It is for the person at this machine and nobody else. It listens on 127.0.0.1, its addresses begin with a secret token,
requests for another host or from another site are refused, and a content policy lets the page load and run nothing but
itself. Pictures are served only if the collection holds them, and only as freshly written JPEGs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from secrets import compare_digest, token_hex
from typing import Any, get_args
from urllib.parse import urlsplit

import numpy as np

from lcse_plugins.cli.answers import answer_of, browse_answer, location_of
from lcse_plugins.cli.page.collections import DEEP, Collection, nearer
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import ImageError, InvalidOption, LcseError, MissingExtra
from lcse_plugins.images.locations import read_image
from lcse_plugins.images.reading import load_image
from lcse_plugins.images.thumbnails import jpeg_thumbnail
from lcse_plugins.query import Query, from_json
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.config import Mode

try:
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.datastructures import Headers, MutableHeaders
    from starlette.middleware import Middleware
    from starlette.requests import Request
    from starlette.responses import JSONResponse, PlainTextResponse, Response
    from starlette.routing import Mount, Route
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
except ImportError as error:
    raise MissingExtra("the page", "web", "starlette and uvicorn") from error

MOST_RESULTS = 1000
LARGEST_DROP = 32 * 1024 * 1024
LARGEST_QUESTION = 256 * 1024
COMPARED = 12
"""Pictures beside each other when logic is compared with plain similarity."""
KEPT_DROPS = 16
SIDES = (96, 384, 1280)
"""Sizes that pictures are served in, pixels of the longer side."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass
class PageState:
    """What the server is doing; written by the thread that indexes, read by the page.

    Attributes:
        title: What is searched, in words.
        collection: The pictures; None until there are any.
        version: Grows with each new collection, so that the page asks again.
        busy: Whether pictures are being indexed; `done` and `total` say how far.
        message: What a person should know once that has ended.
        examples: Queries to try.
    """

    title: str
    collection: Collection | None = None
    version: int = 0
    busy: bool = False
    done: int = 0
    total: int = 0
    message: str = ""
    examples: list[str] = field(default_factory=list)

    def put(self, collection: Collection) -> None:
        """Search this from now on."""
        self.collection, self.version = collection, self.version + 1

    def to_json(self) -> dict[str, Any]:
        """What the page is told."""
        told = {name: value for name, value in vars(self).items() if name != "collection"}
        return {**told, "ready": self.collection is not None, "pictures": len(self.collection or ())}


def make_app(state: PageState, scorer: LogicScorer, *, token: str) -> Starlette:
    """The application; the page is at `/<token>/`.

    Args:
        state: What is searched.
        scorer: Reads and scores queries.
        token: The secret that every address begins with.
    """
    desk = _Desk(state, scorer)

    def asset(name: str, kind: str) -> Route:
        text = (files("lcse_plugins.cli.page") / name).read_text(encoding="utf-8")
        return Route("/" if name == "page.html" else f"/{name}", lambda request: Response(text, media_type=kind))

    def told(work: Callable[[bytes], dict[str, Any]], path: str, most: int) -> Route:
        async def answer(request: Request) -> Response:
            body = await request.body()
            try:
                if len(body) > most:
                    raise InvalidOption("that is too large")
                return JSONResponse(await run_in_threadpool(work, body))
            except LcseError as error:  # in words for the page
                return JSONResponse({"refused": str(error)})

        return Route(path, answer, methods=["POST"])

    async def now(request: Request) -> Response:
        told = await run_in_threadpool(state.to_json)  # a database may take a while to count
        return JSONResponse({**told, "modes": get_args(Mode), "mode": scorer.config.mode})

    async def picture(request: Request) -> Response:
        try:
            jpeg = await run_in_threadpool(desk.picture, **request.query_params)
        except (LcseError, TypeError) as error:
            return PlainTextResponse(str(error), status_code=404)
        return Response(jpeg, media_type="image/jpeg", headers={"Cache-Control": "private, max-age=300"})

    routes = [
        asset("page.html", "text/html"),
        asset("page.css", "text/css"),
        asset("page.js", "text/javascript"),
        Route("/state", now),
        Route("/picture", picture),
        told(desk.search, "/search", LARGEST_QUESTION),
        told(desk.keep, "/drop", LARGEST_DROP),
    ]
    return Starlette(routes=[Mount(f"/{token}", routes=routes)], middleware=[Middleware(_Guard, token=token)])


class _Desk:
    """Answers what the page asks; called from worker threads."""

    def __init__(self, state: PageState, scorer: LogicScorer) -> None:
        self._state, self._scorer = state, scorer
        self._scorers = {scorer.config.mode: scorer}  # each keeps the texts it has encoded
        self._drops: dict[str, tuple[bytes, FloatArray]] = {}
        self._thumbnail = lru_cache(maxsize=1024)(self._thumbnail_of)

    def search(self, body: bytes) -> dict[str, Any]:
        """The answer to a question of the page: a text or a tree, examples, a mode, a strictness."""
        asked = _read(body)
        collection = self._collection()
        wish = self._wish(collection, asked.examples)
        if not asked.query:
            found = collection.alike(wish, asked.limit)
            return browse_answer(found, "" if wish is None else "The most alike first.")
        scorer = self._in_mode(asked.mode)
        encoded = scorer.encode(asked.query)
        deep = asked.limit if wish is None else max(asked.limit, DEEP)
        ranking, satisfying = collection.search(encoded, scorer, limit=deep, min_truth=asked.min_truth)
        if wish is not None:
            ranking = nearer(ranking, wish)[: asked.limit]
        answer = answer_of(ranking, encoded, satisfying)
        if asked.compare:
            plain = self._in_mode("holistic")
            same = plain.encode(asked.query)
            beside, _ = collection.search(same, plain, limit=COMPARED, min_truth=None)
            answer["plain"] = answer_of(beside, same)["results"]
        return answer

    def keep(self, body: bytes) -> dict[str, Any]:
        """Encode a picture that was dropped on the page, and keep it for the questions to come."""
        vector = self._scorer.encoder.encode_images([load_image(body)])[0]
        key = f"drop-{token_hex(8)}"
        self._drops[key] = (jpeg_thumbnail(body, max_side=SIDES[0]) or b"", vector)
        for old in list(self._drops)[:-KEPT_DROPS]:
            self._drops.pop(old, None)
        return {"key": key}

    def picture(self, *, id: str = "", key: str = "", side: str = "") -> bytes:
        """A picture of the collection, or one that was dropped, as a JPEG file."""
        if key:
            return self._dropped(key)[0]
        if side not in map(str, SIDES):
            raise InvalidOption(f"a picture has a side of {', '.join(map(str, SIDES))}")
        return self._thumbnail(self._state.version, id, int(side))

    def _thumbnail_of(self, version: int, name: str, side: int) -> bytes:
        collection = self._collection()
        place = location_of(collection.find(name))
        if place is None:
            raise ImageError(name, "nothing says where its picture is")
        return jpeg_thumbnail(read_image(place, access=collection.access), max_side=side) or b""

    def _wish(self, collection: Collection, examples: list[dict[str, Any]]) -> FloatArray | None:
        """The direction of what examples have in common, less that of those which are not wanted."""
        means = []
        for negated in (False, True):
            vectors = [
                self._dropped(item["key"])[1] if item.get("key") else collection.find(str(item.get("id"))).vector
                for item in examples
                if bool(item.get("negated")) == negated
            ]
            if vectors:
                means.append(np.mean(vectors, axis=0, dtype=np.float32) * (-1 if negated else 1))
        return sum(means[1:], means[0]) if means else None

    def _dropped(self, key: str) -> tuple[bytes, FloatArray]:
        if key not in self._drops:
            raise ImageError(key, "this picture is no longer kept; drop it again")
        return self._drops[key]

    def _in_mode(self, mode: Any) -> LogicScorer:
        if not mode:
            return self._scorer
        if mode not in self._scorers:
            self._scorers[mode] = LogicScorer.of(self._scorer, mode=mode)
        return self._scorers[mode]

    def _collection(self) -> Collection:
        if self._state.collection is None:
            raise InvalidOption("the pictures are still being indexed")
        return self._state.collection


@dataclass(frozen=True)
class _Question:
    """What the page asks, checked."""

    query: str | Query
    examples: list[dict[str, Any]]
    mode: str
    min_truth: float | None
    limit: int
    compare: bool


def _read(body: bytes) -> _Question:
    try:
        asked = json.loads(body)
        return _Question(
            query=from_json(asked["tree"]) if asked.get("tree") else str(asked.get("text") or "").strip(),
            examples=[dict(item) for item in asked.get("examples") or []],
            mode=str(asked.get("mode") or ""),
            min_truth=float(asked.get("min_truth") or 0) or None,
            limit=max(1, min(int(asked.get("limit") or 48), MOST_RESULTS)),
            compare=bool(asked.get("compare")),
        )
    except LcseError:
        raise
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidOption(f"the page asked what cannot be understood: {error}") from error


class _Guard:
    """Refuses requests that do not come from the page itself, and puts the content policy on every answer."""

    def __init__(self, app: ASGIApp, *, token: str) -> None:
        self.app, self.token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer that there is nothing here."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if self._is_own(scope):
            return await self.app(scope, receive, guarded)
        return await PlainTextResponse("Nothing here.", status_code=404)(scope, receive, guarded)

    def _is_own(self, scope: Scope) -> bool:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        first = scope["path"].lstrip("/").partition("/")[0]
        return (
            urlsplit(f"//{host}").hostname in ("127.0.0.1", "localhost")  # a rebound name would say its own
            and (origin is None or origin == f"http://{host}")
            and headers.get("sec-fetch-site", "none") in ("none", "same-origin")
            and compare_digest(first.encode(), self.token.encode())
        )
