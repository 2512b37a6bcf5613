"""Wrong settings raise this package's errors, as wrong arguments of a call do, not pydantic's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from lcse_plugins.errors import InvalidOption, LcseError

__all__ = ["CheckedOptions"]


class CheckedOptions:
    """Goes before the pydantic class whose constructor it guards."""

    if not TYPE_CHECKING:  # type checkers read the arguments from the fields

        def __init__(self, **options: Any) -> None:
            try:
                super().__init__(**options)
            except ValidationError as error:
                raise _option_error(error) from error


def _option_error(error: ValidationError) -> LcseError:
    faults = error.errors()
    cause = faults[0].get("ctx", {}).get("error")
    if len(faults) == 1 and isinstance(cause, LcseError):
        return cause
    return InvalidOption("; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults))
