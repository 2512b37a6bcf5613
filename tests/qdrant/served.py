"""The embedded engine behind HTTP, so that the real client's requests travel as they would to a server."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from pydantic_core import to_jsonable_python
from qdrant_client.http.models import PointRequest, QueryRequestBatch
from qdrant_lcse.embedded import EmbeddedClient

from lcse_plugins.errors import CollectionError


class Engine(ThreadingHTTPServer):
    """Answers with the engine's answers, or with a fault when told to.

    Attributes:
        status: answer every request with this status instead, unless 200.
        delay: seconds to wait before each answer.
        sent: bytes of the answers so far.
        asked: paths of the requests so far.
    """

    daemon_threads = True

    def __init__(self, client: EmbeddedClient) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.client = client
        self.status = 200
        self.delay = 0.0
        self.sent = 0
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Engine
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, body: bytes) -> None:
        time.sleep(self.server.delay)
        path = self.path.split("?")[0]
        self.server.asked.append(path)
        status, result = self.server.status, {"status": {"error": "told to fail"}}
        if status == 200:
            try:
                result = {"result": to_jsonable_python(self._result(path, body)), "status": "ok", "time": 0.0}  # type: ignore[dict-item]
            except CollectionError as error:
                status, result = 404, {"status": {"error": str(error)}}
        content = json.dumps(result).encode()
        self.server.sent += len(content)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _result(self, path: str, body: bytes) -> Any:
        client, name = self.server.client, path.split("/")[2]
        if path.endswith("/points/query/batch"):
            return client.query_batch_points(name, QueryRequestBatch.model_validate_json(body).searches)
        if path.endswith("/points"):
            asked = PointRequest.model_validate_json(body)
            return client.retrieve(
                name, asked.ids, with_payload=asked.with_payload, with_vectors=asked.with_vector or False
            )
        info = client.get_collection(name)
        empty = {"status": "green", "optimizer_status": "ok", "segments_count": 1, "payload_schema": {}}
        hnsw = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000}
        optimizer = {"deleted_threshold": 0.2, "vacuum_min_vector_number": 1000, "default_segment_number": 0}
        config = {"params": info.config.params, "hnsw_config": hnsw}
        return {**empty, "config": {**config, "optimizer_config": {**optimizer, "flush_interval_sec": 5}}}

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def served(client: EmbeddedClient) -> Iterator[Engine]:
    """The engine, answering until the block ends."""
    engine = Engine(client)
    thread = Thread(target=engine.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield engine
    finally:
        engine.shutdown()
        engine.server_close()
        thread.join()
