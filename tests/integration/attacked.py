# SPDX-License-Identifier: Apache-2.0
"""Daemon for hostile sessions. A neighbor program runs throughout and checks every byte of its results. Each cause is
one line in the log. At the end the daemon has as many descriptors open, and uses as much of the GPU, as before."""
import json
import os
import random
import re
import shutil
import struct
import subprocess
import tempfile
import threading

from harness import PATIENCE, SANITIZED, Certificates, Configured, Failed, Program, base_environment, main, read_file, require, wait_until
from wire import Closed, Session, launch_values, load, saxpy

SUCCESS = 0
MIB = 1 << 20
STALL_MS = 1000
# The neighbor's pause between two rounds: it must run all the time, but not keep the machine busy.
PAUSE_SECONDS = 0.02
# The most that the supervisor's memory may grow by: open connections, memory that the allocator (or a
# sanitizer's) does not return, and the stacks that the C library caches for later threads.
GROWTH_KIB = 24 << 10


class Target(Configured):
    """A daemon on tcp, a local socket and TLS, with its admin socket."""

    def __init__(self, certificates):
        self.certificates = certificates
        self.files = tempfile.mkdtemp(prefix="gpupool-target-")
        self.local = os.path.join(self.files, "gpupool.sock")
        self.admin = os.path.join(self.files, "admin.sock")
        super().__init__("", "--listen", f"unix://{self.local}", "--listen", "tls://127.0.0.1:0", *certificates.daemon(),
                         "--admin-socket", self.admin,
                         # A sanitizer keeps freed memory for a while: that must not count as growth.
                         env={"ASAN_OPTIONS": "detect_leaks=1:quarantine_size_mb=4"})
        self.tls_address = re.search(r"^listening on (tls://\S+)$", read_file(self.out_path), re.M)[1]
        self.tls_port = int(self.tls_address.rsplit(":", 1)[1])
        self.remotes = {"tcp": self.address, "unix": f"unix://{self.local}", "tls": self.tls_address}

    def ctl(self, *args):
        done = subprocess.run([os.environ["GP_CTL"], "--socket", self.admin, "--format", "json", *args], capture_output=True,
                              text=True, env=base_environment(), timeout=60, check=True)
        return json.loads(done.stdout)

    def in_use(self):
        """Clients, and bytes of device memory."""
        return len(self.ctl("session", "list")), sum(device["memory_bytes"] for device in self.ctl("device", "list"))

    def memory_kib(self):
        return int(re.search(r"^VmRSS:\s+(\d+)", read_file(f"/proc/{self.pid}/status"), re.M)[1])

    def discard(self):
        super().discard()
        shutil.rmtree(self.files, ignore_errors=True)


class Neighbour:
    """A session by hand whose memory and kernels are checked bit by bit, and programs, one for each
    way to the daemon, while a case goes on."""

    def __init__(self, target):
        self.target, self.problem, self.rounds = target, None, 0
        self.over = threading.Event()

    def work(self):
        chance = random.Random(1)
        kept = chance.randbytes(MIB)
        try:
            with Session(self.target.port, program="neighbour") as session:
                session.create_context()
                require(session.map(0, 4 * MIB) == SUCCESS, "map")
                session.copy_in(session.base, kept)
                result, _ = load(session, 40, saxpy())
                require(result == SUCCESS, f"load: {result}")
                while True:
                    self.work_once(session, chance)
                    if self.over.wait(PAUSE_SECONDS):
                        break
                require(session.copy_out(session.base, MIB) == (SUCCESS, kept), "the data that was written first has changed")
                require(session.errors() == [], f"errors: {session.errors()}")
        except (Failed, Closed, OSError) as error:
            self.problem = f"round {self.rounds}: {error}"

    def work_once(self, session, chance):
        """y = 2 x + y, of whole numbers, so that every bit is known."""
        count = 1000
        x, y = ([chance.randrange(1 << 20) for _ in range(count)] for _ in range(2))
        at = session.base + 2 * MIB
        session.copy_in(at, struct.pack(f"<{count}f", *x))
        session.copy_in(at + MIB, struct.pack(f"<{count}f", *y))
        params = struct.pack("<ifQQ", count, 2.0, at, at + MIB)
        session.post("gpLaunch", launch_values(params=params, grid_x=8, block_x=128))
        right = struct.pack(f"<{count}f", *(2 * a + b for a, b in zip(x, y)))
        require(session.copy_out(at + MIB, len(right)) == (SUCCESS, right), "a kernel's result is wrong")
        self.rounds += 1

    def start_program(self, scheme):
        env = self.target.certificates.client() if scheme == "tls" else None
        return Program("threads", (), self.target.remotes[scheme], env=env)

    def __enter__(self):
        self.workers = self.target.workers()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()
        self.programs = [self.start_program(scheme) for scheme in self.target.remotes]
        # The case may open many connections: the programs must be connected before.
        self.target.wait_for_log(r"session \d+ \(.*\): open from", count=1 + len(self.programs))
        return self

    def __exit__(self, kind, error, trace):
        self.over.set()
        self.thread.join(PATIENCE)
        results = [program.finish() for program in self.programs]
        if kind is not None:
            return
        require(not self.thread.is_alive() and not self.problem, f"the neighbour: {self.problem or 'hangs'}")
        for result in results:
            result.expect(out="threads: ok\n", err="")
        require(self.target.workers() == self.workers, "the worker was replaced")
        self.target.settle(20)
        wait_until("nothing is in use any more", lambda: self.target.in_use() == (0, 0), 60)


def endings(target):
    """Session -> why it ended, of all that have."""
    return dict(re.findall(r"gpupoold\[\d+\]: \w+: session (\d+) \(.*\): closed: (.*?);", target.log(), re.M))


def find_ending_lines(target, session):
    """The log lines that report the session's end."""
    return [line for line in target.log().splitlines() if f": session {session} (" in line and "): closed: " in line]


def expect_one_ending(target, session, reason=r".*"):
    lines = wait_until(f"the log reports the end of session {session}", lambda: find_ending_lines(target, session), 60)
    require(len(lines) == 1, f"not one line of session {session}: {lines}")
    found = re.search(r"\): closed: (.*?);", lines[0])
    require(found and re.match(reason, found[1]), f"expected {reason!r}: {lines}")


certificates = None


class Attacked:
    """A daemon for one case, as the log lines of one address are limited, with the neighbor running.
    After the case the daemon must serve, with as many descriptors and as much memory as before."""

    def __enter__(self):
        self.target = Target(certificates)
        self.memory = self.target.memory_kib()
        self.neighbour = Neighbour(self.target)
        self.neighbour.__enter__()
        # For sessions from now on: the neighbour may be slow.
        self.target.reload(f"[daemon]\ntimeout = {STALL_MS // 1000}\n")
        return self.target

    def __exit__(self, kind, error, trace):
        try:
            self.neighbour.__exit__(kind, error, trace)
            if kind is None:
                now = self.target.memory_kib()
                require(now - self.memory < GROWTH_KIB, f"the supervisor has grown from {self.memory} to {now} KiB")
                self.target.reload("")
                self.target.check_works()
        except Failed as failed:
            kind, error, trace = Failed, failed, failed.__traceback__
            raise
        finally:
            self.target.__exit__(kind, error, trace)


def run():
    """The cases, with certificates for the daemons of all of them."""
    global certificates
    with Certificates() as certificates:
        return main()
