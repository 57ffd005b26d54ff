#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs small programs of CUDA's libraries, PyTorch, transformers, Triton, CuPy, JAX and Numba natively and through a daemon.

A case passes if it ends well on both sides and prints the same. A case that fails natively is not
counted. FOLDER is a release build or an unpacked archive of scripts/pack.sh; needs a GPU. --case takes patterns;
--jobs cases run at a time; their outputs go to --out. --hidden: remote programs find no device
node of the GPU (/dev/nvidia*); needs root. Exit status 1 if a case failed remotely.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import fnmatch
import os
import subprocess
import sys
import tempfile

import bench_sides
import framework_cases
import nccl_cases

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'libraries'))
import library_cases  # noqa: E402

# The part of a daemon that a program's environment needs.
Way = collections.namedtuple('Way', 'address')

HERE = os.path.dirname(os.path.abspath(__file__))
# name -> the program that has the case
SCRIPTS = {**dict.fromkeys(framework_cases.CASES, os.path.join(HERE, 'framework_cases.py')),
           **dict.fromkeys(nccl_cases.CASES, os.path.join(HERE, 'nccl_cases.py')),
           **dict.fromkeys(library_cases.CASES, os.path.join(HERE, 'libraries', 'library_cases.py'))}


# A mount namespace of the program's own, in which the GPU's device nodes are /dev/null.
HIDDEN = ['unshare', '--mount', 'sh', '-ec',
          'for node in /dev/nvidia*; do [ ! -c "$node" ] || mount --bind /dev/null "$node"; done; exec "$@"', 'hidden']


def run_case(name, side, env, limit, out, hidden):
    cache = os.path.join(out, 'cache', side, name)     # nothing compiled by one side serves the other
    env = {**env, 'TRITON_CACHE_DIR': cache, 'TORCHINDUCTOR_CACHE_DIR': cache, 'CUPY_CACHE_DIR': cache,
           'XLA_PYTHON_CLIENT_PREALLOCATE': 'false'}
    with open(os.path.join(out, f'{name}.{side}.err'), 'wb') as err:
        try:
            result = subprocess.run([*(HIDDEN if hidden else []), sys.executable, SCRIPTS[name], name], env=env,
                                    stdout=subprocess.PIPE, stderr=err, stdin=subprocess.DEVNULL, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            return f'no end in {limit} s', ''
    return (f'exit status {result.returncode}' if result.returncode else ''), result.stdout.decode(errors='replace')


def compare(name, envs, limit, out, hidden):
    sides = {side: run_case(name, side, env, limit, out, hidden and side == 'remote') for side, env in envs.items()}
    (native_end, native_out), (remote_end, remote_out) = sides['native'], sides['remote']
    if native_end:
        return 'not counted', f'natively {native_end}'
    if remote_end:
        return 'FAILED', remote_end
    if remote_out != native_out:
        return 'FAILED', f'native {native_out.split()}, remote {remote_out.split()}'
    return 'ok', ''


def daemons(names):
    """Their names: some cases need two."""
    return ['gpupool', 'second'] if any(name.startswith('nccl_two_daemons') for name in names) else ['gpupool']


def last_line(path):
    with open(path, encoding='utf-8', errors='replace') as file:
        lines = [line.strip() for line in file if line.strip()]
    return lines[-1][:150] if lines else ''


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder')
    parser.add_argument('--case', default='*', help='patterns, separated by commas')
    parser.add_argument('--transport', choices=bench_sides.TRANSPORTS, default='tcp')
    parser.add_argument('--jobs', type=int, default=4)
    parser.add_argument('--limit', type=int, default=150, help='seconds for each run of a case')
    parser.add_argument('--out', help='a folder for what the cases print')
    parser.add_argument('--hidden', action='store_true', help='remote programs find no device node of the GPU')
    arguments = parser.parse_args()
    patterns = arguments.case.split(',')
    names = [name for name in SCRIPTS if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
    if not names:
        sys.exit(f'frameworks: no case is called {arguments.case}; known are {", ".join(SCRIPTS)}')
    out = arguments.out or tempfile.mkdtemp(prefix='frameworks')
    os.makedirs(out, exist_ok=True)
    programs = bench_sides.Programs(arguments.folder, out)
    failed = passed = 0
    with contextlib.ExitStack() as stack:
        daemon, *second = [stack.enter_context(bench_sides.Daemon(programs, name)) for name in daemons(names)]
        ways = {'tcp': Way(daemon.tcp), 'unix': Way(daemon.local)}
        envs = {'native': programs.environment(), 'remote': programs.environment(ways[arguments.transport])}
        for other in second:
            envs['remote'][nccl_cases.SECOND_DAEMON] = {'tcp': other.tcp, 'unix': other.local}[arguments.transport]
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            outcomes = {name: pool.submit(compare, name, envs, arguments.limit, out, arguments.hidden) for name in names}
            for name, outcome in outcomes.items():
                how, why = outcome.result()
                failed += how == 'FAILED'
                passed += how == 'ok'
                remote = last_line(os.path.join(out, f'{name}.remote.err'))
                native = last_line(os.path.join(out, f'{name}.native.err'))
                print(f'{how:12} {name:32} {why}', flush=True)
                if how == 'ok' and ' ms' in native:
                    print(f'{"":12} {"":32} native {native}, remote {remote}')
                elif how != 'ok':
                    print(f'{"":12} {"":4} {native if how == "not counted" else remote}')
    print(f'frameworks: {passed} passed, {failed} failed, {len(names) - passed - failed} not counted')
    sys.exit(failed > 0)


if __name__ == '__main__':
    main()
