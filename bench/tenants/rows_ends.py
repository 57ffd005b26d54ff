# SPDX-License-Identifier: Apache-2.0
"""Clients that fault, are terminated or are killed."""
import json
import os
import re
import time

from pool import Failed
from rows import row


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
        report.add('8', 'class shared: the bystander gets the error within 1 s', f'{told:.2f} s', told <= 1)
        report.add('8', 'a new client is served within 2 s', f'{time.time() - fault:.2f} s', status == 0 and time.time() - fault <= 2)
        report.add('8', 'the log names client and kernel, the daemon stays',
                   next((line.split(': ', 2)[2] for line in pool.log().splitlines() if 'lost its GPU contexts' in line), '')[:90],
                   'last kernel' in pool.log() and pool.process.poll() is None and daemon == pool.process.pid)


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
        # The driver's objects for these streams, which it keeps, are created now.
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
        report.add('9', 'terminate returns when its work has ended (2 s), and its calls return 810',
                   f'{1000 * took:.0f} ms, {told}', took <= 2 and told == ['810'] and victim.pid not in listed)
        report.add('9', 'at most one second of the neighbour 5 % lower, memory is back',
                   ' / '.join(map(str, rates)) + f', {before - after} MiB', len(low) <= 1 and before <= after)


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
        # The driver's objects for these clients, which it keeps, are created in the first round.
        _, errors, before = kill_many(4)
        count, more, after = kill_many(8)
        errors += more
        report.add('10', f'{count} kills: errors of 3 neighbours 0, nothing leaked', f'{errors} errors, {before - after} MiB',
                   errors == 0 and before - after <= 0 and count >= 50)
