# SPDX-License-Identifier: Apache-2.0
"""Interference that there must not be."""
import json
import os
import time

from pool import Failed, tenant
from rows import MIDDLE, WIDE, jain, per_cent, row, time_shares


def unstalled(bench, report, pool, program, what):
    """Short kernels of one client while a call of another one, which the driver delays until no kernel runs, waits for
    a third one's long kernel."""
    begin = time.time() + 4
    short = bench.start('load', f'-start={begin}', '-seconds=5', '-period-us=2000', '-blocks=1', '-iterations=100',
                        remote=pool.address)
    time.sleep(max(0, begin + 0.5 - time.time()))
    long = bench.start('sleeper', '-ms=3000', remote=pool.address)
    long.stdout.readline()
    new = bench.start(program, remote=pool.address)
    status, out, err = bench.finish(short)
    others = [bench.finish(process)[0] for process in (long, new)]
    if status or any(others):
        raise Failed(f'{status} {others}: {out} {err}')
    worst = json.loads(out)['max_us'] / 1000
    report.add('gates', f"{what} after another's kernel of 3 s delays a third client by <= 50 ms", f'{worst:.1f} ms', worst <= 50)


def quarters(bench, report):
    """One of four tenants of a quarter each, alone and beside the others."""
    config = ''.join(f'[tenant {name}]\nsm = 25%\n' for name in 'abcd')
    args = WIDE + ('-iterations=2000',)
    with bench.pool(config) as pool:
        alone = bench.load(pool.address, *args, env=tenant('a'))['kernels']
        beside = bench.loads(*[(pool.address, tenant(name), args) for name in 'abcd'])[0]['kernels']
        loss = 1 - beside / alone
        report.add('gates', 'a quarter of the multiprocessors beside three busy ones loses <= 5 %', per_cent([loss]), loss <= 0.05)


def three_to_one(bench, report):
    config = '[device *]\npolicy = best-effort\n[tenant a]\nweight = 75\n[tenant b]\nweight = 25\n[tenant solo]\n'
    for args, how in ((MIDDLE, 'launched ahead'), (MIDDLE + ('-sync-each',), 'each waited for')):
        shares = time_shares(bench, config, [('a', args), ('b', args)])
        # A client that waits for each kernel leaves the GPU idle when turns change.
        gated = how == 'launched ahead'
        cost = 'at <= 1.5 % cost' if gated else 'the cost is recorded'
        report.add('gates', f'75 / 25 +- 2 points, {cost}, kernels {how}', f'{per_cent(shares)} of one alone',
                   abs(shares[0] / sum(shares) - .75) <= .02 and (sum(shares) >= 0.985 or not gated))


def live_change(bench, report):
    """From the command to the end of the first kernel with three times the multiprocessors."""
    socket = os.path.join(bench.work, 'live.sock')
    with bench.pool('[tenant a]\nsm = 25%\n[tenant b]\n', '--admin-socket', socket) as pool:
        # Without other clients, and beside one with kernels of 20 ms.
        for neighbour, longest in ((False, 0), (True, 20)):
            begin = time.time() + 3
            other = None
            if neighbour:
                other = bench.start('load', f'-start={begin}', '-seconds=4', '-blocks=1', '-spin-us=20000', '-inflight=2',
                                    remote=pool.address, env=tenant('b'))
            load = bench.start('load', f'-start={begin}', '-seconds=4', '-period-us=5000', '-blocks=4224', '-threads=256',
                               '-iterations=2000', remote=pool.address, env=tenant('a'))
            time.sleep(max(0, begin + 2 - time.time()))
            changed = time.time()
            status, _, err = bench.run('gpupoolctl', '--socket', socket, 'tenant', 'set', 'a', 'sm=75%')
            if status:
                raise Failed(err)
            status, out, err = bench.finish(load)
            if status or (other and bench.finish(other)[0]):
                raise Failed(out + err)
            took = (json.loads(out)['faster_at'] - changed) * 1000
            bench.run('gpupoolctl', '--socket', socket, 'tenant', 'set', 'a', 'sm=25%')
            report.add('gates', f'a larger share is in effect within 100 ms + {longest} ms, the longest kernel', f'{took:.0f} ms',
                       0 < took <= 100 + longest)


def leftovers(bench, report):
    with bench.pool('[tenant a]\n[tenant b]\n') as pool:
        total = int(bench.run('memhog', '1', remote=pool.address)[1].split()[2])
        args = f'-leftovers-mib={total * 7 // 10}'
        found = [bench.load(pool.address, args, env=tenant(name))['leftovers'] for name in 'ab']
        report.add('gates', "70 % of the memory, just left full by another: words that are not zero", str(found[1]), found == [0, 0])


def captured(bench, report):
    with bench.pool() as pool:
        capturing = bench.start('load', '-captures', '-seconds=3', '-blocks=8', '-iterations=100', remote=pool.address)
        failed = runs = 0
        while capturing.poll() is None:
            failed += bench.run('vectoradd', remote=pool.address)[0] != 0
            runs += 1
        status, out, err = bench.finish(capturing)
        if status:
            raise Failed(out + err)
        captures = json.loads(out)['captures']
        report.add('gates', "a capture in one client does not fail another's allocations",
                   f'{runs} programs beside {captures} captures, {failed} failed', runs > 0 and captures > 0 and failed == 0)


@row('gates', 'no interference')
def gates(bench, report):
    args = WIDE + ('-iterations=2000',)
    with bench.pool() as pool:
        each = bench.loads(*[(pool.address, None, args)] * 8)
        fairness = jain([result['kernels'] for result in each])
        report.add('gates', "8 equal clients: Jain's index >= 0.99", f'{fairness:.4f}', fairness >= 0.99)
        # Only code that the driver has loaded once starts beside others' kernels.
        bench.run('vectoradd', remote=pool.address)
        long = bench.start('sleeper', '-ms=6000', remote=pool.address)
        long.stdout.readline()
        begin = time.time()
        status = bench.run('vectoradd', remote=pool.address)[0]
        took = time.time() - begin
        bench.finish(long)
        report.add('gates', "a client whose program ran before synchronises while another's kernel runs for 6 s", f'{took:.2f} s',
                   status == 0 and took < 2)
        unstalled(bench, report, pool, 'matmul', 'loading code')
        unstalled(bench, report, pool, 'arrays', 'destroying arrays')
        quarter = ('-blocks=33', '-threads=256', '-iterations=20000')
        alone = bench.load(pool.address, *quarter)['kernels']
        beside = bench.loads((pool.address, None, quarter),
                             (pool.address, None, ('-blocks=1', '-iterations=100', '-null-stream', '-sync-each')))[0]['kernels']
        report.add('gates', "another's loop on its NULL stream costs <= 2 %", per_cent([1 - beside / alone]),
                   beside >= 0.98 * alone)
    quarters(bench, report)
    three_to_one(bench, report)
    live_change(bench, report)
    leftovers(bench, report)
    captured(bench, report)
