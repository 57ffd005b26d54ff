# SPDX-License-Identifier: Apache-2.0
"""Shares of GPU time: weights, limits, policies, and what is measured of it."""
import json
import os
import time

from pool import tenant
from rows import LONG, MIDDLE, SHORT, per_cent, row, time_shares


@row('16', 'a cap applies without other clients, too')
def cap(bench, report):
    for args, name in ((MIDDLE, '1 ms kernels'), (SHORT, 'short kernels')):
        share, = time_shares(bench, '[device *]\npolicy = best-effort\n[tenant a]\nlimit = 30\n[tenant solo]\n', [('a', args)])
        report.add('16', f'limit 30, alone, {name}: <= 32 %', per_cent([share]), share <= 0.32)


@row('17', 'idle time is lent and given back')
def borrow(bench, report):
    config = '[device *]\npolicy = best-effort\n[tenant a]\nweight = 30\nlimit = 90\n[tenant b]\nweight = 70\n[tenant solo]\n'
    share, = time_shares(bench, config, [('a', MIDDLE)])
    report.add('17', 'weight 30, limit 90, alone: >= 85 %', per_cent([share]), share >= 0.85)
    shares = time_shares(bench, config, [('a', MIDDLE), ('b', MIDDLE)])
    report.add('17', 'beside one of weight 70: 30 +- 3 %', per_cent(shares), abs(shares[0] - 0.3) <= 0.03)


@row('18', 'cost of the scheduler for a single client')
def cost(bench, report):
    with bench.pool() as free, bench.pool('[device *]\npolicy = best-effort\n') as scheduled:
        rates = {free: [], scheduled: []}
        for _ in range(3):
            for pool in rates:
                rates[pool].append(bench.load(pool.address, *SHORT)['kernels'])
        ratio = max(rates[scheduled]) / max(rates[free])
        report.add('18', 'one client, scheduled by not: >= 0.99', f'{ratio:.4f}', ratio >= 0.99)


@row('19', 'requests .2 .3 .5')
def requests(bench, report):
    config = ('[device *]\npolicy = best-effort\n[tenant a]\nweight = 20\n[tenant b]\nweight = 30\n[tenant c]\nweight = 50\n'
              '[tenant solo]\n')
    shares = time_shares(bench, config, [('a', MIDDLE), ('b', MIDDLE), ('c', MIDDLE)])
    report.add('19', 'all busy: 20 / 30 / 50 +- 2 points', per_cent(shares),
               all(abs(s - w) <= 0.02 for s, w in zip(shares, (.2, .3, .5))))
    shares = time_shares(bench, config, [('a', MIDDLE), ('b', MIDDLE)])
    report.add('19', 'c idle: 40 / 60 +- 2 points, sum >= 0.95', per_cent(shares),
               abs(shares[0] - .4) <= .02 and abs(shares[1] - .6) <= .02 and sum(shares) >= 0.95)


@row('23', 'unequal kernels')
def unequal(bench, report):
    shares = time_shares(bench, '[device *]\npolicy = best-effort\n[tenant a]\n[tenant b]\n[tenant solo]\n',
                         [('a', SHORT), ('b', LONG)])
    report.add('23', '50 us beside 50 ms kernels: 50 +- 5 % each, sum >= 0.95', per_cent(shares),
               all(abs(s - .5) <= .05 for s in shares) and sum(shares) >= 0.95)


@row('24', 'weights 1 2 5')
def weights(bench, report):
    config = '[device *]\npolicy = best-effort\n[tenant a]\nweight = 10\n[tenant b]\nweight = 20\n[tenant c]\nweight = 50\n[tenant solo]\n'
    shares = time_shares(bench, config, [('a', MIDDLE), ('b', SHORT), ('c', LONG)])
    report.add('24', '12.5 / 25 / 62.5 +- 2 points, with mixed kernels', per_cent(shares),
               all(abs(s - w) <= .02 for s, w in zip(shares, (.125, .25, .625))))


@row('25', 'policies')
def policies(bench, report):
    fixed = '[device *]\npolicy = fixed\n[tenant a]\ntime-share = 25\n[tenant solo]\ntime-share = 75\n'
    with bench.pool() as pool:
        alone = bench.load(pool.address, *MIDDLE)['kernels'] / bench.seconds
    with bench.pool(fixed) as pool:
        share = bench.load(pool.address, *MIDDLE, env=tenant('a'))['kernels'] / bench.seconds / alone
        report.add('25', 'fixed 25 %, neighbours idle: <= 27 %', per_cent([share]), 0.2 <= share <= 0.27)
    equal = '[device *]\npolicy = equal\n[tenant a]\n[tenant b]\n[tenant c]\n'
    with bench.pool(equal) as pool:
        each = bench.loads(*[(pool.address, tenant(t), MIDDLE) for t in 'abc'], seconds=8)
        shares = [r['kernels'] / 8 / alone for r in each]
        report.add('25', 'equal, three: 33 +- 2 points', per_cent(shares), all(abs(s - 1 / 3) <= .02 for s in shares))
    with bench.pool('[device *]\npolicy = best-effort\n[tenant a]\n') as pool:
        share = bench.load(pool.address, *MIDDLE, env=tenant('a'))['kernels'] / bench.seconds / alone
        report.add('25', 'best effort, alone: >= 97 %', per_cent([share]), share >= 0.97)


@row('29', 'measured GPU time')
def metric(bench, report):
    config = '[tenant a]\n[tenant b]\n'
    for policy in ('none', 'best-effort'):
        socket = os.path.join(bench.work, 'admin.sock')
        with bench.pool(f'[device *]\npolicy = {policy}\n' + config, '--admin-socket', socket) as pool:
            def measured():
                out = bench.run('gpupoolctl', '--socket', socket, '--format=json', 'tenant', 'list')[1]
                return {line['tenant']: line['gpu_seconds'] for line in json.loads(out)}
            truth = bench.load(pool.address, *MIDDLE, '-launches=2000', env=tenant('a'))['seconds']
            time.sleep(0.5)
            alone = measured()['a']
            report.add('29', f'policy {policy}: time by the busy time of one alone, within 2 %', f'{alone / truth:.4f}',
                       abs(alone / truth - 1) <= 0.02)
            if policy == 'none':
                continue
            begin = measured()
            each = bench.loads(*[(pool.address, tenant(t), MIDDLE + ('-launches=2000',)) for t in 'ab'])
            time.sleep(0.5)
            end = measured()
            busy = max(result['seconds'] for result in each)
            total = sum(end[t] - begin[t] for t in 'ab')
            report.add('29', 'two in turns: their sum by the busy time, within 2 %', f'{total / busy:.4f}',
                       abs(total / busy - 1) <= 0.02)
