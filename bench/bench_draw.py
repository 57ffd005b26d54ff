# SPDX-License-Identifier: Apache-2.0
"""Drawings of bench.py's results, as SVG: nothing but text is needed for them."""
import html
import math
import os
import re

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 80, 210, 40, 50
COLOURS = ['#1f5fa8', '#c04f15', '#2e8540', '#8a3fa0', '#b08c00', '#4a4a4a', '#0f8b8d', '#a83279']
SIZES = {'64k': 1 << 16, '1m': 1 << 20, '16m': 1 << 24, '256m': 1 << 28}


def make_ticks(low, high):
    """Those of 1, 2, 5, 10, ... that hold all; of a large range powers of ten."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if last - first <= 2 else (1,)
    ticks = sorted(step * 10.0 ** power for power in range(first, last + 1) for step in steps)
    return [tick for tick, after in zip(ticks, ticks[1:] + [math.inf]) if after > low
            and tick <= min(t for t in ticks + [math.inf] if t >= high)]


def plain(number):
    return f'{number:,.0f}' if number >= 1000 else f'{number:g}'


def rounded(number):
    """Two digits."""
    return f'{float(f"{number:.2g}"):g}'


class Chart:
    """Lines over two logarithmic axes; x values have their own words."""

    def __init__(self, title, x_title, y_title, x_words):
        self.title, self.x_title, self.y_title, self.x_words = title, x_title, y_title, x_words
        self.lines = []

    def add(self, name, points, native=()):
        """The remote figures and, dashed in the same colour, the native ones."""
        colour = COLOURS[len({colour for *_, colour in self.lines}) % len(COLOURS)]
        if points:
            self.lines.append((name, sorted(points), False, colour))
        if native:
            self.lines.append((f'{name}, native', sorted(native), True, colour))

    def svg(self):
        values = [y for _, points, *_ in self.lines for _, y in points]
        ticks = make_ticks(min(values), max(values))
        xs = sorted(self.x_words)

        def place_x(x):
            return LEFT + xs.index(x) * (WIDTH - LEFT - RIGHT) / max(1, len(xs) - 1)

        def place_y(y):
            share = (math.log10(y) - math.log10(ticks[0])) / (math.log10(ticks[-1]) - math.log10(ticks[0]))
            return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

        out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">',
               f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', text(WIDTH / 2, 20, self.title, 'middle'),
               text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, self.x_title, 'middle'), text(8, 34, self.y_title)]
        for tick in ticks:
            out += [line([(LEFT, place_y(tick)), (WIDTH - RIGHT, place_y(tick))], '#cccccc'),
                    text(LEFT - 6, place_y(tick) + 4, plain(tick), 'end')]
        for x in xs:
            out.append(text(place_x(x), HEIGHT - BOTTOM + 18, self.x_words[x], 'middle'))
        for number, (name, points, dashed, colour) in enumerate(self.lines):
            places = [(place_x(x), place_y(y)) for x, y in points]
            out.append(line(places, colour, dashed))
            out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
            legend = TOP + 18 * number
            out += [line([(WIDTH - RIGHT + 10, legend), (WIDTH - RIGHT + 34, legend)], colour, dashed),
                    text(WIDTH - RIGHT + 40, legend + 4, name)]
        return '\n'.join([*out, '</svg>', ''])


def text(x, y, words, anchor='start'):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(words)}</text>'


def line(places, colour, dashed=False):
    points = ' '.join(f'{x:.1f},{y:.1f}' for x, y in places)
    return f'<polyline points="{points}" fill="none" stroke="{colour}"' + (' stroke-dasharray="5 4"' if dashed else '') + '/>'


def latency(rows):
    """Steps of programs by the round trip, beside what they take natively."""
    rows = [row for row in rows if row['transport'] == 'tcp' and re.search(r'_step$|_token$|^launch_sync$|^dtoh_4b$', row['name'])]
    chart = Chart('Time of a step by the round trip', 'round trip, ms', 'ms',
                  {row['rtt_ms']: rounded(row['rtt_ms']) for row in rows})
    for name in sorted({row['name'] for row in rows}):
        mine = [row for row in rows if row['name'] == name]
        unit = 1000 if mine[0]['unit'] == 'us' else 1
        if len(mine) == 1 and len(chart.x_words) > 1:
            continue  # no line
        chart.add(name, [(row['rtt_ms'], row['remote'] / unit) for row in mine],
                  [(row['rtt_ms'], row['native'] / unit) for row in mine if row['native']])
    return chart


def bandwidth(rows):
    """Copies by their size, of the first transport and network that is there."""
    copies = [(row, re.fullmatch(r'((?:htod|dtoh)_\w+)_(64k|1m|16m|256m)', row['name'])) for row in rows]
    copies = [(row, found[1], SIZES[found[2]]) for row, found in copies if found]
    link = min(((row['transport'], row['rtt_ms']) for row, _, _ in copies), default=None)
    copies = [copy for copy in copies if (copy[0]['transport'], copy[0]['rtt_ms']) == link]
    chart = Chart(f'Copies by size, {link[0]}' if link else '', 'size', 'GB/s', {size: word for word, size in SIZES.items()})
    for name in sorted({name for _, name, _ in copies}):
        chart.add(name, [(size, row['remote']) for row, mine, size in copies if mine == name],
                  [(size, row['native']) for row, mine, size in copies if mine == name and row['native']])
    return chart


def clients(rows):
    found = [(row, int(row['name'].split('_')[1])) for row in rows if re.fullmatch(r'clients_\d+', row['name'])]
    chart = Chart('Launches of all clients', 'clients', 'launches/s', {count: str(count) for _, count in found})
    for transport in sorted({row['transport'] for row, _ in found}):
        chart.add(transport, [(count, row['remote']) for row, count in found if row['transport'] == transport])
    chart.add('processes', [], {(count, row['native']) for row, count in found if row['native']})
    return chart


def draw_all(rows, folder):
    """The paths of those for which there are rows."""
    os.makedirs(folder, exist_ok=True)
    paths = []
    for name, make in ('latency', latency), ('bandwidth', bandwidth), ('clients', clients):
        chart = make(rows)
        if chart.lines:
            paths.append(os.path.join(folder, f'{name}.svg'))
            with open(paths[-1], 'w', encoding='utf-8') as file:
                file.write(chart.svg())
    return paths
