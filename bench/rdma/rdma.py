#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rdma.py BUILD [--rounds N]: the rdma transport, and CUDA calls through a daemon over it (bench/calls), beside
perftest's ib_write_bw, ib_send_lat and ib_write_lat, in turns in one virtual machine with Soft-RoCE and software
device. BUILD is a release build folder. Figures of an emulated machine mean little;
the limits are for ratios of the best rounds: on a shared machine other rounds measure its load, too.
Exit status 1 if one is missed, 77 if there can be no machine."""
import argparse
import os
import re
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'scripts'))
import vm

BULK = 1 << 20
COUNT = 24
TRIPS = 1500
# Perftest's two ends: the one that waits may take a moment to listen.
PERFTEST = '''
program=$1; shift
timeout 60 $program -R "$@" >/dev/null 2>&1 &
for i in 1 2 3 4 5; do
	sleep 0.3
	timeout 60 $program -R "$@" %s && break
done
wait
''' % vm.OWN


def perftest(*args):
    return {}, ['sh', '-c', PERFTEST, 'sh', *args]


def figures(text):
    """The line below perftest's heading."""
    found = re.search(r'^ *#bytes.*\n(.*)$', text, re.M)
    return [float(word) for word in found[1].split()] if found else []


# The measurements, in the order of a round, and how to read a figure of it.
WAYS = ['up', 'down', 'up-copied', 'down-copied']
CALLS = ['cuMemGetInfo', 'cuCtxSynchronize', 'cuMemcpyDtoH']
LATENCIES = ['ib_send_lat', 'ib_write_lat', 'echo', *CALLS]
# The daemon goes on when the command that starts it has ended.
START = '''
setsid "$@" >/tmp/daemon.out 2>/tmp/daemon.log </dev/null &
for i in $(seq 300); do grep -q ^listening /tmp/daemon.out && exit; sleep 0.1; done
cat /tmp/daemon.log; exit 1
'''


class Bench:
    def __init__(self, build, bulk):
        self.build = build
        self.bulk = bulk
        self.seen = {name: [] for name in [*(['ib_write_bw', *WAYS] if bulk else []), *LATENCIES]}

    def path(self, name):
        return os.path.abspath(os.path.join(self.build, name))

    def own(self, what, count, size):
        return {}, [self.path('bench/rdma/rdma'), f'rdma://{vm.OWN}:0', what, str(count), str(size)]

    def start(self):
        return {'GPUPOOL_CACHE_DIR': ''}, ['sh', '-c', START, 'sh', self.path('server/gpupoold'), '--listen',
                                           f'rdma://{vm.OWN}:4833', '--insecure', '--print-address', '--driver',
                                           self.path('softgpu/driver/libcuda-soft.so'), '--admin-socket', 'off', '--user', 'root']

    def round(self):
        """[(names of its figures, command)]"""
        calls = ({'REMOTE_GPU': f'rdma://{vm.OWN}:4833', 'LD_LIBRARY_PATH': self.path('client')},
                 [self.path('bench/calls'), str(TRIPS)])
        bulk = [(['ib_write_bw'], perftest('ib_write_bw', '-s', str(BULK), '-n', str(COUNT), '-t', '4')),
                *[([way], self.own(way, COUNT, BULK)) for way in WAYS]]
        return [*(bulk if self.bulk else []),
                (['ib_send_lat'], perftest('ib_send_lat', '-s', '64', '-n', str(TRIPS))),
                (['echo'], self.own('latency', TRIPS, 64)),
                (CALLS, calls),
                (['ib_write_lat'], perftest('ib_write_lat', '-s', '64', '-n', str(TRIPS)))]

    def add_result(self, names, result):
        status, out, err, _ = result
        if names[0].startswith('ib_'):
            # Average bandwidth; typical latency of one way.
            numbers = figures(out)
            numbers = [numbers[3] if names[0] == 'ib_write_bw' else numbers[4]] if len(numbers) > 4 else []
        elif names is CALLS:
            numbers = [float(line.split()[1]) for line in out.splitlines()]
        else:
            numbers = [float(word) for word in out.split()[:1]]
        if status or len(numbers) != len(names):
            print(f'{names[0]}: status {status}\n{out}{err}')
            return
        for name, number in zip(names, numbers):
            self.seen[name].append(number)

    def print_figures(self):
        best = {}
        for name, values in self.seen.items():
            unit = 'us one way' if name in ('ib_send_lat', 'ib_write_lat') else 'us' if name in LATENCIES else 'MiB/s'
            best[name] = min(values) if name in LATENCIES else max(values)
            print(f'{name}: {best[name]:.1f} {unit}, median {statistics.median(values):.1f}, '
                  f'of {", ".join(f"{value:.1f}" for value in values)}')
        return best


def judge(best):
    good = True
    for name in [name for name in WAYS if name in best]:
        ratio = best[name] / best['ib_write_bw']
        wanted = 'copied' not in name
        good = good and (not wanted or ratio >= 0.9)
        print(f'{name} / ib_write_bw: {ratio:.2f}{" (wanted: 0.90)" if wanted else ""}')
    # perftest's figure is one way: half of what it measures, there and back with nothing in between.
    for name in 'echo', *CALLS:
        wanted = name in ('echo', 'cuMemGetInfo', 'cuCtxSynchronize')
        send, write = (best[name] / 2 / best[one] for one in ('ib_send_lat', 'ib_write_lat'))
        good = good and (not wanted or send <= 2)
        print(f'{name} / ib_send_lat there and back: {send:.2f}{" (wanted: at most 2)" if wanted else ""}; '
              f'/ ib_write_lat there and back: {write:.2f}')
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--latency', action='store_true', help='no bulk')
    options = parser.parse_args()
    bench = Bench(options.build, not options.latency)
    plan = bench.round() * options.rounds
    try:
        started, *results = vm.run([bench.start(), *[command for _, command in plan]],
                                   seconds=120 + 60 * options.rounds, rdma=True)
    except vm.Cannot as cannot:
        print(cannot)
        return 77
    if started[0]:
        print(f'no daemon: {started[1]}{started[2]}')
    for (names, _), result in zip(plan, results):
        bench.add_result(names, result)
    missing = [name for name, values in bench.seen.items() if not values]
    if missing:
        print(f'no figures of {", ".join(missing)}')
        return 1
    return 0 if judge(bench.print_figures()) else 1


if __name__ == '__main__':
    sys.exit(main())
