#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch DataLoader with four workers and pinned memory feeds a conv net's training, natively and remotely, in turns.

    bench/dataloader.py FOLDER [--turns 3] [--transport tcp,unix]

FOLDER is a release build, or an unpacked archive of scripts/pack.sh. Needs a GPU and PyTorch. Prints each run's result
and how long it took, and for each transport the native time by the remote one, as a line and as JSON. Exit status
1 if a run failed or computed something else than the native one; a missed limit is only reported.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time

from bench_sides import TRANSPORTS, Daemon, Failed, Programs, listed, run
from torch_steps import conv_net

BATCHES, BATCH, WORKERS, EPOCHS, WANTED = 64, 128, 4, 4, 0.95
LIMIT = 200


def train():
    """The program itself: its output depends on every byte that the workers made. The first epoch is not timed: it
    loads code, and the allocator gets its memory."""
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Pictures(Dataset):
        def __len__(self):
            return BATCHES * BATCH

        def __getitem__(self, index):
            value = torch.arange(index, index + 3 * 32 * 32, dtype=torch.float32)
            return (value * 0.001).sin().view(3, 32, 32), index % 10

    torch.manual_seed(1)
    torch.backends.cudnn.deterministic = True
    torch.cuda.init()
    model = conv_net(torch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loader = DataLoader(Pictures(), batch_size=BATCH, num_workers=WORKERS, pin_memory=True, persistent_workers=True)
    pinned, total, seconds = True, 0.0, []
    for _ in range(EPOCHS):
        began = time.monotonic()
        for data, wanted in loader:
            pinned = pinned and data.is_pinned() and wanted.is_pinned()
            loss = torch.nn.functional.cross_entropy(model(data.cuda(non_blocking=True)), wanted.cuda(non_blocking=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        seconds.append(time.monotonic() - began)
    print(f'{EPOCHS} times {BATCHES} batches, pinned: {pinned}, losses {total:.2f}')
    print(f'{statistics.median(seconds[1:]):.4f}')


def measure(command, envs, turns):
    """side -> (what it computed, the seconds of each turn)."""
    computed, seconds = {}, {side: [] for side in envs}
    for _ in range(turns):
        for side, env in envs.items():
            *said, took = run(command, env, LIMIT)[1].splitlines()
            print(f'{side}: {" ".join(said)}, {took} s an epoch', flush=True)
            if computed.setdefault(side, said) != said:
                raise Failed(f'{side}: two runs computed different things: {computed[side]}, {said}')
            seconds[side].append(float(took))
    return computed, seconds


def judge(computed, seconds):
    """Whether all computed the same; prints how fast each transport was."""
    native = statistics.median(seconds.pop('native'))
    for side, times in seconds.items():
        ratio = native / statistics.median(times)
        print(f'dataloader ({side}): wanted at least {WANTED}, remote {ratio:.3f} of native'
              f'{": met" if ratio >= WANTED else ": NOT met"}')
        print(json.dumps({'name': 'dataloader', 'side': side, 'unit': 'of native', 'native': native, 'remote': ratio,
                          'wanted': WANTED, 'met': ratio >= WANTED}), flush=True)
        if computed[side] != computed['native']:
            print(f'dataloader ({side}): FAILED: it computed {computed[side]}, natively {computed["native"]}')
    return all(said == computed['native'] for said in computed.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder')
    parser.add_argument('--turns', type=int, default=3)
    parser.add_argument('--transport', type=listed(TRANSPORTS), default=TRANSPORTS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix='gpupool-dataloader-') as work:
        programs = Programs(options.folder, work)
        with Daemon(programs) as daemon:
            addresses = {'tcp': daemon.tcp, 'unix': daemon.local}
            envs = {'native': programs.environment(),
                    **{side: programs.environment(daemon, addresses[side]) for side in options.transport}}
            try:
                return int(not judge(*measure([sys.executable, os.path.abspath(__file__), '--train'], envs, options.turns)))
            except Failed as error:
                print(f'dataloader: FAILED: {error}')
                return 1


if __name__ == '__main__':
    if sys.argv[1:] == ['--train']:
        train()
    else:
        sys.exit(main())
