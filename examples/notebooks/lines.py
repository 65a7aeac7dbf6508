"""A chart of lines that notebooks show without any package: the last value of a cell, drawn by `_repr_svg_`."""

import math
from collections.abc import Mapping, Sequence
from html import escape

COLOURS = ("#1b6ca8", "#d1495b", "#3f8f4f", "#8a5fbf", "#c77d0a", "#5c6770")
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 320, 56, 36, 190, 44


class Lines:
    """Lines over common places on the x axis, which stand at equal distances; the y axis begins at zero, or goes by doublings."""

    def __init__(
        self, title: str, x_name: str, x: Sequence[object], lines: Mapping[str, Sequence[float]], *, logarithmic: bool = False
    ) -> None:
        """Each line has a name, which stands beside its end, and a value for each place."""
        self.title, self.x_name, self.x, self.lines, self.logarithmic = title, x_name, x, lines, logarithmic

    def _repr_svg_(self) -> str:
        known = [value for line in self.lines.values() for value in line]
        if self.logarithmic:
            low, high = math.floor(math.log2(min(known))), math.log2(max(known)) + 0.1
            marks = [2.0**n for n in range(low, math.ceil(high))]
        else:
            low, high = 0, max(known) * 1.05
            unit = 10 ** math.floor(math.log10(high))
            apart = next(unit * share for share in (0.1, 0.2, 0.5, 1, 2) if high / (unit * share) < 6)
            marks = [apart * n for n in range(int(high / apart) + 1)]

        def height(value: float) -> float:
            share = ((math.log2(value) if self.logarithmic else value) - low) / (high - low)
            return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

        step = (WIDTH - LEFT - RIGHT) / max(1, len(self.x) - 1)
        parts = [f'<text x="{LEFT}" y="20" font-size="14">{escape(self.title)}</text>']
        for mark in marks:
            y = height(mark)
            parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ccc"/><text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{f"{mark:,.0f}" if mark >= 100 else f"{mark:.3g}"}</text>')
        for place, label in enumerate(self.x):
            parts.append(f'<text x="{LEFT + place * step:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{escape(str(label))}</text>')
        parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(self.x_name)}</text>')
        last = -math.inf
        for at, (name, values) in enumerate(sorted(self.lines.items(), key=lambda line: -line[1][-1])):
            colour = COLOURS[at % len(COLOURS)]
            points = [(LEFT + place * step, height(value)) for place, value in enumerate(values)]
            parts.append(f'<path d="M{" ".join(f"{x:.1f} {y:.1f}" for x, y in points)}" fill="none" stroke="{colour}" stroke-width="2"/>')
            last = max(points[-1][1], last + 14)  # Names do not overlap.
            parts.append(f'<text x="{WIDTH - RIGHT + 6}" y="{last + 4:.1f}" fill="{colour}">{escape(name)}</text>')
        return f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="11">{"".join(parts)}</svg>'
