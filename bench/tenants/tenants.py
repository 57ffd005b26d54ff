#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tenants.py FOLDER [--rows 1,5-7] [--results FILE]: what tenants get of one GPU, against what they should.

FOLDER is a build folder, or a flat one with gpupoold, libcuda.so.1, nbody, load and the programs of
tests/apps. Each row prints what is wanted and what was measured; FILE gets all as a list of
{row, wanted, measured, pass}. A row that a machine cannot show says why. Exit status 1 if one fails.
"""
import argparse
import json
import os
import re
import shutil
import signal
import statistics
import sys
import tempfile
import time

from pool import Bench, Failed, link_rate, tenant

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, '..'), os.path.join(HERE, '..', '..', 'scripts')]
import native_vs_remote
import vm

# A full grid for every GPU: 8 blocks of 256 threads fill a multiprocessor.
WIDE = ('-blocks=4224', '-threads=256')
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
        report.add('3', 'behind 5 ms blocks on all SMs, 99 % within 6 ms', f"{times['p99_us'] / 1000:.2f} ms",
                   times['p99_us'] <= 6000)


@row('4', 'kernels of a quarter of the GPU overlap')
def overlap(bench, report):
    args = ('-blocks=33', '-threads=1024', '-iterations=200000')
    with bench.pool() as pool:
        one = bench.load(pool.address, *args)['gflops']
        two = sum(result['gflops'] for result in bench.loads(*[(pool.address, None, args)] * 2))
        report.add('4', 'two clients of 33 blocks >= 1.9 of one', f'{two / one:.2f}', two >= 1.9 * one)


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
        for way in ('malloc', 'pitch', 'small', 'async', 'virtual', 'array'):
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
        report.add('7', 'managed memory', 'not remoted yet: answers NOT_SUPPORTED', False)
        # Small ones share pages, of which the first may be there already, or be new.
        taken, charged = array_sizes(bench), array_sizes(bench, remote=pool.address, env=tenant('d'))
        short = [name for name in taken if charged[name] + 2 < taken[name]]
        report.add('7', 'arrays of every shape are charged no less than the driver takes',
                   f'{sum(charged.values()):.0f} MiB for {sum(taken.values()):.0f}' +
                   ''.join(f'; {name}: {charged[name]} for {taken[name]}' for name in short), not short)


@row('9', 'a busy client is terminated')
def terminate(bench, report):
    socket = os.path.join(bench.work, 'admin.sock')
    with bench.pool('', '--admin-socket', socket) as pool:
        def ctl(*words):
            status, out, err = bench.run('gpupoolctl', '--socket', socket, '--format=json', *words)
            if status:
                raise Failed(err)
            return json.loads(out) if out else None

        def free():
            return int(bench.run('memhog', '1', remote=pool.address)[1].split()[2])
        # What the driver makes for so many streams, and keeps, it makes now.
        bench.loads(*[(pool.address, None, ('-blocks=33',))] * 2, seconds=1)
        before = free()
        begin = time.time() + 3
        neighbour = bench.start('load', f'-start={begin}', '-seconds=8', '-per-second', '-blocks=33', '-iterations=20000',
                                remote=pool.address)
        victim = bench.start('load', '-seconds=60', '-spin-us=20000', '-blocks=33', remote=pool.address)
        time.sleep(max(0, begin + 4 - time.time()))
        who = [line['id'] for line in ctl('client', 'list') if line['pid'] == victim.pid]
        asked = time.time()
        ctl('client', 'terminate', str(who[0]))
        took = time.time() - asked
        listed = [line['pid'] for line in ctl('client', 'list')]
        told = re.findall(r'"code": (\d+)', bench.finish(victim)[1])
        status, out, err = bench.finish(neighbour)
        if status:
            raise Failed(out + err)
        rates = json.loads(out)['by_second']
        usual = sum(rates[1:4]) / 3
        low = [rate for rate in rates if rate < 0.95 * usual]
        after = free()
        report.add('9', 'terminate returns when its work has ended (2 s), and it is told 810',
                   f'{1000 * took:.0f} ms, {told}', took <= 2 and told == ['810'] and victim.pid not in listed)
        report.add('9', 'at most one second of the neighbour 5 % lower, memory is back',
                   ' / '.join(map(str, rates)) + f', {before - after} MiB', len(low) <= 1 and before <= after)


@row('8', 'a fault costs its own session')
def faults(bench, report):
    with bench.pool() as pool:
        daemon = pool.process.pid
        apart = {'GPUPOOL_ISOLATION': 'process'}
        begin = time.time() + 3
        bystander = bench.start('load', f'-start={begin}', '-seconds=4', '-blocks=33', remote=pool.address, env=apart)
        time.sleep(max(0, begin + 1 - time.time()))
        for _ in range(3):
            bench.run('sticky', remote=pool.address)
        status, out, err = bench.finish(bystander)
        report.add('8', 'class process: a bystander of three faults has no failed call', 'none' if status == 0 else out + err,
                   status == 0)
        shared = bench.start('load', '-seconds=60', '-blocks=33', remote=pool.address)
        time.sleep(2)
        bench.run('sticky', remote=pool.address)
        fault = time.time()
        bench.finish(shared)
        told = time.time() - fault
        status = bench.run('vectoradd', remote=pool.address)[0]
        report.add('8', 'class shared: the bystander is told within 1 s', f'{told:.2f} s', told <= 1)
        report.add('8', 'a new client is served within 2 s', f'{time.time() - fault:.2f} s', status == 0 and time.time() - fault <= 2)
        report.add('8', 'the log names client and kernel, the daemon stays',
                   next((line.split(': ', 2)[2] for line in pool.log().splitlines() if 'lost its GPU contexts' in line), '')[:90],
                   'last kernel' in pool.log() and pool.process.poll() is None and daemon == pool.process.pid)


@row('10', 'clients are killed in mid kernel')
def kills(bench, report):
    with bench.pool() as pool:
        def free():
            out = bench.run('memhog', '1', remote=pool.address)[1]
            return int(out.split()[2])

        def kill_one():
            victim = bench.start('load', '-seconds=30', '-spin-us=2000', '-blocks=33', remote=pool.address)
            time.sleep(0.06)
            victim.kill()
            victim.communicate()

        def kill_many(seconds):
            begin = time.time() + 2
            neighbours = [bench.start('load', f'-start={begin}', f'-seconds={seconds}', '-blocks=33', '-iterations=20000',
                                      remote=pool.address) for _ in range(3)]
            count = 0
            while time.time() < begin + seconds:
                kill_one()
                count += 1
            errors = sum(bench.finish(n)[0] != 0 for n in neighbours)
            time.sleep(1.1)
            return count, errors, free()
        # What the driver makes for so many clients, and keeps, it makes in the first round.
        _, errors, before = kill_many(4)
        count, more, after = kill_many(8)
        errors += more
        report.add('10', f'{count} kills: errors of 3 neighbours 0, nothing leaked', f'{errors} errors, {before - after} MiB',
                   errors == 0 and before - after <= 0 and count >= 50)


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


@row('14', 'a container needs nothing but the address')
def container(bench, report):
    wrapper = ['unshare', '--user', '--map-root-user', '--mount', '--ipc', '--pid', '--fork', 'sh', '-c',
               'mount -t tmpfs none /dev && exec "$0" "$@"']
    with bench.pool() as pool:
        status, out, err = bench.finish(bench.start('vectoradd', remote=pool.address, wrapper=wrapper))
        if 'unshare' in err:
            report.add('14', 'works without /dev, /dev/shm and a common ipc namespace', f'not shown: {err.strip()}', False)
            return
        report.add('14', 'works without /dev, /dev/shm and a common ipc namespace', (out + err).strip(), status == 0)


@row('21', 'a virtual machine needs nothing but the address')
def virtual_machine(bench, report):
    wanted = 'in a VM without a GPU programs say and return the same'
    names = [name for name in native_vs_remote.APPS if name not in native_vs_remote.LAST] + native_vs_remote.LAST
    programs = [(name, '-compare', '-numbodies=1024') for name in ('nbody', 'nbody-shared')]
    programs += [(variant,) for name in names for variant in (name, name + '-shared')]
    programs = [program for program in programs if bench.look(program[0])]
    with bench.pool() as pool:
        remote = bench.environment(pool.address.replace('127.0.0.1', vm.HOST))
        env = {name: remote[name] for name in ('LD_LIBRARY_PATH', 'REMOTE_GPU')}
        begin = time.time()
        try:
            there = vm.run([(env, [bench.find(name), *args]) for name, *args in programs], 500,
                           log=os.path.join(bench.work, 'vm.log'))
        except vm.Cannot as cannot:
            report.add('21', wanted, f'not shown: {cannot}', False)
            return
        except vm.Broken as broken:
            raise Failed(str(broken)) from None
        took = time.time() - begin
        different, skipped, crash = [], [], []
        log = open(os.path.join(bench.work, 'different.log'), 'w')
        for (name, *args), (status, out, err, _) in zip(programs, there):
            # The software device is no device of this machine: programs reach it through the daemon here, too.
            here = bench.run(name, *args, remote=pool.address if bench.driver else None)
            if status == 77:
                skipped.append(name)
            elif here[0] < 0 <= status:
                crash.append(name)
            elif status != here[0] or (out != here[1] and name.removesuffix('-shared') not in native_vs_remote.STATUS_ONLY):
                different.append(name)
                print(name, (status, out, err), here, sep='\n', file=log)
        alike = len(programs) - len(different) - len(skipped) - len(crash)
        report.add('21', wanted, f'{alike} of {len(programs)} in {took:.0f} s'
                   + (f"; not remoted: {' '.join(skipped)}" if skipped else '')
                   + (f"; natively only they crash: {' '.join(crash)}" if crash else '')
                   + (f"; different: {' '.join(different)}" if different else ''), alike > 0 and not different)


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


def time_shares(bench, config, loads, seconds=10):
    """Which part of a lone client's rate each got."""
    with bench.pool(config) as pool:
        alone = {}
        for _, args in loads:
            if args not in alone:
                alone[args] = bench.load(pool.address, *args, env=tenant('solo'))['kernels'] / bench.seconds
        each = bench.loads(*[(pool.address, tenant(name), args) for name, args in loads], seconds=seconds)
        return [result['kernels'] / seconds / alone[args] for result, (_, args) in zip(each, loads)]


SHORT = WIDE + ('-iterations=400', '-inflight=16')
LONG = WIDE + ('-iterations=400000', '-inflight=2')
MIDDLE = WIDE + ('-iterations=8000', '-inflight=8')


@row('16', 'a cap holds when nobody else is there')
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


@row('18', 'what the scheduler costs one alone')
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


@row('22', 'bandwidth of large copies')
def copies(bench, report):
    seconds = min(bench.seconds, 3)
    for way, more in (('to the device', ()), ('to the host', ('-out',))):
        args = ('-copy-mib=256', '-pinned', *more)
        link, native = link_rate(), bench.load(None, *args, seconds=seconds)['gbytes']
        wanted = min(native, link)
        for lanes in (None, '1', '2', '3', '8'):
            # The daemon would allow four; each number of the client's is tried.
            with bench.pool('', '--lanes=16' if lanes else '--log-level=info') as pool:
                before = pool.cpu_seconds()
                rate = bench.load(pool.address, *args, env={'GPUPOOL_LANES': lanes} if lanes else None,
                                  seconds=seconds)['gbytes']
                busy = pool.cpu_seconds() - before
            measured = f'{rate:.2f} GB/s, {busy / (rate * seconds + 0.27):.3f} s of the daemon per GB'
            if lanes:
                report.add('22', f'{way}, GPUPOOL_LANES={lanes}: is recorded', measured, True)
            else:
                report.add('22', f'{way}: >= 95 % of the lesser of PCIe {native:.1f}, one connection {link:.1f}',
                           f'{rate / wanted:.2f}: {measured}', rate >= 0.95 * wanted)


@row('22t', 'bandwidth of encrypted copies')
def encrypted_copies(bench, report):
    folder, seconds = tempfile.mkdtemp(dir=bench.work), min(bench.seconds, 2)
    status, out, err = bench.run('gpupoolctl', 'cert', 'init', '127.0.0.1', '-D', folder)
    if status:
        raise Failed(f'no certificate: {out} {err}')
    files = [f'--certificate={folder}/server.pem', f'--key={folder}/server.key']
    with bench.pool('', '--lanes=16', '--listen=tls://127.0.0.1:0', *files) as pool:
        address = pool.process.stdout.readline().split()[-1]
        for way, more in (('to the device', ()), ('to the host', ('-out',))):
            for lanes in (None, '1', '4', '8'):
                env, args = {'GPUPOOL_LANES': lanes} if lanes else {}, ('-copy-mib=256', '-pinned', *more)
                clear = bench.load(pool.address, *args, env=env, seconds=seconds)['gbytes']
                before = pool.cpu_seconds()
                rate = bench.load(address, *args, env={**env, 'GPUPOOL_TLS_CA': f'{folder}/ca.pem'},
                                  seconds=seconds)['gbytes']
                busy = pool.cpu_seconds() - before
                report.add('22t', f'{way}, GPUPOOL_LANES={lanes or "as both ends choose"}: is recorded',
                           f'{rate:.2f} GB/s, {rate / (clear or 1):.2f} of {clear:.2f} in clear, '
                           f'{busy / (rate * seconds + 0.27):.3f} s of the daemon per GB', True)


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


def unstalled(bench, report, pool, program, what):
    """Short kernels of one client while another does what the driver does when no kernel runs, behind a third one's
    long kernel."""
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
    report.add('gates', f"{what} behind another's kernel of 3 s delays a third client by <= 50 ms", f'{worst:.1f} ms', worst <= 50)


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
        # As long as nobody else is there, and beside one with kernels of 20 ms.
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
    report.add('gates', "a capture in one client does not fail another's allocations", 'graphs and captures are not remoted yet', False)


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


def kept_beside(bench, pool, each, args, seconds=30, part=0.3):
    """What the second client keeps of its GB/s alone, and those: in every second part of the time the first is stopped."""
    begin = time.time() + 3
    clients = [bench.start('load', f'-seconds={seconds}', f'-start={begin}', '-per-second', *args, remote=pool.address, env=env)
               for env in each]
    for turn in range(int(seconds / part)):
        time.sleep(max(0, begin + turn * part - time.time()))
        clients[0].send_signal(signal.SIGCONT if turn % 2 else signal.SIGSTOP)
    (bad, *_), (status, out, err) = [bench.finish(client) for client in clients]
    if bad or status:
        raise Failed(out + err)
    rates = []
    for turn in range(int(seconds / part)):
        # What was on its way when the other stopped is not counted.
        ends = [end for end in json.loads(out)['ends'] if 0.05 < end - turn * part < part]
        if len(ends) < 3:
            raise Failed(f'{len(ends)} copies in {part} s')
        rates.append((len(ends) - 1) * (32 << 20) * 1e-9 / (ends[-1] - ends[0]))
    kept = statistics.mean(2 * beside / (before + after) for before, beside, after in zip(rates[::2], rates[1::2], rates[2::2]))
    return kept, statistics.mean(rates[::2])


@row('28', 'limit of link bandwidth')
def bandwidth(bench, report):
    with bench.pool('[tenant capped]\nbandwidth = 953M\n[tenant free]\n') as pool:
        for way, args in (('in', ('-copy-mib=32',)), ('out', ('-copy-mib=32', '-out'))):
            # One lane each: several fill the machine's memory, and then who takes 1 GB/s takes it from the other.
            each = [{**tenant(name), 'GPUPOOL_LANES': '1'} for name in ('capped', 'free')]
            capped = bench.loads(*[(pool.address, env, args) for env in each])[0]['gbytes']
            report.add('28', f'1 GB/s for one ({way}): 0.95 to 1.0', f'{capped:.3f} GB/s', 0.95 <= capped <= 1.0)
            # What one gets differs by more than 2 % from one process to the next: the same two, in turns.
            kept, alone = kept_beside(bench, pool, each, args)
            report.add('28', f'its neighbour keeps >= 0.98 of what it gets alone ({way})', f'{kept:.3f} of {alone:.2f} GB/s',
                       kept >= 0.98)
            # What of it is the machine's: the two share no more than that.
            each[0]['GPUPOOL_ISOLATION'] = 'process'
            kept, alone = kept_beside(bench, pool, each, args)
            report.add('28', f'the same beside one in a process of its own ({way}): is recorded', f'{kept:.3f} of {alone:.2f} GB/s',
                       True)


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


def chosen(text):
    wanted = set()
    for part in text.split(','):
        first, _, last = part.partition('-')
        wanted.update(str(n) for n in range(int(first), int(last) + 1)) if last else wanted.add(part)
    return wanted


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder')
    parser.add_argument('--rows', help='1,5-7; all without it')
    parser.add_argument('--results', help='write the list there')
    parser.add_argument('--driver', help="gpupoold's --driver")
    parser.add_argument('--seconds', type=float, default=5, help='of each measurement (5)')
    options = parser.parse_args()
    wanted = chosen(options.rows) if options.rows else None
    work = tempfile.mkdtemp(prefix='gpupool-tenants-')
    bench = Bench(options.folder, work, options.driver, options.seconds)
    report = Report()
    for number, title, function in ROWS:
        if wanted and number.rstrip('b') not in wanted and number not in wanted:
            continue
        try:
            function(bench, report)
        except Failed as failed:
            report.add(number, title, f'not measured: {failed}'.replace('\n', '; ')[:300], False)
    if options.results:
        with open(options.results, 'w') as file:
            json.dump(report.lines, file, indent=1)
            file.write('\n')
    out = os.environ.get('OUT')
    for name in os.listdir(work):
        if out and name.endswith('.log'):
            shutil.copy(os.path.join(work, name), out)
    shutil.rmtree(work)
    bad = sum(not line['pass'] for line in report.lines)
    print(f'{len(report.lines)} measured, {bad} not as wanted')
    return 1 if bad or not report.lines else 0


if __name__ == '__main__':
    sys.exit(main())
