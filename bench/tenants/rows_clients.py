# SPDX-License-Identifier: Apache-2.0
"""Clients side by side: rates, latencies, fairness, priority, host functions."""
import json
import os
import shutil
import time

from pool import Failed, tenant
from rows import WIDE, jain, per_cent, row


@row('1', 'clients share, the sum is kept')
def sharing(bench, report):
    with bench.pool() as pool:
        native = max(bench.nbody(512000, 40, [(None, None)])[0])
        solo = max(bench.nbody(512000, 40, [(pool.address, None)])[0])
        both, _ = bench.nbody(512000, 40, [(pool.address, None)] * 2)
        report.add('1', 'nbody 512000, remote / local >= 0.97', f'{solo / native:.3f}', solo >= 0.97 * native)
        shares = [rate / sum(both) for rate in both]
        report.add('1', 'two clients: sum >= 0.97 of one, each 48 to 52 % of it', f'{sum(both) / solo:.3f}, {per_cent(shares)}',
                   sum(both) >= 0.97 * solo and all(0.48 <= s <= 0.52 for s in shares))


@row('1b', 'small kernels of many clients')
def small_kernels(bench, report):
    with bench.pool() as pool:
        alone = min(bench.nbody(4096, 2000, [(pool.address, None)])[1][0] for _ in range(2))
        for count, wanted in ((8, 1.15), (16, 1.8)):
            slowest = max(bench.nbody(4096, 2000, [(pool.address, None)] * count)[1])
            report.add('1b', f'nbody 4096: {count} clients, slowest by one alone <= {wanted}', f'{slowest / alone:.2f}',
                       slowest <= wanted * alone)


@row('2', 'one-block kernels side by side')
def hyper_q(bench, report):
    args = ('-blocks=1', '-threads=32', '-spin-us=10000', '-launches=30')
    for connections, cases in (('32', ((32, 1.25), (64, 2.5))), ('8', ((32, 1.25),))):
        with bench.pool(env={'CUDA_DEVICE_MAX_CONNECTIONS': connections}) as pool:
            one = bench.load(pool.address, *args)['seconds']
            for count, wanted in cases:
                each = bench.loads(*[(pool.address, None, args)] * count)
                longest = max(result['seconds'] for result in each)
                gated = connections == '32'
                report.add('2', f'{count} clients, {connections} connections: makespan '
                           + (f'<= {wanted} of one' if gated else 'is recorded'),
                           f'{longest / one:.2f}', longest <= wanted * one or not gated)


@row('3', 'a kernel starts when there is room')
def room(bench, report):
    with bench.pool() as pool:
        hog = (pool.address, None, ('-blocks=1056', '-threads=256', '-spin-us=5000', '-inflight=2'))
        small = (pool.address, None, ('-blocks=1', '-threads=32', '-spin-us=10', '-period-us=20000'))
        times = bench.loads(hog, small)[1]
        report.add('3', 'after 5 ms blocks on all SMs, 99 % within 6 ms', f"{times['p99_us'] / 1000:.2f} ms",
                   times['p99_us'] <= 6000)


@row('4', 'kernels of a quarter of the GPU overlap')
def overlap(bench, report):
    args = ('-blocks=33', '-threads=1024', '-iterations=200000')
    with bench.pool() as pool:
        one = bench.load(pool.address, *args)['gflops']
        two = sum(result['gflops'] for result in bench.loads(*[(pool.address, None, args)] * 2))
        report.add('4', 'two clients of 33 blocks >= 1.9 of one', f'{two / one:.2f}', two >= 1.9 * one)


@row('11', 'different users side by side')
def users(bench, report):
    if os.geteuid() != 0 or not shutil.which('setpriv'):
        report.add('11', 'two users at once', 'not shown: it takes root and setpriv', False)
        return
    # The other user needs no token: it is about what both get.
    with bench.pool('', '--insecure') as pool:
        alone = max(1, bench.load(pool.address, *WIDE)['kernels'])
        as_user = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
        begin = time.time() + 3
        processes = [bench.start('load', f'-start={begin}', f'-seconds={bench.seconds}', *WIDE, remote=pool.address,
                                 wrapper=wrapper) for wrapper in ([], as_user)]
        ends = [bench.finish(process) for process in processes]
        if any(status for status, _, _ in ends):
            raise Failed(str(ends))
        shares = [json.loads(out)['kernels'] / alone for _, out, _ in ends]
        report.add('11', 'two users at once: 48 to 52 % each', per_cent(shares), all(0.48 <= s <= 0.52 for s in shares))


@row('12', 'many clients')
def many(bench, report):
    with bench.pool() as pool:
        idle = [bench.start('memhog', '1', remote=pool.address, stdin=-1) for _ in range(192)]
        for process in idle:
            while 'after' not in process.stdout.readline():
                if process.poll() is not None:
                    raise Failed(process.stderr.read())
        each = bench.loads(*[(pool.address, None, ('-blocks=1', '-threads=64', '-spin-us=200', '-inflight=2'))] * 64)
        refused = sum(bench.finish(process)[0] != 0 for process in idle)
        fairness = jain([result['kernels'] for result in each])
        report.add('12', '256 connected, 64 active: none refused, Jain >= 0.98', f'{refused} refused, {fairness:.4f}',
                   refused == 0 and fairness >= 0.98)


@row('13', 'priority')
def priority(bench, report):
    config = '[tenant low]\npriority = low\n[tenant high]\npriority = high\n[tenant part]\nsm = 16\n[tenant rest]\nsm = 116\n'
    hog = ('-blocks=1056', '-threads=256', '-spin-us=20000', '-inflight=2')
    small = ('-blocks=16', '-threads=128', '-spin-us=100', '-period-us=5000')
    with bench.pool(config) as pool:
        times = bench.loads((pool.address, tenant('low'), hog), (pool.address, tenant('high'), small))[1]
        report.add('13', '100 us kernel beside 20 ms blocks: 99 % <= 21 ms', f"{times['p99_us'] / 1000:.2f} ms",
                   times['p99_us'] <= 21000)
        alone = bench.load(pool.address, *small, env=tenant('part'))
        beside = bench.loads((pool.address, tenant('rest'), hog), (pool.address, tenant('part'), small))[1]
        report.add('13', 'with 16 SMs of its own: 99 % <= 2 x alone',
                   f"{beside['p99_us']:.0f} by {alone['p99_us']:.0f} us", beside['p99_us'] <= 2 * alone['p99_us'])


@row('27', 'host functions')
def callbacks(bench, report):
    with bench.pool() as pool:
        begin = time.time()
        processes = [bench.start('callbacks', 'order', '10000', remote=pool.address) for _ in range(8)]
        ends = [bench.finish(p) for p in processes]
        bad = [out + err for status, out, err in ends if status]
        report.add('27', '8 clients x 10,000 in order', f'{time.time() - begin:.1f} s' if not bad else bad[0].strip(), not bad)
        quick = ('-blocks=1', '-threads=32', '-spin-us=10', '-period-us=2000')
        # It sleeps for as long as the other is measured.
        sleeper = bench.start('callbacks', 'sleeper', str(int(1000 * bench.seconds) + 4000), remote=pool.address)
        times = bench.load(pool.address, *quick)
        bench.finish(sleeper)
        report.add('27', 'one that sleeps 1 s delays others <= 5 ms', f"{times['max_us'] / 1000:.2f} ms",
                   times['max_us'] <= 5000)
