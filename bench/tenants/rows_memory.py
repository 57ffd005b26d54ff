# SPDX-License-Identifier: Apache-2.0
"""Quotas of memory."""
import sys
import time

from pool import Failed, tenant
from rows import row


def array_sizes(bench, **more):
    """Shape -> MiB that arrays of it take."""
    status, out, err = bench.run('arraysizes', **more)
    if status:
        raise Failed(out + err)
    return {name: float(size) for name, size in (line.rsplit(': ', 1) for line in out.splitlines()[:-1])}


@row('7', 'memory quota on every way of allocating')
def memory(bench, report):
    config = '[tenant a]\nmemory = 1G\n[tenant b]\nmemory = 1G\n[tenant d]\nmemory = 8G\n'
    with bench.pool(config) as pool:
        for way in ('malloc', 'pitch', 'small', 'async', 'virtual', 'array', 'managed'):
            status, out, err = bench.run('quota', way, remote=pool.address, env=tenant('a'))
            words = out.split()
            got = float(words[words.index('after') + 1]) if 'after' in words else -1
            good = status == 0 and 99.9 <= got <= 100
            report.add('7', f'{way}: out of memory at 99.9 to 100 % of the quota', f'{got:.2f} %' if got >= 0 else
                       f'{out}{err}'.strip().replace('\n', '; '), good)
        for limit, good_status in (('128M', 0), ('32M', 1)):
            pool.reload(config + f'[tenant c]\nmemory = {limit}\n')
            time.sleep(0.5)
            status, out, _ = bench.run('bigglobal', remote=pool.address, env=tenant('c'))
            report.add('7', f'64 MiB of variables in {limit}: {"work" if good_status == 0 else "out of memory"}',
                       out.strip(), status == good_status)
        # Small ones share pages, of which the first may be there already, or be new.
        taken, charged = array_sizes(bench), array_sizes(bench, remote=pool.address, env=tenant('d'))
        short = [name for name in taken if charged[name] + 2 < taken[name]]
        report.add('7', 'arrays of every shape are charged no less than the driver takes',
                   f'{sum(charged.values()):.0f} MiB for {sum(taken.values()):.0f}' +
                   ''.join(f'; {name}: {charged[name]} for {taken[name]}' for name in short), not short)


@row('26', 'frameworks run out of memory cleanly')
def frameworks(bench, report):
    program = ("import torch, sys, time\n"
               "total = torch.cuda.mem_get_info()[1]\n"
               "held = torch.zeros(total // 2, dtype=torch.uint8, device='cuda')\n"
               "a = torch.randn(2048, 2048, device='cuda')\n"
               "if sys.argv[1] == 'greedy':\n"
               "    try:\n"
               "        torch.zeros(total, dtype=torch.uint8, device='cuda')\n"
               "        print('no error')\n"
               "    except torch.OutOfMemoryError:\n"
               "        print('OutOfMemoryError', end=' ')\n"
               "for _ in range(200):\n"
               "    a = torch.nn.functional.normalize(a @ a)\n"
               "print('ok', total >> 20, float(a.norm()) > 0)\n")
    with bench.pool('[tenant t]\nmemory = 135G\nsession-memory = 45G\n') as pool:
        processes = [bench.start_path(sys.executable, '-c', program, what, remote=pool.address, env=tenant('t'))
                     for what in ('greedy', 'modest', 'modest')]
        ends = [bench.finish(process, 180) for process in processes]
        if any('No module named' in err for _, _, err in ends):
            report.add('26', 'three PyTorch clients of 45 GiB', 'not shown: there is no PyTorch here', False)
            return
        said = [out.strip() for _, out, _ in ends]
        report.add('26', 'three PyTorch clients of 45 GiB: one has OutOfMemoryError, all go on', ' / '.join(said)
                   + ''.join(err[-200:] for status, _, err in ends if status),
                   said == ['OutOfMemoryError ok 46080 True', 'ok 46080 True', 'ok 46080 True'])
