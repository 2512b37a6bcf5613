"""Queries in the client's words, said in those of the embedded engine; and its answers, back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from uuid import UUID

import qdrant_edge as edge
from pydantic import TypeAdapter
from qdrant_client import models

from lcse_plugins.encoders.lru_cache import Recent
from lcse_plugins.errors import InvalidOption

__all__ = ["from_edge_points", "from_edge_record", "to_edge_payload", "to_edge_request"]


T = TypeVar("T")

_POINTS = TypeAdapter(list[models.ScoredPoint])

_FORMULAS: Recent[int, tuple[models.FormulaQuery, edge.Formula]] = Recent(64)
"""Translations of the formulas asked last, by identity; each is kept with its formula, so that no other can have it."""


def to_edge_request(request: models.QueryRequest) -> edge.QueryRequest:
    """A query with its prefetches."""
    translation = _Translation()
    return edge.QueryRequest(
        limit=10 if request.limit is None else request.limit,
        offset=request.offset or 0,
        query=translation.query(request.query, request.using),
        prefetches=translation.prefetches(request.prefetch),
        with_vector=request.with_vector or False,
        with_payload=to_edge_payload(request.with_payload),
        filter=translation.filter(request.filter),
        score_threshold=request.score_threshold,
        params=_params(request.params),
    )


class _Translation:
    """One query's translation: what stands in it several times, as filters and parts of formulas do, is said once."""

    def __init__(self) -> None:
        self._known: dict[int, Any] = {}

    def _once(self, part: Any, translate: Callable[[Any], T]) -> T:
        if id(part) not in self._known:
            self._known[id(part)] = translate(part)
        found: T = self._known[id(part)]
        return found

    def prefetches(self, prefetch: Any) -> list[edge.Prefetch]:
        return [] if prefetch is None else self._once(prefetch, self._prefetches)

    def _prefetches(self, prefetch: Any) -> list[edge.Prefetch]:
        return [
            edge.Prefetch(
                limit=one.limit or 10,
                query=self.query(one.query, one.using),
                prefetches=self.prefetches(one.prefetch),
                params=_params(one.params),
                filter=self.filter(one.filter),
                score_threshold=one.score_threshold,
            )
            for one in (prefetch if isinstance(prefetch, list) else [prefetch])
        ]

    def query(self, query: Any, using: str | None) -> Any:
        match query:
            case None:
                return None
            case models.NearestQuery():
                return edge.Query.Nearest(query.nearest, using)  # type: ignore[arg-type]
            case models.RecommendQuery(recommend=examples) if examples.strategy == models.RecommendStrategy.BEST_SCORE:
                wanted, unwanted = examples.positive or [], examples.negative or []
                return edge.Query.RecommendBestScore(edge.RecommendQuery(wanted, unwanted), using)  # type: ignore[arg-type]
            case models.FormulaQuery():
                return self.formula(query)
            case _:
                raise TypeError(f"the embedded engine is not asked {type(query).__name__} here")

    def formula(self, query: models.FormulaQuery) -> edge.Formula:
        said = _FORMULAS.known([id(query)]).get(id(query))
        if said is None:
            said = query, edge.Formula(self.expression(query.formula))
            _FORMULAS.keep({id(query): said})
        return said[1]

    def filter(self, condition: models.Filter | None) -> edge.Filter | None:
        return None if condition is None else self._once(condition, _filter)

    def expression(self, node: models.Expression) -> edge.Expression:
        return self._once(node, self._expression)

    def _expression(self, node: Any) -> edge.Expression:
        say = _EXPRESSIONS.get(type(node))
        if say is None:
            raise TypeError(f"the embedded engine is not asked {type(node).__name__} here")
        return say(node, self.expression)


_Saying = Callable[[Any, Callable[[Any], edge.Expression]], edge.Expression]

_EXPRESSIONS: dict[type, _Saying] = {
    float: lambda node, part: edge.Expression.Constant(node),
    str: lambda node, part: edge.Expression.Variable(node),
    models.SumExpression: lambda node, part: edge.Expression.Sum([part(one) for one in node.sum]),
    models.MultExpression: lambda node, part: edge.Expression.Mult([part(one) for one in node.mult]),
    models.NegExpression: lambda node, part: edge.Expression.Neg(part(node.neg)),
    models.AbsExpression: lambda node, part: edge.Expression.Abs(part(node.abs)),
    models.ExpExpression: lambda node, part: edge.Expression.Exp(part(node.exp)),
    models.LnExpression: lambda node, part: edge.Expression.Ln(part(node.ln)),
    models.DivExpression: lambda node, part: edge.Expression.Div(
        part(node.div.left), part(node.div.right), node.div.by_zero_default
    ),
    models.PowExpression: lambda node, part: edge.Expression.Pow(part(node.pow.base), part(node.pow.exponent)),
}
"""How each part of a formula is said; by type, because a formula has dozens of parts."""


def _filter(condition: models.Filter) -> edge.Filter:
    def listed(part: Any) -> list[Any] | None:
        return None if part is None else [_condition(one) for one in (part if isinstance(part, list) else [part])]

    enough = condition.min_should
    least = None if enough is None else edge.MinShould(listed(enough.conditions) or [], enough.min_count)
    return edge.Filter(listed(condition.must), listed(condition.should), listed(condition.must_not), least)


def _condition(condition: Any) -> Any:
    match condition:
        case models.Filter():
            return _filter(condition)
        case models.HasIdCondition():
            return edge.HasIdCondition(set(condition.has_id))
        case models.IsEmptyCondition(is_empty=field):
            return edge.IsEmptyCondition(field.key)
        case models.IsNullCondition(is_null=field):
            return edge.IsNullCondition(field.key)
        case models.FieldCondition():
            return _field_condition(condition)
        case _:
            raise _not_asked(condition)


def _field_condition(condition: models.FieldCondition) -> edge.FieldCondition:
    asked = {name for name, value in condition if value is not None}
    span = condition.range
    if asked - {"key", "match", "range"} or not isinstance(span, models.Range | None):
        raise _not_asked(condition)
    wanted: Any = None
    match condition.match:
        case None:
            pass
        case models.MatchValue(value=value):
            wanted = edge.MatchValue(value)
        case models.MatchAny(any=values):
            wanted = edge.MatchAny(values)
        case models.MatchExcept(except_=values):
            wanted = edge.MatchExcept(values)
        case models.MatchText(text=text):
            wanted = edge.MatchText(text)
        case _:
            raise _not_asked(condition)
    between = None if span is None else edge.RangeFloat(span.gte, span.gt, span.lte, span.lt)
    return edge.FieldCondition(condition.key, match=wanted, range=between)


def _not_asked(condition: object) -> InvalidOption:
    return InvalidOption(f"EmbeddedClient does not pass on this condition of a filter: {condition!r:.200}")


def _params(params: models.SearchParams | None) -> edge.SearchParams | None:
    if params is None:
        return None
    quantization = None
    if params.quantization is not None:
        asked = params.quantization
        quantization = edge.QuantizationSearchParams(asked.ignore or False, asked.rescore, asked.oversampling)
    return edge.SearchParams(params.hnsw_ef, params.exact or False, quantization, params.indexed_only or False)


def to_edge_payload(selector: Any) -> Any:
    """Which payload to return."""
    match selector:
        case models.PayloadSelectorInclude():
            return edge.PayloadSelector.Include(selector.include)
        case models.PayloadSelectorExclude():
            return edge.PayloadSelector.Exclude(selector.exclude)
        case _:
            return False if selector is None else selector


def from_edge_points(points: Sequence[edge.ScoredPoint], *, bare: bool = False) -> list[models.ScoredPoint]:
    """Found points; read all at once, but for their vectors, every number of which would be looked at.

    Args:
        points: What the engine found.
        bare: Whether they come without payload and vectors, as candidates do, of which there are many.
    """
    if bare:
        return _POINTS.validate_python([{"id": _id(p.id), "version": p.version, "score": p.score} for p in points])
    read = _POINTS.validate_python(
        [{"id": _id(p.id), "version": p.version, "score": p.score, "payload": p.payload} for p in points]
    )
    for point, found in zip(read, points, strict=True):
        if (vector := found.vector) is not None:
            point.vector = vector  # type: ignore[assignment]  # image vectors are dense
    return read


def from_edge_record(point: edge.Record) -> models.Record:
    """A stored point."""
    return models.Record.model_construct(id=_id(point.id), payload=point.payload, vector=point.vector)


def _id(point_id: int | str | UUID) -> int | str:
    return point_id if type(point_id) is int else str(point_id)
