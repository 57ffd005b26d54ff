# SPDX-License-Identifier: Apache-2.0
"""Shares of the multiprocessors, and a GPU in parts."""
import json
import time

from pool import Failed, tenant
from rows import WIDE, per_cent, row


@row('5', 'hard share of the multiprocessors')
def hard_share(bench, report):
    config = ''.join(f'[tenant q{share}]\nsm = {share}%\n' for share in (25, 50, 75))
    with bench.pool(config) as pool:
        whole = bench.load(pool.address, *WIDE)
        for share in (25, 50, 75):
            got = bench.load(pool.address, *WIDE, env=tenant(f'q{share}'))
            wanted = got['multiprocessors'] / whole['multiprocessors']
            rate = got['gflops'] / whole['gflops']
            report.add('5', f'{share} %: rate is SMs / all within 2 points',
                       f"{got['multiprocessors']} SMs, ran on {got['distinct_multiprocessors']}: {per_cent([rate, wanted])}",
                       abs(rate - wanted) <= 0.02 and got['distinct_multiprocessors'] == got['multiprocessors']
                       and abs(wanted - share / 100) <= 0.02)


@row('6', 'two halves do not disturb each other')
def halves(bench, report):
    config = '[tenant a]\nsm = 50%\n[tenant b]\nsm = 50%\n'
    with bench.pool(config) as pool:
        solo = bench.load(pool.address, *WIDE)['gflops']
        alone = bench.load(pool.address, *WIDE, env=tenant('a'))['gflops']
        both = [r['gflops'] for r in bench.loads(*[(pool.address, tenant(t), WIDE) for t in 'ab'])]
        report.add('6', 'both running: each >= 0.48 of solo, sum >= 0.96', per_cent([r / solo for r in both]),
                   min(both) >= 0.48 * solo and sum(both) >= 0.96 * solo)
        report.add('6', "a's loss beside b <= 3 %", per_cent([1 - both[0] / alone]), both[0] >= 0.97 * alone)
        triad = ('-blocks=1056', '-threads=256', '-triad-mib=512')
        memory = bench.load(pool.address, *triad, env=tenant('a'))['gbytes']
        shared = bench.loads(*[(pool.address, tenant(t), triad) for t in 'ab'])[0]['gbytes']
        report.add('6', 'memory-bound: loss is reported', per_cent([1 - shared / memory]), True)


@row('6b', 'a share changes while kernels run')
def live_share(bench, report):
    with bench.pool('[tenant a]\nsm = 25%\n') as pool:
        begin = time.time() + 3
        process = bench.start('load', f'-start={begin}', '-seconds=4', '-per-second', '-iterations=2000', *WIDE,
                              remote=pool.address, env=tenant('a'))
        time.sleep(max(0, begin + 1.9 - time.time()))
        pool.reload('[tenant a]\nsm = 75%\n')
        status, out, err = bench.finish(process)
        if status:
            raise Failed(out + err)
        by_second = json.loads(out)['by_second']
        report.add('6b', '25 % to 75 % after 1.9 s: rate of the 3rd second >= 2.7 of the 1st',
                   ' / '.join(map(str, by_second)), by_second[2] >= 2.7 * by_second[0])


@row('15', 'a GPU in four')
def virtual(bench, report):
    with bench.pool('[device *]\nvirtual-number = 4\n') as pool:
        holders, sizes = [], []
        for _ in range(4):
            holder = bench.start('memhog', '1', remote=pool.address, stdin=-1)
            holder.stdout.readline()
            holders.append(holder)
        status, _, err = bench.run('vectoradd', remote=pool.address)
        report.add('15', 'the fifth is refused in words', err.strip().splitlines()[0] if err else 'it was not',
                   status != 0 and 'all 4 virtual devices' in err)
        for holder in holders:
            bench.finish(holder)
        out = bench.run('quota', remote=pool.address)[1]
        sizes = out.split('\n')[0]
        sms = bench.load(pool.address, *WIDE, seconds=1)
        report.add('15', 'each has a quarter: memory, SMs', f"{sizes.split(',')[0]}, {sms['multiprocessors']} SMs",
                   True)
