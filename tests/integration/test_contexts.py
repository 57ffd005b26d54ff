# SPDX-License-Identifier: Apache-2.0
"""A worker creates a context on a device when a session first uses it."""
import json
import re
import sys
import tempfile
import threading
import time
import urllib.request

from harness import PATIENCE, as_tenant, case, main, read_file, require, run, wait_until
from hostile import SUCCESS
from pool import Pool, ctl
from wire import Session, field

STACK_SIZE = 0
OUT_OF_MEMORY, DEVICE_UNAVAILABLE = 2, 46
SHARED = "[daemon]\nisolation = shared\n"
TENANTS = "[daemon]\nisolation = tenant\n[tenant a]\ndevices = 0\n[tenant b]\ndevices = 1\n"
CONTEXT = 64 << 20
# Less than the memory that something else may take.
SLACK = 8 << 20


class Contexts(Pool):
    """A daemon with software devices of which a context takes 64 MiB, and the file of their events."""

    def __init__(self, *args, config=SHARED, count=3, ms=0):
        self.events = tempfile.NamedTemporaryFile("w", suffix=".events")
        super().__init__("--metrics", "0", "--log-level", "debug", *args, config=config, tokens=False, env={
            "GPUPOOL_SOFT_DEVICES": str(count), "GPUPOOL_SOFT_CONTEXT_MEMORY": str(CONTEXT),
            "GPUPOOL_SOFT_CONTEXT_MS": str(ms), "GPUPOOL_SOFT_EVENTS": self.events.name})

    def inject(self, lines):
        self.events.write(lines)
        self.events.flush()

    def json(self, *args):
        return json.loads(ctl("-s", self.socket, *args, "--format=json"))

    def contexts(self):
        """The devices with a context of each worker that is ready, sorted; the memory of each is right."""
        workers = []
        for row in self.json("worker", "list"):
            by_gpu = re.findall(r"(\d+): (\d+)(?:\.\d)? MiB", row["context_memory_by_gpu"] or "")
            require(all(CONTEXT <= int(mib) << 20 < CONTEXT + SLACK for _, mib in by_gpu), f"{row}")
            require(len(by_gpu) * CONTEXT <= row["context_memory_bytes"] < len(by_gpu) * (CONTEXT + SLACK), f"{row}")
            if by_gpu:
                workers.append([int(gpu) for gpu, _ in by_gpu])
        return sorted(workers)

    def created(self, device):
        return len(re.findall(rf"device {device}: context of \d+ MiB created", self.log()))

    def metrics(self, name):
        address = re.search(r"^metrics at (\S+)$", read_file(self.out_path), re.M)[1]
        with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
            found = re.findall(rf'^{name}\{{gpu="(\d+)"[^}}]*\}} (\S+)$', answer.read().decode(), re.M)
        return [float(value) for _, value in sorted(found)]

    def discard(self):
        super().discard()
        self.events.close()


class Background(threading.Thread):
    """A call in a thread of its own."""

    def __init__(self, function, *args):
        super().__init__()
        self.function, self.args, self.result = function, args, None
        self.start()

    def run(self):
        self.result = self.function(*self.args)

    def wait(self):
        self.join(PATIENCE)
        require(not self.is_alive(), "the call does not return")
        return self.result


@case("a worker has contexts on the devices that sessions have used, and their memory is shown")
def _():
    with Contexts() as daemon:
        wait_until("a worker is ready", lambda: daemon.contexts() == [[0]], PATIENCE)
        run("vectoradd", remote=f"{daemon.address}/2").expect(out="vectoradd: ok\n", err="")
        require([0, 2] in daemon.contexts() and not [c for c in daemon.contexts() if 1 in c], f"{daemon.contexts()}")
        wait_until("no worker starts", lambda: "starting" not in [row["state"] for row in daemon.json("worker", "list")], PATIENCE)
        rows = daemon.json("device", "list")
        require([row["contexts"] for row in rows[1:]] == [0, 1] and rows[0]["contexts"] >= 1, f"{rows}")
        require(rows[1]["context_memory_bytes"] == 0 and CONTEXT <= rows[2]["context_memory_bytes"] < CONTEXT + SLACK, f"{rows}")
        status = daemon.json("status")
        status = status[0] if isinstance(status, list) else status
        require(status["contexts"] == sum(row["contexts"] for row in rows) and
                status["context_memory_bytes"] == sum(row["context_memory_bytes"] for row in rows), f"{status} {rows}")
        require(daemon.metrics("gpupool_device_contexts") == [row["contexts"] for row in rows], "contexts")
        require(daemon.metrics("gpupool_device_context_memory_bytes") == [row["context_memory_bytes"] for row in rows], "memory")
        top = ctl("-s", daemon.socket, "top", "-n", "1", "-d", "1")
        require("contexts 0, 0 B" in top and re.search(r"GPU 2: .*, contexts 1, 6\d(\.\d)? MiB", top), top)
        # The context stays for the next session.
        run("vectoradd", remote=f"{daemon.address}/2").expect(out="vectoradd: ok\n", err="")
        require(daemon.created(2) == 1 and daemon.created(1) == 0, daemon.log())


@case("a tenant's worker has contexts only on the tenant's devices")
def _():
    with Contexts(config=TENANTS) as daemon:
        for tenant, device in (("a", 0), ("b", 1)):
            run("vectoradd", remote=daemon.address, env=as_tenant(tenant)).expect(out="vectoradd: ok\n", err="")
            rows = [row for row in daemon.json("worker", "list") if row["tenant"] == tenant]
            require(len(rows) == 1 and re.match(rf"{device}: 6\d(\.\d)? MiB$", rows[0]["context_memory_by_gpu"]), f"{rows}")


@case("two sessions that use a second device at once share its context, and sessions of other devices do not wait")
def _():
    with Contexts(ms=5000) as daemon, Session(daemon.port) as first, Session(daemon.port) as second, Session(daemon.port) as other:
        require(other.create_context() == SUCCESS and other.map(0, other.granularity) == SUCCESS, "device 0")
        begin = time.monotonic()
        calls = [Background(session.create_context, 1, 1, 0, 1) for session in (first, second)]
        third = Background(lambda: Session(daemon.port, more=field(10, 1)))
        other.copy_in(other.base, b"1234" * 4)
        require(other.copy_out(other.base, 16) == (SUCCESS, b"1234" * 4), "a copy on device 0")
        require(daemon.json("status"), "the daemon does not answer")
        third.wait().close()
        took = time.monotonic() - begin
        require(all(call.is_alive() for call in calls), "both are done already")
        require(took < 4.5, f"device 0 and a new session waited {took:.1f} s for device 1")
        require([call.wait() for call in calls] == [SUCCESS, SUCCESS], "device 1")
        require(daemon.created(1) == 1, daemon.log())
        for session in (first, second):
            require(session.map(0, session.granularity, 1) == SUCCESS, "memory of device 1")
            session.copy_in(session.base, b"abcd")
            require(session.copy_out(session.base, 4) == (SUCCESS, b"abcd"), "a copy on device 1")


@case("a context for which there is no memory is the call's error, and the next call tries again")
def _():
    with Contexts() as daemon, Session(daemon.port) as session:
        workers = daemon.workers()
        require(session.create_context() == SUCCESS, "device 0")
        daemon.inject("1 full\n")
        for _ in range(5):
            require(session.create_context(2, 2, device=1) == OUT_OF_MEMORY, "a full device")
        result = run("vectoradd", remote=f"{daemon.address}/1")
        require(result.status != 0 and "cudaErrorMemoryAllocation" in result.out, f"{result}")
        require(len(re.findall("device 1: no context can be created", daemon.log())) == 1, daemon.log())
        require(session.map(0, session.granularity) == SUCCESS, "device 0 goes on")
        daemon.inject("1 roomy\n")
        require(session.create_context(2, 2, device=1) == SUCCESS, "device 1")
        require([0, 1] in daemon.contexts(), f"{daemon.contexts()}")
        require(set(workers) <= set(daemon.workers()) and daemon.json("device", "list")[1]["state"] == "ok", "a worker or device is lost")


@case("a device on which running workers cannot create a context is tried by a new worker, and becomes sick")
def _():
    with Contexts() as daemon, Session(daemon.port) as session:
        require(session.create_context() == SUCCESS, "device 0")
        daemon.inject("1 broken\n")
        require(session.create_context(2, 2, device=1) == DEVICE_UNAVAILABLE, "a broken device")
        require(session.map(0, session.granularity) == SUCCESS, "device 0 goes on")
        daemon.wait_for_log(r"device 1 is sick: no context can be created: CUDA error 999")
        require(len(re.findall(r"device 1: no context can be created, failure \d of 3", daemon.log())) == 3, daemon.log())
        # The worker has no context there: it goes on, and does not try again.
        daemon.inject("1 works\n")
        require(session.create_context(2, 2, device=1) == DEVICE_UNAVAILABLE, "a sick device")
        require(session.map(session.granularity, session.granularity) == SUCCESS, "device 0 goes on")
        run("vectoradd", remote=f"{daemon.address}/0").expect(out="vectoradd: ok\n", err="")
        ctl("-s", daemon.socket, "device", "enable", "1")
        require(session.create_context(2, 2, device=1) == SUCCESS, "an enabled device")
        run("vectoradd", remote=f"{daemon.address}/1").expect(out="vectoradd: ok\n", err="")


@case("a suspected device that works again stays in service")
def _():
    with Contexts() as daemon, Session(daemon.port) as session:
        daemon.inject("2 broken\n")
        require(session.create_context(device=2) == DEVICE_UNAVAILABLE, "a broken device")
        daemon.wait_for_log("device 2: no context can be created, failure 1 of 3")
        daemon.inject("2 works\n")
        # The next worker of the reserve has tried the device, and is not needed.
        wait_until("a worker has tried the device", lambda: daemon.created(2) == 1, PATIENCE)
        wait_until("the reserve is as before", lambda: not [c for c in daemon.contexts() if 2 in c], PATIENCE)
        require(session.create_context(device=2) == SUCCESS, "the device works")
        require([row["state"] for row in daemon.json("device", "list")] == ["ok"] * 3, "a device is sick")


@case("a peer that is accessed, or whose memory is copied, gets its context by that")
def _():
    with Contexts() as daemon:
        with Session(daemon.port) as session:
            granule = session.granularity
            require(session.create_context() == SUCCESS and session.map(0, granule) == SUCCESS, "device 0")
            require(session.map(granule, granule, 1) == SUCCESS, "memory of device 1")
            session.copy_in(session.base, b"from 0 to 1 and back")
            for dst, src in ((granule, 0), (64, granule)):
                session.post("gpCopyDevice", {"stream": 1, "dst": session.base + dst, "src": session.base + src, "width": 20,
                                              "height": 1, "depth": 1})
            require(session.copy_out(session.base + 64, 20) == (SUCCESS, b"from 0 to 1 and back"), f"{session.errors()}")
            require([0, 1] in daemon.contexts(), f"{daemon.contexts()}")
            require(session.ask("gpPeerAccess", {"device": 0, "peer": 2})[0] == SUCCESS, "peer access")
            require([0, 1, 2] in daemon.contexts(), f"{daemon.contexts()}")
            require(session.map(2 * granule, granule, 2) == SUCCESS, "memory of device 2")
            session.copy_in(session.base + 2 * granule, b"of 2")
            require(session.copy_out(session.base + 2 * granule, 4) == (SUCCESS, b"of 2"), f"{session.errors()}")


@case("a query of a device's memory or state creates no context")
def _():
    with Contexts() as daemon, Session(daemon.port) as session:
        require(session.create_context() == SUCCESS, "device 0")
        with_context, without = (session.ask("gpMemoryInfo", {"device": device}) for device in (0, 1))
        require(with_context[0] == without[0] == SUCCESS and with_context[1]["total"] == without[1]["total"], f"{without}")
        taken = without[1]["free"] - with_context[1]["free"]
        require(taken >= CONTEXT and without[1]["free"] == without[1]["total"], f"{with_context} {without}")
        require(session.ask("gpDeviceState", {"device": 1, "what": 0})[0] == SUCCESS, "state")
        require(not [c for c in daemon.contexts() if 1 in c], f"{daemon.contexts()}")


@case("the worker's own jobs use only devices that have a context")
def _():
    with Contexts() as daemon:
        with Session(daemon.port) as session:
            require(session.create_context() == SUCCESS, "device 0")
            require(session.ask("gpContextSetLimit", {"context": 1, "limit": STACK_SIZE, "value": 16384})[0] == SUCCESS, "limit")
        # The limit is lowered, and host memory is unregistered, while no device has work.
        for name in ("hostalias", "arrays"):
            run(name, remote=daemon.address).expect(err="")
        daemon.settle()
        require(daemon.created(0) >= 1 and daemon.created(1) == daemon.created(2) == 0, daemon.log())


if __name__ == "__main__":
    sys.exit(main())
