#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures everything, natively and remotely, in turns, and prints and keeps the medians.

  bench.py run FOLDER [--group local,programs,clients,starts,torch] [--row NAME,...] [--transport tcp,unix]
           [--rtt MS,...] [--rate GBIT,...] [--turns 5] [--small] [--json FILE] [--driver LIBRARY]
  bench.py compare BEFORE AFTER     two files of results
  bench.py draw FILE FOLDER         latency.svg, bandwidth.svg and clients.svg

FOLDER is a release build or an unpacked archive of scripts/pack.sh. --rtt and --rate put bench/network before
the daemon (0: not); they are for tcp alone. --small: few launches of many clients, and the link
measured once, for a test of the run and not of the figures. --driver: the software device, whose figures are not those
of a GPU. A row of the file: {name, transport, rtt_ms, rate_gbit, unit, native, remote, ratio, limit},
where ratio is remote by native and limit what the link alone allows; programs of PyTorch have waits,
too: how many round trips a step makes for each cause. The file is written after each turn.
"""
import argparse
import collections
import json
import os
import sys
import tempfile

import bench_draw
import bench_rows
from bench_sides import TRANSPORTS, Daemon, Failed, Programs, Side, median

COLUMNS = ('name', 'transport', 'rtt_ms', 'rate_gbit', 'unit', 'native', 'remote', 'ratio', 'limit')


def numbers(text):
    found = [float(word) for word in text.split(',')]
    if not all(0 <= number < 1e6 for number in found):
        raise argparse.ArgumentTypeError(f'{text}: numbers from 0 on')
    return found


def turns(text):
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f'{text}: a number from 1 on')
    return int(text)


def words(known):
    def parse(text):
        found = text.split(',')
        unknown = [word for word in found if known and word not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: known are {', '.join(known)}")
        return found
    return parse


def make_sides(programs, daemon, options):
    sides = []
    for transport in options.transport:
        for rtt in options.rtt:
            for rate in options.rate:
                if transport == 'tcp' or not (rtt or rate):
                    sides.append(Side(programs, daemon, transport, rtt, rate))
    return sides


def measure(programs, sides, group, options, values, units):
    """One turn: natively, then over each side. A figure that fails is reported and left out."""
    for side in [None, *sides]:
        for once in group.functions(programs, side, set(options.row)):
            try:
                figures = once()
            except Failed as error:
                print(f"{side or 'native'}: {error}", file=sys.stderr, flush=True)
                options.failed = True
                continue
            for name, (value, unit) in figures.items():
                values[name, side].append(value)
                units[name] = unit


def make_rows(sides, values, units, waits):
    rows = []
    for side in sides:
        raw = side.limits()
        for name, unit in units.items():
            native, remote = median(values[name, None]), median(values[name, side])
            if remote is None:
                continue
            row = {'name': name, 'transport': side.transport, 'rtt_ms': round(side.measured_rtt, 4), 'rate_gbit': side.rate,
                   'unit': unit, 'native': native, 'remote': remote, 'ratio': remote / native if native else None,
                   'limit': bench_rows.get_link_limit(name, native, raw, side.measured_rtt) if native else None}
            if (name, side) in waits:
                row['waits'] = waits[name, side]
            rows.append(row)
    return rows


def format_cell(value):
    return '' if value is None else f'{value:.4g}' if isinstance(value, float) else str(value)


def print_table(titles, lines):
    lines = [titles, *([format_cell(cell) for cell in line] for line in lines)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(titles))]
    for line in lines:
        print('  '.join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def keep(rows, path):
    """A run that is cut has what was measured until then."""
    with open(path + '.part', 'w', encoding='utf-8') as file:
        json.dump(rows, file, indent=1)
        file.write('\n')
    os.replace(path + '.part', path)


def run_turns(programs, sides, group, options, found):
    values, units, waits = found
    group.begin(programs, sides)
    try:
        for turn in range(options.turns):
            print(f'turn {turn + 1} of {options.turns}', file=sys.stderr, flush=True)
            measure(programs, sides, group, options, values, units)
            if options.json:
                keep(make_rows(sides, values, units, waits), options.json)
    finally:
        group.end()
    waits.update(group.waits(programs, sides))


def check_json(path):
    """Fails now rather than after the first turn if the file cannot be written. An existing file is unchanged until then."""
    try:
        with open(path + '.part', 'a', encoding='utf-8'):
            pass
        os.remove(path + '.part')
    except OSError as error:
        sys.exit(f'bench: --json {path}: {error.strerror}')


def run(options):
    values, units, waits = collections.defaultdict(list), {}, {}
    if options.json:
        check_json(options.json)
    with tempfile.TemporaryDirectory(prefix='gpupool-bench-') as work:
        programs = Programs(options.folder, work, options.driver, options.small)
        with Daemon(programs) as daemon:
            sides = make_sides(programs, daemon, options)
            if not sides:
                sys.exit('bench: --rtt and --rate put a network before tcp alone: add tcp to --transport, or 0 to them')
            try:
                for name in options.group:
                    for group in bench_rows.groups(name, set(options.row)):
                        print(f'{name}:', end=' ', file=sys.stderr, flush=True)
                        run_turns(programs, sides, group, options, (values, units, waits))
                rows = make_rows(sides, values, units, waits)
            finally:
                for side in sides:
                    side.close()
    print_table(COLUMNS, [[row[column] for column in COLUMNS] for row in rows])
    for row in rows:
        if 'waits' in row:
            print(f"{row['name']}, {row['transport']}, {row['rtt_ms']} ms: a step waits for {row['waits'] or 'nothing'}")
    if options.json:
        keep(rows, options.json)
    unknown = set(options.row) - {row['name'] for row in rows}
    if unknown:
        print(f"bench: not measured: {', '.join(sorted(unknown))}; no row of {', '.join(options.group)} has that name, or it failed",
              file=sys.stderr)
    return 1 if options.failed or unknown or not rows else 0


def read_rows(path):
    try:
        with open(path, encoding='utf-8') as file:
            rows = json.load(file)
        for row in rows:
            missing = [name for name in COLUMNS if name not in row and name != 'rate_gbit']
            if missing:
                sys.exit(f"bench: {path}: a row has no {', '.join(missing)}: it is not a file of bench.py run --json")
    except OSError as error:
        sys.exit(f'bench: {path}: {error.strerror}')
    except (ValueError, TypeError) as error:
        sys.exit(f'bench: {path}: no file of bench.py run --json: {error}')
    if not rows:
        sys.exit(f'bench: {path}: there is no row in it')
    return rows


def by_key(rows):
    """By name, transport, round trip as it was asked for, roughly, and rate."""
    return {(row['name'], row['transport'], float(f"{row['rtt_ms']:.1g}"), row.get('rate_gbit', 0)): row for row in rows}


def compare(options):
    before, after = by_key(read_rows(options.before)), by_key(read_rows(options.after))
    lines = []
    for key, row in after.items():
        if key not in before:
            continue
        old, new = before[key]['remote'], row['remote']
        lines.append([*key, row['unit'], old, new, new / old if old else None, before[key]['ratio'], row['ratio']])
    print_table(('name', 'transport', 'rtt_ms', 'rate_gbit', 'unit', 'before', 'after', 'after/before', 'ratio before', 'ratio after'),
                lines)
    for text, keys in ('only before', before.keys() - after.keys()), ('only after', after.keys() - before.keys()):
        for key in sorted(keys):
            print(f'{text}: {key}')
    return 0


def draw(options):
    try:
        paths = bench_draw.draw_all(read_rows(options.file), options.folder)
    except OSError as error:
        sys.exit(f'bench: {options.folder}: {error.strerror}')
    print('\n'.join(paths) or 'nothing to draw: no row of a step, a copy or of clients')
    return 0 if paths else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser('run')
    command.add_argument('folder')
    command.add_argument('--group', type=words(bench_rows.NAMES), default=['local', 'programs', 'clients'])
    command.add_argument('--row', type=words([]), default=[])
    command.add_argument('--transport', type=words(TRANSPORTS), default=['tcp'])
    command.add_argument('--rtt', type=numbers, default=[0.0])
    command.add_argument('--rate', type=numbers, default=[0.0])
    command.add_argument('--turns', type=turns, default=5)
    command.add_argument('--small', action='store_true')
    command.add_argument('--json')
    command.add_argument('--driver')
    command.set_defaults(does=run, failed=False)
    command = commands.add_parser('compare')
    command.add_argument('before')
    command.add_argument('after')
    command.set_defaults(does=compare)
    command = commands.add_parser('draw')
    command.add_argument('file')
    command.add_argument('folder')
    command.set_defaults(does=draw)
    options = parser.parse_args()
    return options.does(options)


if __name__ == '__main__':
    sys.exit(main())
