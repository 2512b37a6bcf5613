"""Pydantic components: wrong settings raise this package's errors, and fields are described in `help()`."""

from __future__ import annotations

from inspect import cleandoc
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, ValidationError, ValidationInfo

from lcse_plugins.errors import InvalidOption, LcseError
from lcse_plugins.scoring.arguments import check_count

__all__ = ["CheckedOptions", "OptionalCount"]


def _counted(value: Any, info: ValidationInfo) -> int | None:
    if value is None:
        return None
    check_count(info.field_name or "it", value)
    return int(value)


OptionalCount = Annotated[int | None, BeforeValidator(_counted)]
"""A positive whole number or None; pydantic alone would take True, "4" and 4.0 for one."""


class CheckedOptions:
    """Goes before the pydantic class whose constructor it guards and whose fields it lists in the docstring."""

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        """Called by pydantic when the fields of a class are known."""
        super().__pydantic_init_subclass__(**options)  # type: ignore[misc]  # of pydantic's BaseModel
        told = [f"    {name}: {field.description}" for name, field in _described(cls).items()]
        cls.__doc__ = "\n".join([cleandoc(cls.__doc__ or ""), "", "Args:", *told])

    if not TYPE_CHECKING:  # type checkers read the arguments from the fields

        def __init__(self, *unnamed: Any, **options: Any) -> None:
            kind = type(self)
            known = [*_described(kind)]
            if unnamed:
                raise InvalidOption(f"{kind.__name__} takes its options by keyword: {'=…, '.join(known)}=…")
            try:
                super().__init__(**options)
            except ValidationError as error:
                faults = error.errors()
                if isinstance(cause := faults[0].get("ctx", {}).get("error"), LcseError):
                    raise cause from error
                told = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults]
                if unknown := [str(fault["loc"][0]) for fault in faults if fault["type"] == "extra_forbidden"]:
                    told = [f"{kind.__name__} has no {', '.join(unknown)}; it has {', '.join(known)}"]
                raise InvalidOption("; ".join(told)) from error


def _described(kind: Any) -> dict[str, Any]:
    return {name: field for name, field in kind.model_fields.items() if field.repr and field.description}
