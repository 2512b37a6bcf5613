"""Wrong settings of a pydantic component raise this package's errors, as wrong arguments of a call do.

Pydantic comes with the frameworks whose components these are; nothing else of the core imports this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, BeforeValidator, ValidationError, ValidationInfo

from lcse_plugins.errors import InvalidOption, LcseError
from lcse_plugins.scoring.arguments import check_count

__all__ = ["CheckedOptions", "Count", "OptionalCount"]

_UNKNOWN = "extra_forbidden"
"""Pydantic's word for an argument that is no field."""


def _counted(value: Any, info: ValidationInfo) -> int | None:
    if value is None:
        return None
    check_count(info.field_name or "it", value)
    return int(value)


Count = Annotated[int, BeforeValidator(_counted)]
"""A field that holds a positive whole number; pydantic alone would take True, "4" and 4.0 for one."""

OptionalCount = Annotated[int | None, BeforeValidator(_counted)]
"""The same, or None."""


class CheckedOptions:
    """Goes before the pydantic class whose constructor it guards."""

    if not TYPE_CHECKING:  # type checkers read the arguments from the fields

        def __init__(self, *unnamed: Any, **options: Any) -> None:
            if unnamed:
                known = ", ".join(f"{name}=…" for name in _settable(type(self)))
                raise InvalidOption(f"{type(self).__name__} takes its options by keyword: {known}")
            try:
                super().__init__(**options)
            except ValidationError as error:
                raise _option_error(error, type(self)) from error


def _option_error(error: ValidationError, kind: type[BaseModel]) -> LcseError:
    faults = error.errors()
    cause = faults[0].get("ctx", {}).get("error")
    if len(faults) == 1 and isinstance(cause, LcseError):
        return cause
    told = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults if fault["type"] != _UNKNOWN]
    unknown = [str(fault["loc"][0]) for fault in faults if fault["type"] == _UNKNOWN]
    if unknown:
        told.append(f"{kind.__name__} has no {', '.join(unknown)}; it has {', '.join(_settable(kind))}")
    return InvalidOption("; ".join(told))


def _settable(kind: type[BaseModel]) -> list[str]:
    """Names of the fields that may be set, those of the host's own classes last."""
    inherited = {name for base in kind.__bases__ for name in getattr(base, "model_fields", ())}
    known = [name for name, field in kind.model_fields.items() if field.repr]  # others are not to be set
    return sorted(known, key=inherited.__contains__)
