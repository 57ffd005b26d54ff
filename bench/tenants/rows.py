# SPDX-License-Identifier: Apache-2.0
"""The common parts of the rows of tenants.py: the list of them, the report, and loads."""
from pool import tenant

# A full grid for every GPU: 8 blocks of 256 threads fill a multiprocessor.
WIDE = ('-blocks=4224', '-threads=256')
# Kernels of 50 us, of 50 ms, and of 1 ms.
SHORT = WIDE + ('-iterations=400', '-inflight=16')
LONG = WIDE + ('-iterations=400000', '-inflight=2')
MIDDLE = WIDE + ('-iterations=8000', '-inflight=8')
ROWS = []


def row(number, title):
    def add(function):
        ROWS.append((number, title, function))
        return function
    return add


class Report:
    def __init__(self):
        self.lines = []

    def add(self, number, wanted, measured, good):
        self.lines.append({'row': number, 'wanted': wanted, 'measured': measured, 'pass': good})
        print(f"{number:>4}  {'pass' if good else 'FAIL':4}  {wanted:58}  {measured}", flush=True)


def jain(values):
    return sum(values) ** 2 / (len(values) * sum(v * v for v in values))


def per_cent(values):
    return ' / '.join(f'{100 * v:.1f} %' for v in values)


def time_shares(bench, config, loads, seconds=10):
    """Which part of a lone client's rate each got."""
    with bench.pool(config) as pool:
        alone = {}
        for _, args in loads:
            if args not in alone:
                alone[args] = bench.load(pool.address, *args, env=tenant('solo'))['kernels'] / bench.seconds
        each = bench.loads(*[(pool.address, tenant(name), args) for name, args in loads], seconds=seconds)
        return [result['kernels'] / seconds / alone[args] for result, (_, args) in zip(each, loads)]
