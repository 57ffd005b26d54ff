# SPDX-License-Identifier: Apache-2.0
"""Bandwidth of copies."""
import json
import signal
import statistics
import tempfile
import time

from pool import Failed, link_rate, tenant
from rows import row


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


def kept_beside(bench, pool, each, args, seconds=30, part=0.3):
    """Returns the second client's share of its rate alone, and this rate: the first one is stopped in every second part of the time."""
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
        # Copies that were under way when the other stopped are not counted.
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
            # A client's rate differs by more than 2 % from one process to the next: the same two, in turns.
            kept, alone = kept_beside(bench, pool, each, args)
            report.add('28', f'its neighbour keeps >= 0.98 of what it gets alone ({way})', f'{kept:.3f} of {alone:.2f} GB/s',
                       kept >= 0.98)
            # The machine's part of it: separate processes share only the machine.
            each[0]['GPUPOOL_ISOLATION'] = 'process'
            kept, alone = kept_beside(bench, pool, each, args)
            report.add('28', f'the same beside one in a process of its own ({way}): is recorded', f'{kept:.3f} of {alone:.2f} GB/s',
                       True)
