#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch DataLoader with two workers and pinned memory feeds a training loop, natively and remotely.

    bench/dataloader.py BUILD

BUILD is a build folder, or a folder that scripts/pack.sh made. Needs a GPU and PyTorch. Prints what
each run computed and how long it took; exit status 1 if the remote run failed or computed something
else than the native one.
"""
import os
import subprocess
import sys
import time

FOLDERS = ['', 'server', 'client']
BATCHES = 64


def find(build, name):
    for folder in FOLDERS:
        path = os.path.join(build, folder, name)
        if os.path.exists(path):
            return os.path.abspath(path)
    sys.exit(f'dataloader: no {name} below {build}')


def train():
    """The program itself: its output depends on every byte that the workers made."""
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Numbers(Dataset):
        def __len__(self):
            return BATCHES * 256

        def __getitem__(self, index):
            value = torch.arange(index, index + 1024, dtype=torch.float32)
            return (value * 0.001).sin(), value.sum() % 7

    torch.manual_seed(1)
    torch.cuda.init()
    model = torch.nn.Linear(1024, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    pinned, total = True, 0.0
    began = time.monotonic()
    for data, wanted in DataLoader(Numbers(), batch_size=256, num_workers=2, pin_memory=True):
        pinned = pinned and data.is_pinned() and wanted.is_pinned()
        output = model(data.cuda(non_blocking=True)).squeeze(1)
        loss = torch.nn.functional.mse_loss(output, wanted.cuda(non_blocking=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f'{BATCHES} batches, pinned: {pinned}, losses {total:.3f}')
    print(f'{time.monotonic() - began:.2f} s', file=sys.stderr)


def run(env):
    result = subprocess.run([sys.executable, os.path.abspath(__file__), '--train'], env=env, text=True,
                            capture_output=True, timeout=300)
    return result.returncode, result.stdout.strip(), result.stderr.strip()


def main():
    build = sys.argv[1]
    plain = {name: value for name, value in os.environ.items() if name != 'REMOTE_GPU'}
    libraries = ':'.join(filter(None, [os.path.join(os.path.abspath(build), 'lib'), plain.get('LD_LIBRARY_PATH')]))
    daemon = subprocess.Popen([find(build, 'gpupoold'), '--listen', '127.0.0.1:0', '--print-address'],
                              env={**plain, 'LD_LIBRARY_PATH': libraries}, stdout=subprocess.PIPE, text=True)
    try:
        address = daemon.stdout.readline().split()[-1]
        native = run(plain)
        client = os.path.dirname(find(build, 'libcuda.so.1'))
        remote = run({**plain, 'REMOTE_GPU': address, 'LD_LIBRARY_PATH': f'{client}:{libraries}'})
    finally:
        daemon.terminate()
        daemon.wait()
    for name, (status, out, err) in ('native', native), ('remote', remote):
        print(f'{name}: {out} ({err.splitlines()[-1] if err else "no message"}), exit status {status}')
    sys.exit(remote[0] != 0 or remote[1] != native[1])


if sys.argv[1:] == ['--train']:
    train()
elif len(sys.argv) == 2:
    main()
else:
    sys.exit(__doc__.strip())
