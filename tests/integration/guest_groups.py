# SPDX-License-Identifier: Apache-2.0
"""Control groups (version 2) of the workers of a daemon whose group is delegated to it. For root on a machine
without such groups: test_vm.py runs this file in a virtual machine."""
import os
import struct
import subprocess
import sys

from harness import as_tenant, case, main, read_file, require, wait_until
from wire import Closed, Session, field
from workers import Workers

MIB = 1 << 20
# Of one message.
PIECE = 128 << 10
ROOT = "/sys/fs/cgroup"
GROUP = f"{ROOT}/gpupoold"
# Of the whole daemon; with sanitizers it takes a third when it is idle.
LIMIT = 640 * MIB
CONFIG = "[daemon]\npinned-memory = 1T\nhost-memory = 1G\n[tenant alice]\npinned-memory = 16G\n[tenant bob]\npinned-memory = 4M\n"


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def make_group():
    """As systemd does for Delegate=yes and MemoryMax=."""
    subprocess.run(["mount", "-t", "cgroup2", "none", ROOT], check=True)
    write(f"{ROOT}/cgroup.subtree_control", "+memory +cpu")
    os.mkdir(GROUP)
    os.setxattr(GROUP, "trusted.delegate", b"1")
    write(f"{GROUP}/memory.max", str(LIMIT))


def fill_pinned(session):
    """Acquires host memory that kernels may use, and writes to all of it, until the session ends. Returns the MiB."""
    require(session.create_context() == 0, "no context")
    result, back = session.ask("gpHostReserve", {"size": 1 << 40})
    require(result == 0, f"no range: {result}")
    for offset in range(0, 2 * LIMIT, MIB):
        try:
            if session.ask("gpHostMap", {"address": back["address"] + offset, "size": MIB, "shared": 0})[0]:
                return offset // MIB
            for at in range(offset, offset + MIB, PIECE):
                changes = struct.pack("<QII", back["address"] + at, PIECE, 0) + b"x" * PIECE
                session.post("gpHostWrite", {"changes": changes})
        except (Closed, OSError):
            return offset // MIB
    return 2 * LIMIT // MIB


@case("the kernel ends only the worker of a tenant that takes more memory than the daemon's group has")
def _():
    make_group()
    join = ("sh", "-c", f'echo $$ >{GROUP}/cgroup.procs && exec "$0" "$@"')
    with Workers(CONFIG, prefix=join) as daemon:
        bob, alice = Session(daemon.port, more=field(14, "bob")), Session(daemon.port, more=field(14, "alice"))
        require(bob.create_context() == 0, "no context")
        before = {row["tenant"]: row["pid"] for row in daemon.rows()}
        # Half of what the daemon has; set within a second.
        wait_until("the groups of both workers are limited", lambda: all(
            read_file(f"{GROUP}/worker-{before[tenant]}/memory.max") == f"{LIMIT // 2}\n" for tenant in ("alice", "bob")), 60)
        taken = fill_pinned(alice)
        require(taken * MIB < LIMIT // 2, f"{taken} MiB fit into the group")
        daemon.wait_for_log(rf"worker {before['alice']}:? .*was killed by signal 9")
        require(bob.ask("gpFence")[0] == 0, "the other tenant's session has ended")
        require({row["tenant"]: row["pid"] for row in daemon.rows()}.get("bob") == before["bob"], "another worker has ended")
        daemon.run("vectoradd", env=as_tenant("alice")).expect(out="vectoradd: ok\n", err="")
        daemon.run("vectoradd", env=as_tenant("bob")).expect(out="vectoradd: ok\n", err="")
        wait_until("the group of the ended worker is gone", lambda: not os.path.exists(f"{GROUP}/worker-{before['alice']}"), 60)
        bob.close()
        alice.close()


if __name__ == "__main__":
    sys.exit(main())
