#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""isolation.py FOLDER [--rows clients,first] [--results FILE]: the cost and the protection of each class of isolation, on a GPU.

FOLDER is a build folder, or a flat one with gpupoold, libcuda.so.1, gpupoolctl and the programs of tests/apps. Each row
prints the measured value, and whether it is as wanted; FILE gets all as a list. Exit status 1 if one is not as wanted.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'tenants'))
from pool import Bench, Failed, Pool, tenant

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = {}
# Configuration of the daemon for each class.
CLASSES = {'shared': '[daemon]\nisolation = shared\n', 'tenant': '[daemon]\nisolation = tenant\n',
           'session': '[daemon]\nisolation = session\n'}
TENANTS = ''.join(f'[tenant t{number}]\n' for number in range(20))


def row(function):
    ROWS[function.__name__] = function
    return function


class LocalPool(Pool):
    """A daemon that also listens on a Unix socket: .local."""

    def __init__(self, bench, config, *args, env=None):
        self.folder = tempfile.mkdtemp(dir=bench.work)
        self.local = f'unix://{self.folder}/daemon.sock'
        self.admin = f'{self.folder}/admin.sock'
        super().__init__(bench, config, ['--listen', self.local, '--admin-socket', self.admin, *args], env)

    def workers(self):
        status, out, err = self.bench.run('gpupoolctl', '--socket', self.admin, '--format=json', 'worker', 'list')
        if status:
            raise Failed(err)
        return json.loads(out)


class Mps:
    """NVIDIA's daemon; .env is that of its clients. A context manager."""

    def __init__(self, work):
        self.folder = tempfile.mkdtemp(dir=work)
        self.env = {'CUDA_MPS_PIPE_DIRECTORY': self.folder, 'CUDA_MPS_LOG_DIRECTORY': self.folder}

    def __enter__(self):
        subprocess.run(['nvidia-cuda-mps-control', '-d'], check=True, env={**os.environ, **self.env})
        return self

    def __exit__(self, *what):
        subprocess.run(['nvidia-cuda-mps-control'], input='quit\n', text=True, check=False, env={**os.environ, **self.env})


def busy_ticks():
    with open('/proc/stat') as file:
        words = [int(word) for word in file.readline().split()[1:]]
    return sum(words) - words[3] - words[4], sum(words)


def run_clients(bench, count, seconds, remote, env_of):
    """Requests per second of `count` inference clients together, and the part of the processors that was busy."""
    command = [sys.executable, os.path.join(HERE, 'inference.py'), str(seconds)]
    clients = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                env=bench.environment(remote, {'OMP_NUM_THREADS': '1', **env_of(number)}))
               for number in range(count)]
    for client in clients:
        if client.stdout.readline() != 'ready\n':
            raise Failed('a client did not start')
    before = busy_ticks()
    for client in clients:
        client.stdin.write('\n')
        client.stdin.flush()
    rates, sums = zip(*(client.stdout.readline().split() for client in clients))
    after = busy_ticks()
    for client in clients:
        client.wait(60)
    if len(set(sums)) != 1:
        raise Failed(f'results differ: {sums}')
    return sum(map(float, rates)), (after[0] - before[0]) / (after[1] - before[1])


@row
def clients(bench, report, options):
    for count in options.counts:
        rates = {}

        def measure(name, remote=None, env_of=lambda number: {}):
            rates[name], busy = run_clients(bench, count, bench.seconds, remote, env_of)
            report(f'{count} inference clients, {name}', f'{rates[name]:.0f}/s, {rates[name] / rates["native"]:.2f} x native, '
                   f'processors {100 * busy:.0f} %', name not in ('tenant', 'session') or rates[name] >= rates['native'])
        measure('native')
        if 'mps' in options.sides:
            with Mps(bench.work) as mps:
                measure('mps', env_of=lambda number: mps.env)
        for name in options.sides:
            if name in CLASSES:
                with LocalPool(bench, CLASSES[name] + TENANTS) as pool:
                    measure(name, pool.local, lambda number: tenant(f't{number}'))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder')
    parser.add_argument('--rows', default='', help='comma-separated; all without it: ' + ', '.join(ROWS))
    parser.add_argument('--results', help='write the list there')
    parser.add_argument('--driver', help="gpupoold's --driver")
    parser.add_argument('--seconds', type=float, default=5, help='of each measurement (5)')
    parser.add_argument('--counts', default='4,8', help='numbers of clients (4,8)')
    parser.add_argument('--sides', default='mps,shared,tenant,session', help='of the row clients, besides native')
    options = parser.parse_args()
    options.counts = [int(count) for count in options.counts.split(',')]
    options.sides = options.sides.split(',')
    lines = []

    def report(title, measured, good):
        lines.append({'row': title, 'measured': measured, 'pass': good})
        print(f'{"ok    " if good else "NOT OK"} {title}: {measured}', flush=True)
    with tempfile.TemporaryDirectory(prefix='gpupool-isolation-') as work:
        bench = Bench(options.folder, work, options.driver, options.seconds)
        for name in options.rows.split(',') if options.rows else ROWS:
            try:
                ROWS[name](bench, report, options)
            except Failed as failed:
                report(name, f'not measured: {failed}'.replace('\n', '; ')[:300], False)
    if options.results:
        with open(options.results, 'w') as file:
            json.dump(lines, file, indent=1)
            file.write('\n')
    return 1 if not lines or any(not line['pass'] for line in lines) else 0


if __name__ == '__main__':
    sys.exit(main())
