"""Charts as inline SVG and a page to put them on: one HTML file that asks the network for nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["bar_chart", "heat_map", "html_page", "html_table", "line_chart"]

_WIDTH, _HEIGHT = 560, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 150, 30, 44
_COLOURS = ("#2563eb", "#dc2626", "#16a34a", "#9333ea", "#d97706", "#0891b2", "#be185d", "#4b5563")
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;color:#111;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}svg{max-width:100%;height:auto}
table{border-collapse:collapse;margin:.5rem 0}td,th{padding:.2rem .7rem;border-bottom:1px solid #ddd;text-align:right}
td:first-child,th:first-child{text-align:left}p{max-width:46rem}
@media(prefers-color-scheme:dark){body{background:#111;color:#eee}svg text{fill:#eee}td,th{border-color:#444}}
"""


def line_chart(
    title: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    x_label: str,
    y_label: str,
    log_x: bool = False,
) -> str:
    """Lines of (x, y) points, one colour a name."""
    points = np.array([point for line in series.values() for point in line], dtype=float)
    xs, ys = (np.log(points[:, 0]) if log_x else points[:, 0]), points[:, 1]
    x_low, x_high, (y_low, y_high) = float(xs.min()), float(xs.max()), _padded(ys)

    def place(x: float, y: float) -> tuple[float, float]:
        at = float(np.log(x)) if log_x else x
        return (
            _LEFT + (at - x_low) / max(x_high - x_low, 1e-12) * (_WIDTH - _LEFT - _RIGHT),
            _HEIGHT - _BOTTOM - (y - y_low) / (y_high - y_low) * (_HEIGHT - _TOP - _BOTTOM),
        )

    parts = [_axis_labels(x_label, y_label)]
    for y in np.linspace(y_low, y_high, 5):
        _, at = place(float(points[0, 0]), float(y))
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="#8884"/>')
        parts.append(_text(_LEFT - 6, at + 4, f"{y:.3g}", anchor="end"))
    ticks = sorted({float(x) for x, _ in next(iter(series.values()))})
    for x in ticks[:: max(1, len(ticks) // 6)]:
        parts.append(_text(place(x, y_low)[0], _HEIGHT - _BOTTOM + 16, f"{x:.3g}", anchor="middle"))
    for number, (name, line) in enumerate(series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in (place(x, y) for x, y in line))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(_text(_WIDTH - _RIGHT + 10, _TOP + 14 + 18 * number, name, colour=colour))
    return _svg(title, parts, _HEIGHT)


def bar_chart(title: str, values: Mapping[str, float]) -> str:
    """Horizontal bars, negative ones to the left."""
    low, high = min(0.0, *values.values()), max(0.0, *values.values())
    scale = (_WIDTH - 320) / max(high - low, 1e-12)
    zero = 220 - low * scale
    parts = []
    for number, (name, value) in enumerate(values.items()):
        y, width = _TOP + 24 * number, abs(value) * scale
        start = zero if value >= 0 else zero - width
        parts.append(_text(210, y + 13, name, anchor="end"))
        parts.append(f'<rect x="{start:.1f}" y="{y}" width="{width:.1f}" height="18" fill="{_COLOURS[0]}"/>')
        parts.append(_text(max(zero, start + width) + 6, y + 13, f"{value:.3g}"))
    return _svg(title, parts, _TOP + 24 * len(values) + 10)


def heat_map(title: str, rows: Sequence[str], columns: Sequence[str], values: ArrayLike) -> str:
    """A table in colours: blue below zero or the middle, red above."""
    table = np.asarray(values, dtype=float)
    middle = 0.0 if table.min() < 0 < table.max() else float(np.median(table))
    reach = max(float(np.abs(table - middle).max()), 1e-12)
    width, height = min(90, (_WIDTH - 130) // max(1, len(columns))), 26
    parts = [_text(130 + width * (j + 0.5), _TOP + 8, column, anchor="middle") for j, column in enumerate(columns)]
    for i, row in enumerate(rows):
        y = _TOP + 14 + height * i
        parts.append(_text(122, y + 17, row, anchor="end"))
        for j in range(len(columns)):
            share = (table[i, j] - middle) / reach
            hue = "220,38,38" if share > 0 else "37,99,235"
            x = 130 + width * j
            parts.append(
                f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="rgba({hue},{abs(share) * 0.7:.2f})"/>'
            )
            parts.append(_text(x + width / 2, y + 17, f"{table[i, j]:.3g}", anchor="middle"))
    return _svg(title, parts, _TOP + 24 + height * len(rows))


def html_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table; numbers get one decimal."""

    def cell(value: object) -> str:
        return f"{value:.1f}" if isinstance(value, float) else escape(str("–" if value is None else value))

    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{cell(value)}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_page(title: str, sections: Sequence[tuple[str, str, str]]) -> str:
    """A whole page of (heading, explanation, HTML) sections."""
    body = "".join(f"<h2>{escape(head)}</h2><p>{escape(said)}</p>{content}" for head, said, content in sections)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1>{body}</body></html>\n"
    )


def _svg(title: str, parts: Sequence[str], height: int) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" role="img" aria-label="{escape(title)}">'
        f"{_text(_LEFT, 16, title, size=13)}{''.join(parts)}</svg>"
    )


def _text(x: float, y: float, text: str, *, anchor: str = "start", colour: str = "", size: int = 11) -> str:
    fill = f' fill="{colour}"' if colour else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"{fill}>{escape(text)}</text>'


def _axis_labels(x_label: str, y_label: str) -> str:
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    return _text(middle, _HEIGHT - 8, x_label, anchor="middle") + (
        f'<text x="14" y="{_HEIGHT / 2}" font-size="11" text-anchor="middle" '
        f'transform="rotate(-90 14 {_HEIGHT / 2})">{escape(y_label)}</text>'
    )


def _padded(values: np.ndarray) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    pad = max((high - low) * 0.08, 1e-6)
    return low - pad, high + pad
