#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the acceptance tests of gpupool on a machine with a GPU, part by part.

FOLDER is a release build or an unpacked archive of scripts/pack.sh. Each part has its own time limit; its
output and its results go to --out. A part that --limit leaves no time for is not run.
Exit status 1 if a part failed, was ended by its time or was not run. --list names the parts.
"""
import argparse
import collections
import fnmatch
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

import suites

HERE = os.path.dirname(os.path.abspath(__file__))
# Beside more of them each one's waits for a daemon become too long.
SUITES_AT_ONCE = 4
SUITE_LIMIT = 300
# A part gets END_SECONDS to stop its daemons; with less than LEAST_SECONDS left no part starts.
END_SECONDS = 30
LEAST_SECONDS = 20
NETWORK = ['trips', 'waits', 'network']
COPIES = ','.join(f'{way}_{memory}_{size}' for way in ('htod', 'dtoh') for memory in ('pageable', 'pinned')
                  for size in ('64k', '1m', '16m', '256m'))
LATENCIES = 'launch_sync,sync_idle,event_done,htod_4b,dtoh_4b,alloc_free_1m,memory_info'
EVERY_RTT = '0,0.05,0.2,1,10,30'

# The command, and how long it may take, in seconds.
Part = collections.namedtuple('Part', 'command seconds')
Outcome = collections.namedtuple('Outcome', 'what seconds')


def python(script, *args):
    return [sys.executable, os.path.join(HERE, script), *args]


def suites_part(folder, names, jobs, seconds):
    return Part(python('suites.py', folder, *names, '--jobs', str(jobs), '--limit', str(SUITE_LIMIT), '--total', str(seconds)),
                seconds + 60)


def tenants_part(folder, out, name, rows, seconds):
    return Part(python('tenants/tenants.py', folder, '--rows', rows, '--results', os.path.join(out, f'tenants_{name}.json')), seconds)


def bench_part(folder, out, name, seconds, *args):
    return Part(python('bench.py', 'run', folder, '--json', os.path.join(out, f'bench_{name}.json'), *args), seconds)


def all_parts(folder, out):
    """name -> Part, in the order in which they run."""
    house = [name for name in suites.HOSTILE + suites.OTHERS if name not in NETWORK]
    compare = 'native_vs_remote.py'
    parts = {
        'agreement': Part(python(compare, folder, 'nbody', 'clients', 'start', 'trips', 'apps'), 420),
        'killed': Part(python(compare, folder, 'kill'), 150),
        'dataloader': Part(python('dataloader.py', folder), 400),
        'frameworks': Part(python('frameworks.py', folder, '--jobs', '6', '--out', os.path.join(out, 'frameworks')), 580),
        'host_memory': Part(python('host_memory.py', folder), 580),
        'suites_house': suites_part(folder, house, SUITES_AT_ONCE, 900),
        'suites_network': suites_part(folder, NETWORK, len(NETWORK), 300),
        'tenants_clients': tenants_part(folder, out, 'clients', '1-7', 500),
        'tenants_ends': tenants_part(folder, out, 'ends', '8-10', 200),
        'tenants_turns': tenants_part(folder, out, 'turns', '16-19,23-25,29', 400),
        'tenants_copies': tenants_part(folder, out, 'copies', '22,22t,28', 400),
        'tenants_more': tenants_part(folder, out, 'more', '11-15,21,26,27', 500),
        'tenants_gates': tenants_part(folder, out, 'gates', 'gates', 300),
        'bench_local': bench_part(folder, out, 'local', 500, '--group', 'local', '--transport', 'tcp,unix'),
        'bench_programs': bench_part(folder, out, 'programs', 500, '--group', 'programs', '--transport', 'tcp,unix', '--rtt', '0,10'),
        'bench_clients': bench_part(folder, out, 'clients', 400, '--group', 'clients', '--transport', 'tcp,unix'),
        'bench_latency': bench_part(folder, out, 'latency', 300, '--group', 'local', '--row', LATENCIES, '--rtt', EVERY_RTT),
        'bench_rate': bench_part(folder, out, 'rate', 560, '--group', 'local', '--row', COPIES, '--rtt', '0.2', '--rate', '1,10,25',
                                 '--turns', '3'),
    }
    for name in 'startup_torch', 'torch_conv_step', 'torch_bf16_step', 'generate_token':
        parts[f'bench_{name}'] = bench_part(folder, out, name, 580, '--group', 'torch', '--row', name, '--rtt', EVERY_RTT)
    for name in suites.ALONE:
        parts[f'suites_alone_{name}'] = suites_part(folder, [name], 1, SUITE_LIMIT)
    return parts


def run_part(name, part, seconds, out):
    begin = time.monotonic()
    with open(os.path.join(out, f'{name}.log'), 'wb') as log:
        process = subprocess.Popen(part.command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                   env={**os.environ, 'OUT': out}, start_new_session=True)
        what = None
        for patience, signal_number in ((seconds, signal.SIGINT), (END_SECONDS, signal.SIGKILL), (END_SECONDS, None)):
            try:
                status = process.wait(patience)
                what = what or ('ok' if status == 0 else f'FAILED with {status}')
                break
            except subprocess.TimeoutExpired:
                what = f'ENDED by its time of {seconds:.0f} s'
                if signal_number:
                    os.killpg(process.pid, signal_number)
    return Outcome(what, time.monotonic() - begin)


def last_lines(path, count=12):
    with open(path, encoding='utf-8', errors='replace') as file:
        return ''.join(f'    {line}' for line in file.readlines()[-count:])


def run_parts(parts, limit, out):
    """name -> Outcome; prints each when its part has ended."""
    # Of a shell that started this in the background programs would inherit that they ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    end = time.monotonic() + limit
    outcomes = {}
    for name, part in parts.items():
        left = end - time.monotonic()
        if left < min(LEAST_SECONDS, part.seconds):
            outcomes[name] = Outcome('NOT RUN: no time was left', 0)
        else:
            outcomes[name] = run_part(name, part, min(part.seconds, left), out)
            print(last_lines(os.path.join(out, f'{name}.log')), end='')
        print(f'{name}: {outcomes[name].what}, {outcomes[name].seconds:.0f} s', flush=True)
    return outcomes


def choose(parts, wanted):
    """Those that one of the patterns fits, in the order of the parts; a pattern that fits none is refused."""
    for pattern in wanted:
        if not fnmatch.filter(parts, pattern):
            sys.exit(f'acceptance: no part is called {pattern}; known are {", ".join(parts)}')
    return {name: part for name, part in parts.items() if any(fnmatch.fnmatch(name, pattern) for pattern in wanted)}


def write_tar(path, out):
    with tarfile.open(path, 'w:gz') as tar:
        for name in sorted(os.listdir(out)):
            if os.path.isfile(os.path.join(out, name)):
                tar.add(os.path.join(out, name), name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', metavar='FOLDER')
    parser.add_argument('--part', default='*', help='names or patterns, with commas in between (all)')
    parser.add_argument('--limit', type=float, default=86400, metavar='SECONDS', help='for all')
    parser.add_argument('--out', help='a folder for what the parts write')
    parser.add_argument('--tar', metavar='FILE', help='.tar.gz of that at the end')
    parser.add_argument('--list', action='store_true', help='only names the parts and their times')
    options = parser.parse_args()
    out = os.path.abspath(options.out or tempfile.mkdtemp(prefix='gpupool-acceptance-'))
    os.makedirs(out, exist_ok=True)
    parts = choose(all_parts(os.path.abspath(options.folder), out), options.part.split(','))
    if options.list:
        for name, part in parts.items():
            print(f'{name}: at most {part.seconds} s')
        return 0
    outcomes = run_parts(parts, options.limit, out)
    print(f'\nwritten to {out}:')
    for name, outcome in outcomes.items():
        print(f'{name:28} {outcome.seconds:6.0f} s  {outcome.what}')
    if options.tar:
        write_tar(options.tar, out)
    return 0 if all(outcome.what == 'ok' for outcome in outcomes.values()) else 1


if __name__ == '__main__':
    sys.exit(main())
