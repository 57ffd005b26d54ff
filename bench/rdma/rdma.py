#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rdma.py BUILD [--rounds N]: the rdma transport beside perftest's ib_write_bw and ib_send_lat, in turns in one
virtual machine with Soft-RoCE. BUILD is a release build folder. Figures of an emulated machine mean little;
what is wanted are the ratios, of the best rounds: where the machine is shared the others say what else it did.
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('build')
    parser.add_argument('--rounds', type=int, default=5)
    options = parser.parse_args()
    program = os.path.abspath(os.path.join(options.build, 'bench/rdma/rdma'))

    def own(what, count, size):
        return {}, [program, f'rdma://{vm.OWN}:0', what, str(count), str(size)]

    ways = ['up', 'down', 'up-copied', 'down-copied']
    one_round = [perftest('ib_write_bw', '-s', str(BULK), '-n', str(COUNT), '-t', '4'),
                 *[own(way, COUNT, BULK) for way in ways],
                 perftest('ib_send_lat', '-s', '64', '-n', str(TRIPS)), own('latency', TRIPS, 64)]
    names = ['ib_write_bw', *ways, 'ib_send_lat', 'latency']
    try:
        results = vm.run(one_round * options.rounds, seconds=120 + 60 * options.rounds, rdma=True)
    except vm.Cannot as cannot:
        print(cannot)
        return 77
    seen = {name: [] for name in names}
    for number, (status, out, err, _) in enumerate(results):
        name = names[number % len(names)]
        # perftest: average bandwidth, typical latency of one way.
        numbers = figures(out) if name.startswith('ib_') else [float(word) for word in out.split()]
        if status or not numbers:
            print(f'{name}: status {status}\n{out}{err}')
            continue
        seen[name].append(numbers[3] if name == 'ib_write_bw' else numbers[4] if name == 'ib_send_lat'
                          else numbers[0])
    missing = [name for name in names if not seen[name]]
    if missing:
        print(f'no figures of {", ".join(missing)}')
        return 1
    best = {name: min(values) if name in ('ib_send_lat', 'latency') else max(values) for name, values in seen.items()}
    for name in names:
        unit = {'ib_send_lat': 'us one way', 'latency': 'us there and back'}.get(name, 'MiB/s')
        print(f'{name}: {best[name]:.1f} {unit}, median {statistics.median(seen[name]):.1f}, '
              f'of {", ".join(f"{value:.1f}" for value in seen[name])}')
    good = True
    for name in ways:
        ratio = best[name] / best['ib_write_bw']
        wanted = 'copied' not in name
        good = good and (not wanted or ratio >= 0.9)
        print(f'{name} / ib_write_bw: {ratio:.2f}{" (wanted: 0.90)" if wanted else ""}')
    # perftest's figure is one way: half of what it measures, there and back with nothing in between.
    ratio = best['latency'] / best['ib_send_lat']
    print(f'round trip / ib_send_lat: {ratio:.2f}; / ib_send_lat there and back: {ratio / 2:.2f} (wanted: at most 2)')
    return 0 if good and ratio / 2 <= 2 else 1


if __name__ == '__main__':
    sys.exit(main())
