"""What an answer looked at, as a value that draws itself in a notebook: plain HTML, nothing loaded from elsewhere."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import List, Sequence, Tuple

from . import _check

_STYLE = (
    "border-collapse:collapse;font:13px/1.4 sans-serif",
    "padding:2px 8px;vertical-align:top;text-align:left",
    "display:inline-block;height:10px;background:#4477aa;vertical-align:middle",
)


@dataclass(frozen=True)
class Answer:
    """One answer: what it is of, what was said, and what it looked at, largest weight first."""

    of: str
    said: str
    looked_at: Sequence[Tuple[str, float]]


@dataclass(frozen=True)
class Explanation:
    """Answers with the weights behind them. Shows itself as bars in a notebook, as text elsewhere."""

    title: str
    answers: Sequence[Answer]
    shown: int = field(default=8)

    def __post_init__(self) -> None:
        _check.count("top", self.shown)

    def __len__(self) -> int:
        return len(self.answers)

    def __getitem__(self, place: int) -> Answer:
        return self.answers[place]

    def __repr__(self) -> str:
        lines = [self.title]
        for answer in self.answers:
            largest = ", ".join(f"{name} {weight:.3f}" for name, weight in answer.looked_at[: self.shown])
            lines.append(f"{answer.of}: {answer.said}; {largest}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        table, cell, bar = _STYLE
        rows: List[str] = []
        for answer in self.answers:
            bars = []
            for name, weight in answer.looked_at[: self.shown]:
                width = round(160 * min(1.0, abs(weight)))
                bars.append(f'<div><span style="{bar};width:{width}px"></span> {html.escape(name)} <small>{weight:.3f}</small></div>')
            left = len(answer.looked_at) - self.shown
            more = f"<div><small>and {left} more</small></div>" if left > 0 else ""
            rows.append(
                f'<tr><td style="{cell}">{html.escape(answer.of)}</td><td style="{cell}"><b>{html.escape(answer.said)}</b></td>'
                f'<td style="{cell}">{"".join(bars)}{more}</td></tr>'
            )
        return f'<table style="{table}"><caption style="text-align:left"><b>{html.escape(self.title)}</b></caption>{"".join(rows)}</table>'
