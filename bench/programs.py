#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run programs natively and then remotely, several times over each transport, and compare the lines
in which they judge themselves.

  programs.py FOLDER [--runs 3] [--transport tcp,tls,unix] [--seconds 120] [--alone] [--no-native] PROGRAM...

FOLDER is a release build or a packed one (scripts/pack.sh). A PROGRAM may have arguments ("litmus 300
1") and is looked for in the current folder, then in FOLDER. It passes if it ends with status 0. The
faults that its line "FAIL: this; that" names are expected remotely if the native run had them too.
Prints a line for each program and transport, and each new fault once; the programs' outputs are
in $OUT/programs if OUT is set. Transports run side by side; with --alone one program runs at a time,
for programs that look at the GPU's free memory. Exit status 1 if a run failed that should not.
"""
import argparse
import collections
import concurrent.futures
import os
import shlex
import subprocess
import sys
import tempfile

from bench_sides import Daemon, Programs, SecureDaemon


def faults(result):
    """The faults that the program printed, as a set; how it ended, if it printed none."""
    status, text = result
    if status == 0:
        return set()
    lines = [line[5:] for line in text.splitlines() if line.startswith('FAIL:')]
    if lines:
        return {fault.strip() for fault in lines[-1].split(';')}
    last = (text.strip().splitlines() or ['no output'])[-1]
    return {('did not end' if status is None else f'status {status}') + f': {last}'}


def run(programs, command, env, seconds):
    name, *arguments = shlex.split(command)
    path = os.path.abspath(name) if os.path.isfile(name) else programs.need(name)
    with tempfile.TemporaryFile('w+', errors='replace') as output:
        process = subprocess.Popen([path, *arguments], env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                   cwd=os.path.dirname(path), start_new_session=True)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            status = None
        output.seek(0)
        return status, output.read()


def keep(side, command, number, result):
    if 'OUT' not in os.environ:
        return
    folder = os.path.join(os.environ['OUT'], 'programs')
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, f'{side}-{command.replace("/", "_").replace(" ", "_")}-{number}.txt'), 'w', encoding='utf-8') as file:
        file.write(f'{result[1]}\nstatus {result[0]}\n')


def run_side(programs, side, env, options):
    """command -> list of results."""
    results = collections.defaultdict(list)
    for number in range(1 if side == 'native' else options.runs):
        for command in options.programs:
            results[command].append(run(programs, command, env, options.seconds))
            keep(side, command, number, results[command][-1])
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder')
    parser.add_argument('programs', nargs='+', metavar='PROGRAM')
    parser.add_argument('--runs', type=int, default=3)
    parser.add_argument('--transport', default='tcp,tls,unix')
    parser.add_argument('--seconds', type=float, default=120)
    parser.add_argument('--alone', action='store_true')
    parser.add_argument('--no-native', action='store_true')
    parser.add_argument('--driver', help='the software device')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix='gpupool-programs-') as work:
        programs = Programs(options.folder, work, options.driver)
        native = {} if options.no_native else run_side(programs, 'native', programs.environment(), options)
        sides = options.transport.split(',')
        results = {}
        if options.alone:
            for side in sides:
                results[side] = run_remotely(programs, side, options)
        else:
            with concurrent.futures.ThreadPoolExecutor(len(sides)) as pool:
                results = dict(zip(sides, pool.map(lambda side: run_remotely(programs, side, options), sides)))
    failed = False
    for command in options.programs:
        expected = faults(native[command][0]) if native else set()
        for fault in sorted(expected):
            print(f'native {command}: {fault}')
        for side in sides:
            found = [faults(result) - expected for result in results[side][command]]
            good = sum(not new for new in found)
            lines = collections.Counter(line for result in results[side][command] for line in result[1].splitlines() if line.startswith('gpupool:'))
            print(f'{side} {command}: {good} of {len(found)}')
            for fault, count in sorted(collections.Counter(fault for new in found for fault in new).items()):
                print(f'    {count}x {fault}')
            for line, count in lines.items():
                print(f'    {count}x stderr: {line}')
            failed = failed or good < len(found)
    return failed


def run_remotely(programs, side, options):
    if side == 'tls':
        driver = ['--driver', programs.driver] if programs.driver else []
        daemon = SecureDaemon(programs.need, programs.environment(), programs.work, os.path.join(programs.work, 'tls.log'), options=driver)
        try:
            return run_side(programs, side, {**programs.environment(daemon), 'GPUPOOL_TOKEN_FILE': daemon.token}, options)
        finally:
            daemon.process.terminate()
            daemon.process.wait()
    with Daemon(programs, name=side) as daemon:
        env = programs.environment(daemon, daemon.tcp if side == 'tcp' else daemon.local)
        return run_side(programs, side, env, options)


if __name__ == '__main__':
    sys.exit(main())
