"""``python -m bench.picture``: where the seconds of a whole cleanup go, beside what it is measured against.

Drawn from what ``python -m bench`` has kept in ``.lowtide/bench/seconds.json``: ``docs/images/seconds.svg``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from bench.__main__ import HOME

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "seconds.svg"
#: The phases of a run in their order, each with its colour; whatever else is measured has one part.
COLOURS = {
    "start": "#9aa5b1",
    "plan": "#7b8794",
    "find": "#2f6f8f",
    "decide": "#5aa3b8",
    "act": "#e0a030",
    "record": "#8f5f2f",
}
_OTHER = "#9aa5b1"
_STYLE = (
    "<style>.page { fill: #ffffff; } .text { fill: #1f2933; } "
    "@media (prefers-color-scheme: dark) { .page { fill: #1b1f27; } .text { fill: #e6eaf0; } }</style>"
)
WIDTH, LEFT, TOP, BAR, GAP = 860, 190, 58, 26, 14
#: Parts narrower than this have their seconds beside their name above, not in them.
_ROOM = 34


def drawn(seconds: Mapping[str, Mapping[str, float]]) -> str:
    """An SVG of bars, one for each thing that was measured, of its parts in seconds."""
    longest = max(sum(parts.values()) for parts in seconds.values())
    scale = (WIDTH - LEFT - 70) / longest
    height = TOP + len(seconds) * (BAR + GAP) + 8
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="t d" '
        'font-family="system-ui, sans-serif" font-size="13">',
        '<title id="t">Where the seconds of a whole cleanup go, beside what it is measured against</title>',
        f'<desc id="d">{"; ".join(map(_told, seconds, seconds.values()))}</desc>',
        _STYLE,
        f'<rect class="page" width="{WIDTH}" height="{height}" rx="8"/>',
    ]
    x = float(LEFT)
    for name, colour in COLOURS.items():
        lines.append(f'<rect x="{x:.0f}" y="18" width="12" height="12" fill="{colour}"/>')
        lines.append(f'<text x="{x + 17:.0f}" y="29" class="text">{name}</text>')
        x += 34 + 8 * len(name)
    for number, (what, parts) in enumerate(seconds.items()):
        y, x = TOP + number * (BAR + GAP), float(LEFT)
        lines.append(f'<text x="{LEFT - 10}" y="{y + 18}" text-anchor="end" class="text">{what}</text>')
        for name, value in parts.items():
            wide = value * scale
            lines.append(
                f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{BAR}" fill="{COLOURS.get(name, _OTHER)}"/>'
            )
            if len(parts) > 1 and wide >= _ROOM:
                lines.append(
                    f'<text x="{x + wide / 2:.1f}" y="{y + 18}" text-anchor="middle" fill="#ffffff">{value:.1f}</text>'
                )
            x += wide
        lines.append(f'<text x="{x + 8:.1f}" y="{y + 18}" class="text">{sum(parts.values()):.1f} s</text>')
    return "\n".join([*lines, "</svg>\n"])


def _told(what: str, parts: Mapping[str, float]) -> str:
    of = ", ".join(f"{name} {value:.1f}" for name, value in parts.items()) if len(parts) > 1 else ""
    return f"{what}: {sum(parts.values()):.1f} s{of and f' ({of})'}"


def main() -> int:
    """Draw it."""
    kept = HOME / "seconds.json"
    if not kept.exists():
        sys.exit(f"{kept} is not there: run .venv/bin/python -m bench first")
    PICTURE.write_text(drawn(json.loads(kept.read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
