"""Several queries in lockstep: what they ask in one round travels in one batch."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from qdrant_client import models
from qdrant_client.http.models import QueryResponse

from qdrant_lcse.hits import Hits
from qdrant_lcse.messages import Call, Fetch, Searches, Steps
from qdrant_lcse.options import Options

__all__ = ["run_in_lockstep"]


def run_in_lockstep(queries: Sequence[Steps], *, collection: str, options: Options) -> Generator[Call, Any, list[Hits]]:
    """Run queries to their ends; each round makes at most one call for searches and one for fetches.

    Args:
        queries: One generator for each query.
        collection: Where they search.
        options: What all of them were asked for.

    Yields:
        Calls to carry out; send back what the client's method returned.

    Returns:
        The hits of each query.
    """
    hits: dict[int, Hits] = {}
    pending = {place: next(steps) for place, steps in enumerate(queries)}
    while pending:
        requests = [
            request for message in pending.values() if isinstance(message, Searches) for request in message.requests
        ]
        ids = [point_id for message in pending.values() if isinstance(message, Fetch) for point_id in message.ids]
        responses: list[QueryResponse] = []
        records: list[models.Record] = []
        common = {"collection_name": collection, "timeout": options.timeout}
        if requests:
            responses = yield Call("query_batch_points", {**common, "requests": requests})
        if ids:
            parts = {"with_payload": options.with_payload, "with_vectors": options.with_vectors}
            records = yield Call("retrieve", {**common, **parts, "ids": ids})
        by_id = {record.id: record for record in records}
        answered = iter(responses)
        for place, message in list(pending.items()):
            answer = by_id if isinstance(message, Fetch) else [next(answered).points for _ in message.requests]
            try:
                pending[place] = queries[place].send(answer)
            except StopIteration as end:
                hits[place] = end.value
                del pending[place]
    return [hits[place] for place in range(len(queries))]
