# SPDX-License-Identifier: Apache-2.0
"""NCCL over two GPUs, in one process, in two, and in two of which each has a daemon of its own: nccl_cases.py NAME
runs one case, as framework_cases.py does."""
import os
import subprocess
import sys
import tempfile
import time

from framework_cases import show, two_devices

CASES = {}
# The address of another daemon, for the cases "nccl_two_daemons*"; unset natively.
SECOND_DAEMON = 'FRAMEWORKS_SECOND_DAEMON'
# Seconds for two processes, less than a case has.
LIMIT = 120


def case(function):
    CASES[function.__name__] = function
    return function


@case
def nccl_one_process():
    import torch
    devices = two_devices()
    show(torch.cuda.can_device_access_peer(0, 1), torch.cuda.can_device_access_peer(1, 0))
    for count in (1, 1000, 1 << 20, 1 << 24):
        parts = [torch.arange(count, device=device, dtype=torch.float32) % 97 * (device.index + 1) for device in devices]
        expected = sum(part.cpu() for part in parts)
        begin = time.perf_counter()
        for _ in range(3):
            outs = [torch.empty_like(part) for part in parts]
            torch.cuda.nccl.all_reduce(parts, outs)
        for device in devices:
            torch.cuda.synchronize(device)
        print(f'{count} numbers: {(time.perf_counter() - begin) / 3 * 1e3:.3f} ms', file=sys.stderr)
        show(count, *(torch.equal(out.cpu(), expected) for out in outs))
    torch.cuda.nccl.broadcast(parts)
    show(torch.equal(parts[0].cpu(), parts[1].cpu()))


def nccl_rank(rank, folder, counts=(1, 1000, 1 << 20, 1 << 24)):
    import datetime
    import torch
    import torch.distributed as distributed
    store = distributed.FileStore(os.path.join(folder, 'store'), 2)
    torch.cuda.set_device(rank)
    distributed.init_process_group('nccl', store=store, rank=rank, world_size=2, timeout=datetime.timedelta(seconds=60))
    for count in counts:
        part = torch.arange(count, device='cuda', dtype=torch.float32) % 97 * (rank + 1)
        begin = time.perf_counter()
        distributed.all_reduce(part)
        torch.cuda.synchronize()
        print(f'rank {rank}, {count} numbers: {(time.perf_counter() - begin) * 1e3:.3f} ms', file=sys.stderr)
        wanted = torch.arange(count, dtype=torch.float32) % 97 * 3
        if not torch.equal(part.cpu(), wanted):
            sys.exit(f'rank {rank}: {count} numbers are wrong')
    distributed.destroy_process_group()


@case
def nccl_two_processes():
    import torch.multiprocessing as multiprocessing
    two_devices()
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.start_processes(nccl_rank, (folder,), 2, start_method='spawn')
    show('right')


# The client's message when NCCL opens another daemon's memory.
REFUSED = 'gpupool: an IPC handle is refused: it is of another daemon'


def ranks_of_two_daemons(environments):
    """(statuses, outputs) of both, the second one with the second daemon, if the program is remote."""
    second = os.environ.get(SECOND_DAEMON)
    end = time.monotonic() + LIMIT
    with tempfile.TemporaryDirectory() as folder:
        ranks, files = [], [os.path.join(folder, f'said{rank}') for rank in range(2)]
        for rank, more in enumerate(environments):
            remote = {'REMOTE_GPU': second} if second and rank else {}
            with open(files[rank], 'wb') as file:
                ranks.append(subprocess.Popen([sys.executable, os.path.abspath(__file__), '--nccl-rank', str(rank), folder],
                                              env={**os.environ, **remote, **more}, stdin=subprocess.DEVNULL,
                                              stdout=file, stderr=subprocess.STDOUT))
        for rank in ranks:
            try:
                rank.wait(max(1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                rank.kill()
                rank.wait()
        said = []
        for path in files:
            with open(path, encoding='utf-8', errors='replace') as file:
                said.append(file.read())
    print(''.join(said), file=sys.stderr)
    return [rank.returncode for rank in ranks], said


@case
def nccl_two_daemons():
    """Right, or refused with a reason: NCCL takes both GPUs for one machine's."""
    two_devices()
    statuses, said = ranks_of_two_daemons([{'NCCL_DEBUG': 'WARN'}] * 2)
    print(f'statuses {statuses}, refused by {sum(REFUSED in words for words in said)}', file=sys.stderr)
    if any(statuses) and not any(REFUSED in words for words in said):
        sys.exit(f'statuses {statuses}, and no process printed a reason')
    show('right, or refused with a reason')


@case
def nccl_two_daemons_as_two_machines():
    """As docs/ipc.md advises."""
    two_devices()
    statuses, _ = ranks_of_two_daemons([{'NCCL_HOSTID': f'daemon-{rank}', 'NCCL_SOCKET_IFNAME': 'lo'} for rank in range(2)])
    show(*statuses)


@case
def nccl_two_daemons_by_host_memory():
    two_devices()
    statuses, _ = ranks_of_two_daemons([{'NCCL_P2P_DISABLE': '1'}] * 2)
    show(*statuses)


if __name__ == '__main__':
    if sys.argv[1:2] == ['--nccl-rank']:
        nccl_rank(int(sys.argv[2]), sys.argv[3], (1, 1000, 1 << 20))
    elif len(sys.argv) == 2 and sys.argv[1] in CASES:
        CASES[sys.argv[1]]()
    else:
        sys.exit(__doc__.strip() + '\nNAME: ' + ', '.join(CASES))
