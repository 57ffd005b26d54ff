# SPDX-License-Identifier: Apache-2.0
"""Tenants by configuration: quotas over all their sessions, parts of devices, and changes at run time."""
import os
import re
import signal
import struct
import subprocess
import sys
import time

from harness import PATIENCE, SOFTWARE, Configured, Daemon, as_tenant, base_environment, case, main, require, run, software_env, wait_until
from limiting import refusal
from wire import BULK, Conn, Session, field, hello, message, preamble, record

UNIT = 2  # MiB, to which shares are rounded


def read_total(daemon, name):
    """MiB that the tenant's programs see."""
    result = daemon.run("quota", env=as_tenant(name)).expect()
    return int(re.match(r"device (\d+) MiB", result.out)[1])


def refused(daemon, words, env=None, remote=None):
    result = run("vectoradd", remote=remote or daemon.address, env=env)
    require(result.status == 1 and words in result.err, f"expected {words!r}: {result}")


@case("a tenant's memory is a size, a share, or all of it")
def _():
    config = "[tenant half]\nmemory = 50%\n[tenant small]\nmemory = 64M\n"
    with Configured(config, env=software_env(GPUPOOL_SOFT_MEMORY="512M")) as daemon:
        whole = read_total(daemon, "default")
        require(whole == 512 or not SOFTWARE, f"{whole} MiB")
        for name, mib in (("half", whole // 2 // UNIT * UNIT), ("small", 64), ("default", whole)):
            result = daemon.run("quota", env=as_tenant(name)).expect(err="")
            require(result.out.startswith(f"device {mib} MiB, total {mib} MiB"), str(result))


@case("a tenant's memory limit applies to all its sessions, of both classes, and to no other tenant")
def _():
    config = "[tenant a]\nmemory = 128M\n[tenant b]\nmemory = 128M\n"
    with Configured(config) as daemon:
        holder = daemon.start("memhog", "96", env=as_tenant("a"), stdin=True)
        holder.wait_for_output("free after")
        for isolation in ("shared", "process"):
            result = daemon.run("memhog", "64", env=as_tenant("a", GPUPOOL_ISOLATION=isolation))
            require("cudaErrorMemoryAllocation" in result.out, f"more than its tenant's quota: {result}")
            daemon.run("memhog", "64", env=as_tenant("b", GPUPOOL_ISOLATION=isolation)).expect()
        holder.kill()
        wait_until("its memory is the tenant's again",
                   lambda: daemon.run("memhog", "120", env=as_tenant("a")).status == 0, 20)


@case("a fault of another tenant's kernel ends a session without a name of that tenant, which its own sessions and the log have")
def _():
    with Configured("[daemon]\nisolation = shared\nquarantine = 0\n[tenant alice]\n[tenant bob]\n") as daemon:
        idle = {name: daemon.start("memhog", "8", env=as_tenant(name), stdin=True) for name in ("alice", "bob")}
        for program in idle.values():
            program.wait_for_output("free after")
        daemon.run("sticky", env=as_tenant("bob")).expect()
        told = {name: program.finish() for name, program in idle.items()}
        ended = r"gpupool: \S+: the session ended with error 700: CUDA_ERROR_ILLEGAL_ADDRESS \(700\), after work of "
        named = r"session \d+ \(\S+ \d+ sticky\), last kernel \S+"
        require(re.fullmatch(ended + "another tenant\n", told["alice"].err), str(told["alice"]))
        require(re.fullmatch(ended + named + "\n", told["bob"].err), str(told["bob"]))
        daemon.wait_for_log("has lost its GPU contexts: .*, after work of " + named)


@case("memory grows and shrinks while the tenant's sessions run")
def _():
    with Configured("[tenant a]\nmemory = 64M\n") as daemon:
        holder = daemon.start("memhog", "32", env=as_tenant("a"), stdin=True)
        holder.wait_for_output("free after")
        require(daemon.run("memhog", "128", env=as_tenant("a")).status == 1, "more than the quota")
        daemon.reload("[tenant a]\nmemory = 256M\n")
        daemon.run("memhog", "128", env=as_tenant("a")).expect()
        daemon.reload("[tenant a]\nmemory = 16M\n")
        require(daemon.run("memhog", "8", env=as_tenant("a")).status == 1, "more than the new quota")
        # It keeps its memory, and ends without an error.
        holder.finish().expect()
        daemon.run("memhog", "8", env=as_tenant("a")).expect()


@case("a configuration that cannot be used is named, and what held before holds on")
def _():
    with Configured("[tenant a]\nmemory = 64M\n") as daemon:
        daemon.reload("[tenant a]\nmemory = 64Q\n", r'reload failed, nothing changed: \S+\.conf:2: .*"64Q"')
        require(read_total(daemon, "a") == 64, "another quota is active")
        os.rename(daemon.config.name, daemon.config.name + ".away")
        os.kill(daemon.pid, signal.SIGHUP)
        daemon.wait_for_log(r"reload failed, nothing changed: .*No such file")
        os.rename(daemon.config.name + ".away", daemon.config.name)
        require(read_total(daemon, "a") == 64, "another quota is active")
    result = subprocess.run([os.environ["GP_DAEMON"], "--listen", "127.0.0.1:0", "--config", "/nonexistent"],
                            capture_output=True, text=True, timeout=60, env=base_environment(), check=False)
    require(result.returncode == 1 and "/nonexistent" in result.stderr, f"{result}")
    with Daemon() as daemon:
        os.kill(daemon.pid, signal.SIGHUP)
        daemon.wait_for_log(r"reload failed, nothing changed: no configuration file: \S+ does not exist; use --config")
        daemon.check_works()


@case("the tenant of a session: named, by user, or default; a refused client gets the reason")
def _():
    user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    config = (f"[tenant mine]\nmemory = 64M\nusers = {user}\n[tenant far]\naddresses = 10.0.0.0/8\n"
              "[tenant closed]\nsessions = 0\n[tenant one]\nsessions = 1\nmemory = 32M\n")
    with Configured(config) as daemon:
        require(read_total(daemon, "") == 64, "not the tenant of the user")
        require(read_total(daemon, "one") == 32, "not the tenant that was named")
        refused(daemon, "nobody", env=as_tenant("nobody"))
        refused(daemon, "far", env=as_tenant("far"))
        refused(daemon, "closed", env=as_tenant("closed"))
        holder = daemon.start("memhog", "1", env=as_tenant("one"), stdin=True)
        holder.wait_for_output("free after")
        refused(daemon, "tenant one has reached its limit of 1 sessions", env=as_tenant("one"))
        # One program after the other needs no pause in between.
        holder.finish().expect()
        for _ in range(5):
            daemon.run("vectoradd", env=as_tenant("one")).expect()


def wait_in_queue(daemon, tenant, number):
    """The connection of a client that waits, with this number of its own."""
    conn = Conn(daemon.port, PATIENCE)
    conn.send(preamble() + message(hello(more=field(14, tenant) + field(17, number))))
    return conn


@case("the queue has 64 numbers for a tenant with any sessions; a later client gets none")
def _():
    with Configured("[tenant one]\nsessions = 1\n[tenant other]\nsessions = 1\n") as daemon:
        holders = [daemon.start("memhog", "1", env=as_tenant(name), stdin=True) for name in ("one", "other")]
        for holder in holders:
            holder.wait_for_output("free after")
        why, said = "tenant one has reached its limit of 1 sessions; ", []
        for first in range(1, 66, 13):
            group = [wait_in_queue(daemon, "one", number) for number in range(first, first + 13)]
            for conn in group:
                said.append(refusal(conn))
                conn.close()
        require(sorted(said) == sorted([f"{why}position {place} in the queue" for place in range(1, 65)] +
                                       [f"{why}not queued: the queue is full (64 per tenant, 512 in all)"]), f"{said}")
        with wait_in_queue(daemon, "other", 100) as conn:
            require(refusal(conn).endswith("; position 1 in the queue"), "another tenant's is full, too")
        for holder in holders:
            holder.finish().expect()


@case("a device in four parts: each has a quarter, the fifth session is refused in words")
def _():
    config = "[device *]\nvirtual-number = 4\n"
    with Daemon(env=software_env(GPUPOOL_SOFT_MEMORY="512M")) as daemon:
        whole = read_total(daemon, "")
    with Configured(config, env=software_env(GPUPOOL_SOFT_MEMORY="512M")) as daemon:
        holders = [daemon.start("memhog", "100", stdin=True) for _ in range(4)]
        for holder in holders:
            holder.wait_for_output("free after")
        refused(daemon, "all 4 virtual devices of device 0 are in use")
        refused(daemon, "device 2, which is part 3 of 4 of device 0, is in use", remote=daemon.address + "/2")
        refused(daemon, "unknown device 4: the daemon has 4, counted from 0", remote=daemon.address + "/4")
        holders.pop().kill()
        result = daemon.run("quota").expect()
        require(result.out.startswith(f"device {whole // 4 // UNIT * UNIT} MiB, total {whole // 4 // UNIT * UNIT} MiB"), str(result))
        for holder in holders:
            holder.finish().expect()
        # The number changes without a restart.
        daemon.reload("[device *]\nvirtual-number = 2\n")
        result = daemon.run("quota").expect()
        require(result.out.startswith(f"device {whole // 2 // UNIT * UNIT} MiB, total {whole // 2 // UNIT * UNIT} MiB"), str(result))


@case("a limit of bandwidth holds in both directions, for its tenant only, and can be lifted live")
def _():
    with Configured("[tenant slow]\nbandwidth = 256K\n") as daemon:
        result = daemon.run("vectoradd", env=as_tenant("slow")).expect(out="vectoradd: ok\n")
        # 400,000 bytes to the device and 200,000 back; the last piece need not be waited for.
        require(result.seconds > 2.1, f"faster than its limit: {result}")
        slow = daemon.start("vectoradd", env=as_tenant("slow"))
        daemon.run("vectoradd").expect()
        require(slow.process.poll() is None, "a neighbour waited for it")
        slow.finish().expect()
        daemon.reload("[tenant slow]\n")
        require(daemon.run("vectoradd", env=as_tenant("slow")).expect().seconds < result.seconds, "the limit stays")


@case("a client that waits under a limit of bandwidth continues when the limit is removed")
def _():
    with Configured("[tenant slow]\nbandwidth = 64K\n") as daemon:
        # 600,000 bytes each.
        programs = [daemon.start("vectoradd", env=as_tenant("slow")) for _ in range(4)]
        daemon.wait_for_log("open from", count=4)
        time.sleep(0.3)
        require(all(program.process.poll() is None for program in programs), "there is no limit")
        daemon.reload("[tenant slow]\n")
        begin = time.monotonic()
        for program in programs:
            program.finish().expect(out="vectoradd: ok\n")
        seconds = time.monotonic() - begin
        require(seconds < 4, f"{seconds:.1f} s after the limit was lifted")


@case("bytes that were announced and do not come cost their tenant no bandwidth")
def _():
    with Configured("[tenant slow]\nbandwidth = 10M\n") as daemon:
        session = Session(daemon.port, more=field(14, "slow"))
        session.create_context()
        size = (1 << 32) - 16
        values = {"context": 1, "image": 77, "sha256": bytes(32), "size": size, "options": b""}
        refused_load = record("gpImageLoad", values, 9, 1, BULK)
        session.lane.send(struct.pack("<II", len(refused_load), size) + refused_load)
        # The daemon has come to it.
        time.sleep(0.3)
        daemon.run("vectoradd", env=as_tenant("slow"), seconds=20).expect(out="vectoradd: ok\n")
        session.close()
        daemon.wait_for_log("closed: ", count=2)
        daemon.run("vectoradd", env=as_tenant("slow"), seconds=20).expect(out="vectoradd: ok\n")


@case("devices that are not exported, or not the tenant's, are not there")
def _():
    with Configured("[tenant none]\ndevices = 1\n") as daemon:
        refused(daemon, "no device is available to tenant none", env=as_tenant("none"))
        refused(daemon, "no device is available to tenant none", env=as_tenant("none"), remote=daemon.address + "/0")
        daemon.check_works()
    with Configured("[device 0]\nvisible = no\n") as daemon:
        refused(daemon, "no device is available to tenant default")


@case("a tenant with isolation = process gets processes")
def _():
    with Configured("[tenant apart]\nisolation = process\n") as daemon:
        program = daemon.start("sleeper", "-ms=500", env=as_tenant("apart", GPUPOOL_ISOLATION="shared"))
        program.wait_for_output("running")
        require(len(daemon.workers()) == 2, "there is no process of its own")
        program.finish().expect()
        wait_until("it ends", lambda: len(daemon.workers()) == 1, 60)


if __name__ == "__main__":
    sys.exit(main())
