#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cost of managed memory and of host memory that kernels access: natively and remotely, in turns.

    bench/host_memory.py FOLDER [--rtt 0,0.2,1] [--turns 3] [--row neighbour,steps] [--transport tcp,unix] [--piece 2,8]
        [--small] [--driver LIBRARY]

FOLDER is a release build, or an unpacked archive of scripts/pack.sh. For each figure it prints a line with the
limit and the measured value, and the same as one line of JSON: {name, side, unit, native, remote,
wanted, met}. Sides: tcp with each round trip (--rtt, in ms; bench/network is in between), and a local
socket, where memory is shared. --row: some of the figures alone; "steps" runs only if named, and prints for each
call of a neighbour how long the longest launch after it took. --piece: a daemon for each size, in MiB, by
which it registers. --small and --driver: the software device, on which CUDA's runtime does not run natively,
and whose figures are not those of a GPU. Exit status 1 if a program failed; a missed limit is only reported.
"""
import argparse
import bisect
import json
import re
import subprocess
import sys
import tempfile
import time

from bench_sides import TRANSPORTS, Daemon, Failed, Programs, Side, listed, median, read_figures, run

# Of what is not limited by the link: microseconds.
ROUND_MORE, EXCHANGE_MORE, NEIGHBOUR_MORE = 400, 200, 1000
COLD_RATIO, MANAGED_RATIO = 0.98, 0.8
# Long enough for what a call has set off at the daemon.
STEP_PAUSE_MS = 40


class Figure:
    """wanted: the least, where more is better, or the most; None: nothing is wanted."""

    def __init__(self, name, unit, native, remote, wanted, more_is_better):
        self.name, self.unit, self.native, self.remote, self.wanted = name, unit, native, remote, wanted
        self.better = more_is_better

    def met(self):
        if self.wanted is None:
            return None
        return self.remote >= self.wanted if self.better else self.remote <= self.wanted

    def show(self, side):
        wanted = '' if self.wanted is None else f"wanted {'at least' if self.better else 'at most'} {self.wanted:.4g}, "
        verdict = {None: '', True: ': met', False: ': NOT met'}[self.met()]
        native = '' if self.native is None else f', native {self.native:.4g}'
        print(f'{self.name} ({side}): {wanted}remote {self.remote:.4g}{native} {self.unit}{verdict}')
        print(json.dumps({'name': self.name, 'side': str(side), 'unit': self.unit, 'native': self.native,
                          'remote': self.remote, 'wanted': self.wanted, 'met': self.met()}), flush=True)


def get_environments(programs, side):
    """The environments of a native run, where there can be one, and of a remote one."""
    return [None if programs.driver else programs.environment(), programs.environment(side)]


def in_turns(programs, side, args, turns):
    """(native, remote) figures of hostmemory, medians; None for what natively is not measured."""
    seen = ([], [])
    for _ in range(turns):
        for env, figures in zip(get_environments(programs, side), seen):
            if env:
                figures.append(read_figures(run([programs.need('hostmemory'), *map(str, args)], env)[1]))
    native, remote = seen
    return ({name: median([one[name] for one in native]) for name in remote[0]},
            {name: median([one[name] for one in remote]) for name in remote[0]})


def cold_copies(programs, side, options):
    """Pinned memory of which no kernel knows is copied as fast as memory that the program registered."""
    native, remote = in_turns(programs, side, ('copies', 16 if options.small else 256), options.turns)
    for way in 'in', 'out':
        wanted = COLD_RATIO * remote[f'registered_{way}']
        yield Figure(f'cold_copy_{way}', 'GB/s', native[f'pinned_{way}'], remote[f'pinned_{way}'], wanted, True)


def managed_array(programs, side, options):
    """Against what the link carries, where it is the link that limits."""
    native, remote = in_turns(programs, side, ('managed', 8 if options.small else 1024), options.turns)
    limits = side.limits(1)
    for way, limit in ('there', 'up_256m'), ('back', 'down_256m'):
        most = min(filter(None, (limits.get(limit), native[f'managed_{way}'])), default=None)
        yield Figure(f'managed_{way}', 'GB/s', native[f'managed_{way}'], remote[f'managed_{way}'], most and MANAGED_RATIO * most, True)


def rounds(programs, side, options):
    native, remote = in_turns(programs, side, ('rounds', 50 if options.small else 2000), options.turns)
    link = 1000 * side.measured_rtt
    yield Figure('kernel_answered', 'us', native['round'], remote['round'], link + ROUND_MORE, False)
    yield Figure('kernel_answered_p99', 'us', native['round_p99'], remote['round_p99'], None, False)
    yield Figure('polled_page', 'us', native['exchange'], remote['exchange'], link + EXCHANGE_MORE, False)
    yield Figure('polled_page_p99', 'us', native['exchange_p99'], remote['exchange_p99'], None, False)


def beside_churn(programs, env, seconds, pause=()):
    """The outputs of a program that launches and of another one that registers and frees memory meanwhile."""
    other = subprocess.Popen([programs.need('hostmemory'), 'churn', str(seconds + 2), *map(str, pause)], env=env,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        # Its start is over.
        time.sleep(1)
        said = run([programs.need('hostmemory'), 'launches', str(seconds)], env)[1]
        words = other.communicate(timeout=seconds + 60)[0]
    except subprocess.TimeoutExpired:
        raise Failed('a program that registers and frees does not end') from None
    finally:
        other.kill()
        other.wait()
    if other.returncode:
        raise Failed(f'a program that registers and frees failed: {words}')
    return said, words


def neighbour(programs, side, options):
    """How much longer a launch of a neighbour's takes, in the worst case of all."""
    seconds, more = 0.2 if options.small else 5, []
    for env in get_environments(programs, side):
        if not env:
            more.append(dict.fromkeys(('launch_p99', 'launch_worst', 'launch_late')))
            continue
        alone = read_figures(run([programs.need('hostmemory'), 'launches', str(seconds)], env)[1])
        beside = read_figures(beside_churn(programs, env, seconds)[0])
        more.append({name: max(0, beside[name] - alone[name]) for name in alone})
        more[-1]['launch_late'] = beside['launch_late']
    native, remote = more
    yield Figure('neighbour_p99', 'us', native['launch_p99'], remote['launch_p99'], NEIGHBOUR_MORE, False)
    yield Figure('neighbour_worst', 'us', native['launch_worst'], remote['launch_worst'], NEIGHBOUR_MORE, False)
    yield Figure('neighbour_late', 'launches', native['launch_late'], remote['launch_late'], None, False)


def steps(programs, side, options):
    """The longest launch from each kind of call to the next call; those less than 500 us longer than usual are not reported."""
    said, words = beside_churn(programs, programs.environment(side), 2 if options.small else 12, [STEP_PAUSE_MS])
    begun = [(float(at), f'{name}_{size}k') for name, size, at in re.findall(r'^step (\w+) (\d+) KiB at (\d+)$', words, re.M)]
    worst = dict.fromkeys(sorted(name for _, name in begun), 0.0)
    for at, took in re.findall(r'^slow at (\d+) took ([\d.]+) us$', said, re.M):
        # The launch may have begun before what held it up.
        step = bisect.bisect(begun, (float(at) + float(took), '')) - 1
        if step >= 0:
            worst[begun[step][1]] = max(worst[begun[step][1]], float(took))
    for name, took in worst.items():
        yield Figure(f'longest_launch_behind_{name}', 'us', None, took, None, False)


ROWS = {row.__name__: row for row in (cold_copies, managed_array, rounds, neighbour, steps)}


def sides(programs, daemon, options):
    if 'tcp' in options.transport:
        for rtt in options.rtt:
            yield Side(programs, daemon, 'tcp', rtt, 0)
    if 'unix' in options.transport:
        yield Side(programs, daemon, 'unix', 0, 0)


def show_rows(programs, side, options):
    """Whether each program did what it should."""
    well = True
    for name in options.row:
        try:
            for figure in ROWS[name](programs, side, options):
                figure.show(side)
        except Failed as error:
            well = False
            print(f'{name} ({side}): failed: {error}', flush=True)
    return well


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder')
    parser.add_argument('--rtt', type=lambda text: [float(word) for word in text.split(',')], default=[0.0, 0.2, 1.0])
    parser.add_argument('--turns', type=int, default=3)
    parser.add_argument('--small', action='store_true')
    parser.add_argument('--driver')
    parser.add_argument('--row', type=listed(ROWS), default=['cold_copies', 'managed_array', 'rounds', 'neighbour'])
    parser.add_argument('--transport', type=listed(TRANSPORTS), default=TRANSPORTS)
    parser.add_argument('--piece', type=lambda text: text.split(','), default=[None])
    options = parser.parse_args()
    well = True
    with tempfile.TemporaryDirectory(prefix='gpupool-host-memory-') as work:
        programs = Programs(options.folder, work, options.driver, options.small)
        for piece in options.piece:
            if piece:
                print(f'pieces of {piece} MiB:', flush=True)
            with Daemon(programs, env={'GPUPOOL_HOST_PIECE_MIB': piece} if piece else {}) as daemon:
                for side in sides(programs, daemon, options):
                    well = show_rows(programs, side, options) and well
                    side.close()
    return int(not well)


if __name__ == '__main__':
    sys.exit(main())
