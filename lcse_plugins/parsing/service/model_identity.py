"""What tells a host framework's models of one name apart: two servers, two deployments, two temperatures."""

from __future__ import annotations

import json
import re
from functools import partial
from hashlib import sha256
from typing import Any

__all__ = ["model_identity"]

_NO_MATTER = re.compile(r"key|secret|password|token$|timeout|retries|verbose|streaming")
"""Settings that do not decide an answer, or that are nobody's business."""


def model_identity(model: Any, *, ignored: type[Any] | None = None, **more: object) -> str:
    """A short digest of a pydantic model's class and settings, the same in every process.

    Args:
        model: LangChain's or LlamaIndex's model; what it wraps counts as well, clients and functions do not.
        ignored: A class whose own fields do not count.
        more: What else decides the answer.
    """
    names = sorted(set(_fields(type(model))) - set(_fields(ignored)))
    settings = {name: getattr(model, name) for name in names if not _NO_MATTER.search(name)}
    told = {name: value for name, value in settings.items() if _tells(value)}
    within = partial(model_identity, ignored=ignored)
    content = json.dumps([type(model).__qualname__, told, more], sort_keys=True, skipkeys=True, default=within)
    return sha256(content.encode()).hexdigest()[:12]


def _tells(value: object) -> bool:
    return isinstance(value, str | int | float | dict | list | tuple) or bool(_fields(type(value)))


def _fields(kind: type[Any] | None) -> dict[str, Any]:
    fields: dict[str, Any] = getattr(kind, "model_fields", {})
    return fields
