# SPDX-License-Identifier: Apache-2.0
"""Networks and peers that fall silent (GPUPOOL_TIMEOUT). A network that drops packets is a network namespace of the
test, where nftables drops packets to or from the daemon's port after a number of bytes. A peer that acknowledges and
does nothing is a stopped relay or a stopped daemon."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

from harness import (PATIENCE, Certificates, Configured, Daemon, Encrypted, Program, Skip, case, children_of, main, read_file,
                     require, wait_until)
from pool import Pool, ctl

SECONDS = 3
LIMIT = {"GPUPOOL_TIMEOUT": str(SECONDS)}
# Without the limit, the kernel waits for an acknowledgment for 15 minutes.
SOON = 60
# A session with calls, and copies in both directions on data lanes; "calls": then calls without end.
SCRIPT = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *args):
    result = getattr(cuda, name)(*args)
    if result:
        print(name, result, flush=True)
        raise SystemExit(1)
context, address, size = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t(32 << 20)
free, total = ctypes.c_size_t(), ctypes.c_size_t()
memory = ctypes.create_string_buffer(b"x" * size.value, size.value)
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
call("cuMemAlloc_v2", ctypes.byref(address), size)
call("cuCtxSynchronize")
print("running", flush=True)
while True:
    for _ in range(2):
        call("cuMemcpyHtoD_v2", address, memory, size)
        call("cuMemcpyDtoH_v2", memory, address, size)
    call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    if memory[0] != b"x" or memory[size.value - 1] != b"x":
        print("wrong bytes", flush=True)
        raise SystemExit(1)
    if sys.argv[1] == "once":
        break
    print("copied", flush=True)
    if sys.stdin.read(1) == "":
        break
print("done", flush=True)
"""
# Connecting and TLS; the first calls; the messages between copies; the middle of a copy.
POINTS = (1, 400, 1500, 4000, 7000, 20000, 50000, 20_000_000, 50_000_000)


def start(address, *args, prefix=(), env=None, stdin=False):
    command = [*prefix, sys.executable, "-c", SCRIPT, *args]
    return Program("session", command[1:], address, path=shutil.which(command[0]) or command[0],
                   env={**LIMIT, "GPUPOOL_COMPRESSION": "off", **(env or {})}, stdin=stdin)


class Network:
    """A network namespace with nothing but its loopback interface; a context manager."""

    def __init__(self):
        for tool in ("unshare", "nsenter", "ip", "nft"):
            if not shutil.which(tool):
                raise Skip(f"needs {tool}")
        if os.geteuid() != 0:
            raise Skip("needs root, to make a network namespace")

    def __enter__(self):
        self.holder = subprocess.Popen(["unshare", "-n", "sh", "-c", "ip link set lo up && echo up && exec sleep 100000"],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if not self.holder.stdout.readline():
            text = self.holder.communicate()[1].decode().strip()
            raise Skip(f"no network namespace can be made here: {text}")
        self.prefix = ["nsenter", "-t", str(self.holder.pid), "-n"]
        made = subprocess.run([*self.prefix, "nft", "-f", "-"], input="table ip silence {\nchain input {\n"
                              "type filter hook input priority 0;\n}\n}\n", text=True, capture_output=True)
        if made.returncode:
            self.__exit__()
            raise Skip(f"nft makes no table here: {made.stderr.strip()}")
        return self

    def __exit__(self, *_):
        self.holder.kill()
        self.holder.communicate()

    def drop(self, match):
        """Drops all later packets that match, without an error message."""
        subprocess.run([*self.prefix, "nft", "add", "rule", "ip", "silence", "input", *match.split(), "drop"], check=True)

    def drop_after(self, port, size, ways=("dport", "sport")):
        """Drops all packets to and from the port, or one of both, after size bytes."""
        subprocess.run([*self.prefix, "nft", "add", "quota", "ip", "silence", "most", "{", f"over {size} bytes", "}"], check=True)
        for way in ways:
            self.drop(f"tcp {way} {port} quota name most")


def expect_lost(result, address):
    """The program's end after a network has fallen silent: one line that names address and time."""
    peer = re.escape(re.sub(r"^\w+://", "", address))
    require(result.status == 1 and re.search(rf"(no acknowledgment (from \w+://{peer}|within)|\w+://{peer}\S*: .*no acknowledgment).*"
                                             rf"(\b{SECONDS} s|TLS handshake)", result.err), str(result))
    require(result.seconds < SOON, f"it waited for {result.seconds:.0f} s: {result}")


def lose_network(daemon, network, ways, size):
    network.drop_after(daemon.port, size, ways)
    env = daemon.certificates.client() if isinstance(daemon, Encrypted) else {}
    result = start(daemon.address, "many", prefix=network.prefix, env=env, stdin=True).finish()
    if len(ways) == 2:
        expect_lost(result, daemon.address)
    # Both ends may notice the loss; the first notifies the other, unless that direction is lost.
    require(result.status == 1 and result.seconds < SOON, str(result))
    # The daemon's end of what was open has noticed, too.
    daemon.wait_for_ends()


WAYS = {"to and from": ("dport", "sport"), "to": ("dport",), "from": ("sport",)}
for scheme in ("tcp", "tls"):
    for way in WAYS:
        for point in POINTS if way == "to and from" else (1500, 20_000_000):
            @case(f"over {scheme}, packets that are dropped after {point} bytes {way} the daemon end the session in time, with "
                  "address and time")
            def _(scheme=scheme, way=way, point=point):
                with Network() as network, Certificates() as certificates:
                    more = {"env": LIMIT, "prefix": network.prefix}
                    with Encrypted(certificates, **more) if scheme == "tls" else Daemon(**more) as daemon:
                        lose_network(daemon, network, WAYS[way], point)


def flows(network, port):
    """Local ports of the connections to the daemon."""
    text = subprocess.run([*network.prefix, "cat", "/proc/net/tcp"], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^ *\d+: \w+:(\w+) \w+:(\w+) 01 ", text, re.M)
    return sorted(int(near, 16) for near, far in found if int(far, 16) == port)


@case("each connection of a session alone that falls silent ends the session, whichever it is")
def _():
    with Network() as network, Daemon(env=LIMIT, prefix=network.prefix) as daemon:
        number, count = 0, 1
        while number < count:
            program = start(daemon.address, "many", prefix=network.prefix, env={"GPUPOOL_LANES": "3"}, stdin=True)
            program.wait_for_output("running")
            program.process.stdin.write(b"x")
            program.process.stdin.flush()
            ports = wait_until("the data lanes are there", lambda: len(found := flows(network, daemon.port)) == 4 and found, PATIENCE)
            count = len(ports)
            network.drop(f"tcp dport {daemon.port} tcp sport {ports[number]}")
            network.drop(f"tcp sport {daemon.port} tcp dport {ports[number]}")
            # It continues to call until it gets the error.
            def ended():
                if program.process.poll() is None:
                    try:
                        program.process.stdin.write(b"x")
                        program.process.stdin.flush()
                    except OSError:
                        pass
                return program.process.poll() is not None
            wait_until(f"the session ends with connection {number}", ended, SOON, each=0.2)
            result = program.finish()
            # Which end is the first to know, and by which connection, is chance.
            require(result.status == 1 and re.search(r"session ended with error 46: \S", result.err), str(result))
            subprocess.run([*network.prefix, "nft", "flush", "chain", "ip", "silence", "input"], check=True)
            number += 1
        daemon.wait_for_ends()
        require(re.search(rf"no acknowledgment from tcp://127\.0\.0\.1:\d+ for {SECONDS} s", daemon.log()), "the daemon does not log the reason")


@case("at its exit a program does not wait for a network that has fallen silent")
def _():
    with Network() as network, Daemon(env=LIMIT, prefix=network.prefix) as daemon:
        program = start(daemon.address, "many", prefix=network.prefix, stdin=True)
        program.wait_for_output("running")
        network.drop_after(daemon.port, 0)
        result = program.finish()
        require(result.seconds < SOON, str(result))
        daemon.wait_for_ends()


class Relay:
    """relay.py; a context manager."""

    def __init__(self, daemon, direction, size):
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "relay.py"), str(daemon.port), direction,
             str(size)], stdout=subprocess.PIPE, text=True)
        scheme = daemon.address.split(":")[0]
        self.address = f"{scheme}://127.0.0.1:{self.process.stdout.readline().strip()}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def is_stopped(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "T"

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)


SILENT = rf"gpupool: (\S+): the daemon has not answered for {SECONDS} s, but its machine acknowledges; waiting for gpupoold to continue\n"
AGAIN = r"gpupool: \S+: the daemon answers again\n"
HANGS = f"the daemon's worker process has not answered for {SECONDS} s; waiting for it to continue"


def stop_relay(daemon, direction, size, env):
    with Relay(daemon, direction, size) as relay:
        program = start(relay.address, "once", env=env)
        wait_until("the relay stops", lambda: relay.is_stopped() or program.process.poll() is not None, PATIENCE)
        require(relay.is_stopped(), f"the relay is not stopped: {program.out()}{program.err()}")
        wait_until(f"the program reports it: {program.err()}",
                   lambda: re.search(SILENT, program.err()) or program.process.poll() is not None, PATIENCE)
        opening = program.process.poll() is not None
        if not opening:
            relay.go_on()
        result = program.finish()
        if opening:
            # Before the first answer there is nothing to lose, and an end.
            require(result.status == 1 and re.search(r"no answer within|did not finish the TLS handshake in time|first answer|in the middle of a message", result.err),
                    str(result))
            relay.go_on()
        else:
            result.expect()
            # It may be done before the library looks again.
            require(re.fullmatch(f"{SILENT}({AGAIN})?", result.err), str(result))


for scheme in ("tcp", "tls"):
    for direction in ("up", "down"):
        for point in (1, 600, 20_000_000):
            @case(f"over {scheme}, a program waits for a peer that acknowledges and does nothing after {point} bytes {direction}, and "
                  "reports it")
            def _(scheme=scheme, direction=direction, point=point):
                with Certificates() as certificates:
                    # The daemon's own limit is another matter.
                    env = certificates.client() if scheme == "tls" else {}
                    with Encrypted(certificates) if scheme == "tls" else Daemon() as daemon:
                        stop_relay(daemon, direction, point, env)
                        daemon.wait_for_ends()


@case("a daemon whose processes are stopped is waited for, over tcp and over shared memory")
def _():
    with tempfile.TemporaryDirectory() as folder:
        local = f"unix://{folder}/daemon.sock"
        with Daemon("--listen", local) as daemon:
            for address in (daemon.address, local):
                program = start(address, "many", stdin=True)
                # Its lanes are open.
                program.wait_for_output("copied")
                pids = [daemon.pid, *children_of(daemon.pid)]
                for pid in pids:
                    os.kill(pid, signal.SIGSTOP)
                try:
                    program.process.stdin.write(b"x")
                    program.process.stdin.flush()
                    wait_until("the program reports it", lambda: re.search(SILENT, program.err()), PATIENCE)
                finally:
                    for pid in pids:
                        os.kill(pid, signal.SIGCONT)
                result = program.finish().expect()
                require(re.fullmatch(f"{SILENT}({AGAIN})?", result.err), str(result))


@case("a busy GPU, a program that computes and a limit of bandwidth are no silence")
def _():
    with Configured("[daemon]\ntimeout = 1\n[tenant slow]\nbandwidth = 8M\n") as daemon:
        env = {"GPUPOOL_TIMEOUT": "1"}
        for options in (("-ms=4000",), ("-ms=50", "-rest=4000")):
            result = daemon.run("sleeper", *options, env=env)
            require(result.status == 0 and result.err == "", str(result))
        program = start(daemon.address, "once", env={**env, "GPUPOOL_TENANT": "slow"})
        result = program.finish().expect(err="")
        require(result.seconds > 4, f"there was no limit: {result}")


def hanging_metric(daemon):
    address = re.search(r"^metrics at (\S+)$", read_file(daemon.out_path), re.M)[1]
    with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
        return float(re.search(r"^gpupool_workers_hanging (\S+)$", answer.read().decode(), re.M)[1])


def hanging(socket):
    status = json.loads(ctl("-s", socket, "status", "--format=json"))
    return (status[0] if isinstance(status, list) else status)["workers_hanging"]


@case("a worker that is stopped is reported: log, status, metric, and its clients; they wait, and go on when it does")
def _():
    with Pool("--metrics", "0", tokens=False, env={"GPUPOOL_TIMEOUT": "300"}) as daemon:
        program = start(daemon.address, "many", stdin=True)
        program.wait_for_output("copied")
        require(hanging(daemon.socket) == 0 and hanging_metric(daemon) == 0, "it hangs already")
        worker, = daemon.workers()
        os.kill(worker, signal.SIGSTOP)
        begin = time.monotonic()
        try:
            program.process.stdin.write(b"x")
            program.process.stdin.flush()
            daemon.wait_for_log(rf"error: worker {worker}: no heartbeat for 5 s: .*; its sessions wait \(on-hang = report\)")
            # Of a machine that is busy the bound is another: it is what the two times of heartbeat.h add up to.
            require(time.monotonic() - begin < 10 + PATIENCE / 10, f"noticed after {time.monotonic() - begin:.1f} s")
            require(hanging(daemon.socket) == 1, "status does not count it")
            require(hanging_metric(daemon) == 1, "the metric does not count it")
            wait_until("the program reports it", lambda: HANGS in program.err(), PATIENCE)
        finally:
            os.kill(worker, signal.SIGCONT)
        daemon.wait_for_log(rf"warning: worker {worker} answers again, after \d+ s")
        wait_until("nothing hangs", lambda: hanging(daemon.socket) == 0, PATIENCE)
        result = program.finish().expect()
        require(re.fullmatch(rf"gpupool: \S+: {HANGS}\n({AGAIN})?", result.err), str(result))


@case("with on-hang = restart a worker that is stopped is replaced, and its sessions end with the reason")
def _():
    with Configured("[daemon]\non-hang = restart\n", env={"GPUPOOL_TIMEOUT": "300"}) as daemon:
        program = start(daemon.address, "many", stdin=True)
        program.wait_for_output("copied")
        worker, = daemon.workers()
        os.kill(worker, signal.SIGSTOP)
        daemon.wait_for_log(rf"error: worker {worker}: no heartbeat for 5 s: .*; it is killed, and another one starts")
        try:
            program.process.stdin.write(b"x")
            program.process.stdin.flush()
        except OSError:
            pass
        result = program.finish()
        require(result.status == 1 and re.search(r"the session ended with error 46: its worker did not answer and was killed "
                                                 r"\(on-hang = restart\)", result.err), str(result))
        daemon.check_works()
        require(daemon.workers() != [worker], "it is the same worker")
        daemon.take_idle()


@case("a worker whose sessions keep the GPU busy, compile or copy does not hang")
def _():
    with Configured("[daemon]\non-hang = restart\n") as daemon:
        result = daemon.run("sleeper", "-ms=12000")
        require(result.status == 0 and result.err == "", str(result))
        require("no heartbeat" not in daemon.log(), "it was taken for one that hangs")


@case("a time that makes no sense is named, at both ends")
def _():
    with Daemon() as daemon:
        for value in ("0", "-5", "99999999999999999999", "soon", "1.5"):
            result = daemon.run("vectoradd", env={"GPUPOOL_TIMEOUT": value})
            text = f"GPUPOOL_TIMEOUT={value}: not a whole number of seconds from 1 to 86400; use 30, or leave it out"
            require(result.status == 1 and text in result.err, str(result))
        result = daemon.run("vectoradd", env={"GPUPOOL_STALL_MS": "5000"})
        require(result.status == 0 and result.err == "gpupool: GPUPOOL_STALL_MS is the earlier form of GPUPOOL_TIMEOUT, which is in "
                "seconds: use GPUPOOL_TIMEOUT=5\n", str(result))
    with Daemon(env={"GPUPOOL_STALL_MS": "5000"}) as daemon:
        daemon.wait_for_log("warning: GPUPOOL_STALL_MS is the earlier form of GPUPOOL_TIMEOUT")
        daemon.check_works()


if __name__ == "__main__":
    sys.exit(main(at_once=6))
