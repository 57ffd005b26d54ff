# SPDX-License-Identifier: Apache-2.0
"""Places: how many workers may have a context on a device, who gets one, and what percentages of memory are of; the reserve
of each device, and that one tenant cannot use it up."""
import os
import signal
import sys
import threading
import time

from harness import PATIENCE, SANITIZED, SOFTWARE, as_tenant, case, main, require, wait_until
from wire import Conn, field, hello, message, preamble, recv_reply
from workers import Workers, stay

SOON = 30 if SANITIZED else 2
OK = "vectoradd: ok\n"
MANY = "each has its own variable and memory\ncopies between them\nmanydevices: ok\n"
NAMES = ("alice", "bob", "carol", "dave")
TENANTS = "".join(f"[tenant {name}]\n" for name in NAMES)
# The driver's own start, which a first call without a reserve contains.
START_MS = 300
START = {"GPUPOOL_SOFT_START_MS": str(START_MS)}
# From the start of a program to its end, beyond the same of a program whose worker runs.
FIRST_CALL = 3 if SANITIZED else 0.5
TWO = {"GPUPOOL_SOFT_DEVICES": "2"}


def full(number, device=0):
    return f"device {device} has no place for another worker: workers-per-device = {number}, all in use"


def held_back(number, device=0):
    return (f"device {device} has no place for another worker of this tenant: workers-per-device = {number}, "
            "the free ones held back for tenants that have none")


def limit(number, more="", tenants=TENANTS):
    return f"[daemon]\nworkers-per-device = {number}\n{more}{tenants}"


def waiting(daemon):
    rows = daemon.ctl("status")
    return (rows[0] if isinstance(rows, list) else rows)["clients_waiting"]


def in_queue(daemon, tenant):
    """Clients whose first request has been refused, and which have sent another one."""
    row, = (row for row in daemon.ctl("tenant", "list") if row["tenant"] == tenant)
    return row["clients_waiting"]


def on_device(daemon, device, tenant, **more):
    return stay(daemon, tenant, REMOTE_GPU=f"{daemon.address}/{device}", **more)


@case("a session without a place gets that of another tenant's worker that has no session")
def _():
    with Workers(limit(2)) as daemon:
        alice = stay(daemon, "alice")
        daemon.run("vectoradd", env=as_tenant("bob")).expect(out=OK, err="")
        require(daemon.list() == [("tenant", "alice", 1), ("tenant", "bob", 0)], str(daemon.list()))
        carol = stay(daemon, "carol")
        require(daemon.list() == [("tenant", "alice", 1), ("tenant", "carol", 1)], str(daemon.list()))
        require("ends: another worker needs its place on device 0" in daemon.log(), "it is not logged")
        for program in (alice, carol):
            program.finish().expect()


@case("where all workers have sessions, a client is refused with the reason, or waits for a place")
def _():
    with Workers(limit(2)) as daemon:
        alice, bob = stay(daemon, "alice"), stay(daemon, "bob")
        result = daemon.run("vectoradd", env=as_tenant("carol"))
        require(result.status != 0 and f"refused: {full(2)}" in result.err, str(result))
        # A tenant that has a worker needs none.
        daemon.run("vectoradd", env=as_tenant("bob")).expect(out=OK, err="")
        programs = [daemon.start("vectoradd", env=as_tenant("carol", GPUPOOL_WAIT="60")) for _ in range(3)]
        wait_until("they are in the queue", lambda: in_queue(daemon, "carol") == 3, PATIENCE)
        require(waiting(daemon) == 3, "the status has another number")
        bob.finish().expect()
        for program in programs:
            result = program.finish().expect(out=OK)
            require(full(2) in result.err and "position 1 in the queue" in result.err, str(result))
        require(daemon.list() == [("tenant", "alice", 1), ("tenant", "carol", 0)], str(daemon.list()))
        alice.finish().expect()


@case("workers of sessions count, and so does the reserve, which gives its places away")
def _():
    with Workers(limit(2, "ready-workers = 1\n")) as daemon:
        daemon.reserve = 1
        wait_until("both places have a spare worker", lambda: daemon.ready() == 2, PATIENCE)
        one = stay(daemon, "alice", GPUPOOL_ISOLATION="session")
        other = stay(daemon, "bob", GPUPOOL_ISOLATION="session")
        require(daemon.list() == [("session", "alice", 1), ("session", "bob", 1)], str(daemon.list()))
        result = daemon.run("vectoradd", env=as_tenant("alice", GPUPOOL_ISOLATION="session"))
        require(result.status != 0 and f"refused: {full(2)}" in result.err, str(result))
        # The process of a session that has ended leaves its place.
        late = daemon.start("vectoradd", env=as_tenant("carol", GPUPOOL_WAIT="60"))
        wait_until("it waits", lambda: waiting(daemon) == 1, PATIENCE)
        one.finish().expect()
        late.finish().expect(out=OK)
        other.finish().expect()
        wait_until("the reserve is filled again", lambda: daemon.ready() == 1, PATIENCE)


@case("a place that becomes free is for the first in the queue, and not for a later client")
def _():
    with Workers(limit(1)) as daemon:
        alice = stay(daemon, "alice")
        first = daemon.start("memhog", "16", stdin=True, env=as_tenant("bob", GPUPOOL_WAIT="60"))
        wait_until("it waits", lambda: waiting(daemon) == 1, PATIENCE)
        wait_until("it is in the queue", lambda: in_queue(daemon, "bob") == 1, PATIENCE)
        second = daemon.start("vectoradd", env=as_tenant("carol", GPUPOOL_WAIT="60"))
        wait_until("both wait", lambda: waiting(daemon) == 2, PATIENCE)
        alice.finish().expect()
        first.wait_for_output("free after")
        require(daemon.list() == [("tenant", "bob", 1)], str(daemon.list()))
        first.finish().expect()
        second.finish().expect(out=OK)


@case("each device has places of its own, which its section may set")
def _():
    text = f"[daemon]\nworkers-per-device = 3\n[device 1]\nworkers-per-device = 1\n{TENANTS}"
    with Workers(text, env=TWO) as daemon:
        programs = [on_device(daemon, 1, "bob"), on_device(daemon, 0, "alice"), on_device(daemon, 0, "carol")]
        rows = daemon.ctl("device", "list")
        require([(row["contexts"], row["contexts_max"]) for row in rows] == [(2, 3), (1, 1)], str(rows))
        result = daemon.run("vectoradd", env=as_tenant("dave", REMOTE_GPU=f"{daemon.address}/1"))
        require(result.status != 0 and f"refused: {full(1, 1)}" in result.err, str(result))
        daemon.run("vectoradd", env=as_tenant("dave", REMOTE_GPU=f"{daemon.address}/0")).expect(out=OK, err="")
        for program in programs:
            program.finish().expect()


@case("a session's first use of a second device needs a place there, and is out of memory without")
def _():
    text = f"[daemon]\nworkers-per-device = 3\n[device 1]\nworkers-per-device = 1\n{TENANTS}"
    with Workers(text, env=TWO) as daemon:
        bob = on_device(daemon, 1, "bob")
        result = daemon.run("manydevices", "2", env=as_tenant("alice"))
        require(result.status != 0 and "cudaErrorMemoryAllocation" in result.out, str(result))
        daemon.wait_for_log(rf"warning: worker \d+: a session gets CUDA_ERROR_OUT_OF_MEMORY: {full(1, 1)}")
        bob.finish().expect()
        # Bob's worker, which has no session any more, ends.
        daemon.run("manydevices", "2", env=as_tenant("alice")).expect(out=MANY, err="")
        wait_until("it is gone", lambda: [row[1] for row in daemon.list()] == ["alice"], SOON)


@case("the reserve has a worker for each device, also for tenants that may not use all")
def _():
    text = "[daemon]\nready-workers = 1\n[tenant alice]\n[tenant bob]\ndevices = 1\n"
    with Workers(text, env=TWO) as daemon:
        daemon.reserve = 1
        # One of the first device is for the first session.
        wait_until("three are ready", lambda: daemon.ready() == 3, PATIENCE)
        known = set(daemon.workers())
        programs = [stay(daemon, "bob"), stay(daemon, "alice")]
        serving = {row["pid"] for row in daemon.rows() if row["tenant"]}
        require(len(serving) == 2 and serving <= known, "a worker was started for a tenant")
        wait_until("one for each is ready", lambda: daemon.ready() == 2, PATIENCE)
        for program in programs:
            program.finish().expect()


@case("a device that clients do not see has no reserve")
def _():
    with Workers("[daemon]\nready-workers = 1\n[device 0]\nvisible = no\n[tenant alice]\n", env=TWO) as daemon:
        daemon.reserve = 1
        wait_until("the reserve is on the other", lambda: [row["contexts"] for row in daemon.ctl("device", "list")] == [2, 0], PATIENCE)


@case("the first session of the only worker gets the spare one, also on another device, if there is a place")
def _():
    with Workers("[device 1]\nworkers-per-device = 1\n", env=TWO) as daemon:
        known = daemon.workers()
        one = on_device(daemon, 1, "default")
        require(daemon.workers() == known, "another worker was started")
        result = daemon.run("vectoradd", env={"GPUPOOL_ISOLATION": "session", "REMOTE_GPU": f"{daemon.address}/1"})
        require(result.status != 0 and f"refused: {full(1, 1)}" in result.err, str(result))
        one.finish().expect()


@case("a worker that is killed while a session is handed to it is replaced, and its client notices nothing")
def _():
    with Workers("[daemon]\nready-workers = 1\n[tenant alice]\n") as daemon:
        daemon.reserve = 1
        wait_until("two are ready", lambda: daemon.ready() == 2, PATIENCE)
        known = daemon.workers()
        for pid in known:
            os.kill(pid, signal.SIGSTOP)
        program = daemon.start("vectoradd", env=as_tenant("alice"))
        row, = wait_until("it has a worker", lambda: [row for row in daemon.rows() if row["tenant"]], PATIENCE)
        os.kill(row["pid"], signal.SIGKILL)
        for pid in known:
            if pid != row["pid"]:
                os.kill(pid, signal.SIGCONT)
        program.finish().expect(out=OK)


@case("a tenant that has just taken a worker of the reserve does not take the last one")
def _():
    with Workers(f"[daemon]\nready-workers = 1\n{TENANTS}", env={"GPUPOOL_SOFT_START_MS": "0"}) as daemon:
        daemon.reserve = 1
        # Whether it has just done so is a matter of time.
        for _ in range(10):
            wait_until("two are ready", lambda: daemon.ready() == 2, PATIENCE)
            time.sleep(1)
            begin = time.monotonic()
            programs = [stay(daemon, "alice", GPUPOOL_ISOLATION="session")]
            wait_until("two are ready again", lambda: daemon.ready() == 2, PATIENCE)
            spare = {row["pid"] for row in daemon.rows() if row["class"] == "reserve"}
            programs.append(stay(daemon, "alice", GPUPOOL_ISOLATION="session"))
            seconds = time.monotonic() - begin
            used = {row["pid"] for row in daemon.rows() if row["class"] == "session"}
            for program in programs:
                program.finish().expect()
            if seconds < 0.7:
                break
        require(seconds < 0.7, f"the machine is too slow for this test: {seconds} s")
        require(not used & spare, "the last one is taken")


@case("the reserve is filled while workers of sessions start")
def _():
    with Workers(f"[daemon]\nready-workers = 1\n{TENANTS}", env={"GPUPOOL_SOFT_START_MS": "500"}) as daemon:
        daemon.reserve = 1
        wait_until("two are ready", lambda: daemon.ready() == 2, PATIENCE)
        programs = [daemon.start("memhog", "16", stdin=True, env=as_tenant("alice", GPUPOOL_ISOLATION="session")) for _ in range(4)]

        def starting():
            return [row["pid"] for row in daemon.rows() if row["class"] == "session" and row["state"] == "starting"]
        # One gets a worker of the reserve; another one may, too, if they come slowly.
        pid = wait_until("a worker starts for her", starting, SOON)[0]
        os.kill(pid, signal.SIGSTOP)
        # Both ready workers are taken, and the reserve keeps none for the first session any more.
        for tenant in ("bob", "carol"):
            wait_until("one is ready", daemon.ready, PATIENCE)
            programs.append(stay(daemon, tenant))
        wait_until("another one is ready", lambda: daemon.ready() == 1, SOON)
        require(pid in starting(), "the worker of the session is ready, too")
        os.kill(pid, signal.SIGCONT)
        for program in programs:
            program.wait_for_output("free after")
            program.finish().expect()


def memory_max(daemon, tenant):
    row, = (row for row in daemon.ctl("tenant", "list") if row["tenant"] == tenant)
    return row["memory_limit_bytes"]


@case("percentages of memory are of what contexts in all places leave")
def _():
    env = {"GPUPOOL_SOFT_CONTEXT_MEMORY": "64M"}
    shares = "[tenant alice]\nmemory = 50%\n"
    with Workers(f"[daemon]\nworkers-per-device = 4\n{shares}", env=env) as daemon:
        total = daemon.ctl("device", "list")[0]["memory_total_bytes"]
        unit = 2 << 20
        require(memory_max(daemon, "alice") == (total - (256 << 20)) // 2 // unit * unit, str(memory_max(daemon, "alice")))
        program = stay(daemon, "alice")
        require(memory_max(daemon, "alice") == (total - (256 << 20)) // 2 // unit * unit, "it changes with the number of workers")
        program.finish().expect()
        # All tenants share one worker: there is only its context.
        daemon.reload(f"[daemon]\nisolation = shared\nworkers-per-device = 4\n{shares}")
        require(memory_max(daemon, "alice") == (total - (64 << 20)) // 2 // unit * unit, str(memory_max(daemon, "alice")))
        # By default contexts take a tenth of the device.
        daemon.reload(shares)
        places = max(2, total // 10 // (64 << 20))
        require(memory_max(daemon, "alice") == (total - (places * 64 << 20)) // 2 // unit * unit, str(memory_max(daemon, "alice")))


def enqueue(daemon, tenant, number):
    """The reply to a client that waits for a session of class session, asks once and leaves: why it is refused, mostly."""
    words = field(13, field(4, 2)) + field(14, tenant.encode()) + field(17, number) + field(18, 1)
    with Conn(daemon.port) as conn:
        conn.send(preamble() + message(hello(more=words)))
        return recv_reply(conn)


def enqueue_all(daemon, tenant, numbers):
    """Adds the numbers to the queue; returns the refusals."""
    found = []
    threads = [threading.Thread(target=lambda number=number: found.append(enqueue(daemon, tenant, number))) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@case("numbers in the queue of a tenant that does not come back leave places to others")
def _():
    with Workers(limit(2)) as daemon:
        programs = [stay(daemon, tenant, GPUPOOL_ISOLATION="session") for tenant in ("carol", "dave")]
        replies = enqueue_all(daemon, "alice", range(1000, 1024))
        require(len(replies) == 24 and all(full(2) in str(reply) for reply in replies), str(replies))
        for program in programs:
            program.finish().expect()
        wait_until("both places are free", lambda: not any(row[1] for row in daemon.list()), PATIENCE)
        daemon.run("vectoradd", env=as_tenant("bob", GPUPOOL_ISOLATION="session")).expect(out=OK, err="")


@case("a place is reserved for a short time for a client in the queue, and then it is for others")
def _():
    with Workers(limit(1)) as daemon:
        program = stay(daemon, "carol", GPUPOOL_ISOLATION="session")
        replies = enqueue_all(daemon, "alice", range(1000, 1012))
        require(len(replies) == 12 and all(full(1) in str(reply) for reply in replies), str(replies))
        program.finish().expect()
        refused = []

        def run():
            result = daemon.run("vectoradd", env=as_tenant("dave", GPUPOOL_ISOLATION="session"))
            refused.append(result.err)
            return result.status == 0
        wait_until("one that does not wait gets it", run, PATIENCE)
        require("all in use" not in "".join(refused[1:]), str(refused))


@case("a tenant with fewer places gets one before the first in the queue")
def _():
    # Of class shared, so no place is held back.
    text = limit(3, tenants="".join(f"[tenant {name}]\nisolation = shared\n" for name in NAMES))
    with Workers(text) as daemon:
        alice = [stay(daemon, "alice", GPUPOOL_ISOLATION="session") for _ in range(2)]
        dave = stay(daemon, "dave", GPUPOOL_ISOLATION="session")
        more = {"GPUPOOL_ISOLATION": "session", "GPUPOOL_WAIT": "600"}
        first = daemon.start("memhog", "16", stdin=True, env=as_tenant("alice", **more))
        wait_until("it is in the queue", lambda: in_queue(daemon, "alice") == 1, PATIENCE)
        second = daemon.start("memhog", "16", stdin=True, env=as_tenant("bob", **more))
        wait_until("both are in the queue", lambda: in_queue(daemon, "bob") == 1, PATIENCE)
        dave.finish().expect()
        second.wait_for_output("free after")
        require([row[1] for row in daemon.list()] == ["alice", "alice", "bob"], str(daemon.list()))
        for program in (second, *alice):
            program.finish().expect()
        first.wait_for_output("free after")
        first.finish().expect()


@case("a tenant that has places leaves one to each tenant that has none, at most half of them")
def _():
    two = "[tenant alice]\n[tenant bob]\n"
    with Workers(limit(4, "ready-workers = 1\n", two)) as daemon:
        daemon.reserve = 1
        programs = [stay(daemon, "alice", GPUPOOL_ISOLATION="session") for _ in range(3)]
        result = daemon.run("vectoradd", env=as_tenant("alice", GPUPOOL_ISOLATION="session"))
        require(result.status != 0 and f"refused: {held_back(4)}" in result.err, str(result))
        late = daemon.start("vectoradd", env=as_tenant("alice", GPUPOOL_ISOLATION="session", GPUPOOL_WAIT="600"))
        wait_until("it waits", lambda: in_queue(daemon, "alice") == 1, PATIENCE)
        # Of class tenant, too.
        for _ in range(2):
            daemon.run("vectoradd", env=as_tenant("bob")).expect(out=OK, err="")
        # The place of an idle worker counts as free.
        result = daemon.run("vectoradd", env=as_tenant("alice", GPUPOOL_ISOLATION="session"))
        require(result.status != 0 and f"refused: {held_back(4)}" in result.err, str(result))
        programs.append(stay(daemon, "bob"))
        result = daemon.run("vectoradd", env=as_tenant("bob", GPUPOOL_ISOLATION="session"))
        require(result.status != 0 and f"refused: {full(4)}" in result.err, str(result))
        programs.pop(0).finish().expect()
        result = late.finish().expect(out=OK)
        require(held_back(4) in result.err, str(result))
        for program in programs:
            program.finish().expect()
    with Workers(limit(4)) as daemon:
        programs = [stay(daemon, "alice", GPUPOOL_ISOLATION="session") for _ in range(2)]
        result = daemon.run("vectoradd", env=as_tenant("alice", GPUPOOL_ISOLATION="session"))
        require(result.status != 0 and f"refused: {held_back(4)}" in result.err, str(result))
        # The first place of a tenant is not held back.
        programs += [stay(daemon, tenant, GPUPOOL_ISOLATION="session") for tenant in ("bob", "carol")]
        for program in programs:
            program.finish().expect()


@case("places are held back on a session's second device, too; and not from the only tenant")
def _():
    two = "[device 1]\nworkers-per-device = 2\n[tenant alice]\n[tenant bob]\n"
    with Workers(f"[daemon]\nworkers-per-device = 8\n{two}", env=TWO) as daemon:
        alice = on_device(daemon, 1, "alice", GPUPOOL_ISOLATION="session")
        result = daemon.run("manydevices", "2", env=as_tenant("alice", GPUPOOL_ISOLATION="session"))
        require(result.status != 0 and "cudaErrorMemoryAllocation" in result.out, str(result))
        daemon.wait_for_log(rf"warning: worker \d+: a session gets CUDA_ERROR_OUT_OF_MEMORY: {held_back(2, 1)}")
        daemon.run("manydevices", "2", env=as_tenant("bob", GPUPOOL_ISOLATION="session")).expect(out=MANY, err="")
        alice.finish().expect()
    with Workers(limit(4, tenants="[tenant alice]\n")) as daemon:
        programs = [stay(daemon, "alice", GPUPOOL_ISOLATION="session") for _ in range(4)]
        for program in programs:
            program.finish().expect()


class Loop:
    """Context manager: sessions of a tenant that are opened and ended in a loop, several at a time."""

    def __init__(self, daemon, count, program, env, status=0):
        self.daemon, self.program, self.env, self.status = daemon, program, env, status
        self.stopping, self.wrong, self.runs = False, [], 0
        self.threads = [threading.Thread(target=self.loop) for _ in range(count)]

    def loop(self):
        while not self.stopping:
            result = self.daemon.run(self.program, env=self.env)
            if bool(result.status) != bool(self.status):
                self.wrong.append(str(result))
            self.runs += 1

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping = True
        for thread in self.threads:
            thread.join()


def first_calls(daemon, names, **more):
    """How long the first program of each tenant takes beyond one whose worker runs."""
    found = []
    for name in names:
        times = []
        for _ in range(2):
            begin = time.monotonic()
            daemon.run("vectoradd", env=as_tenant(name, **more)).expect(out=OK, err="")
            times.append(time.monotonic() - begin)
            time.sleep(0.3)
        found.append(times[0] - times[1])
    return found


@case("sessions that one tenant opens and ends in a loop leave a worker of the reserve to others")
def _():
    with Workers(f"[daemon]\nready-workers = 1\n{TENANTS}", env=START) as daemon:
        daemon.reserve = 1
        wait_until("two are ready", lambda: daemon.ready() == 2, PATIENCE)
        with Loop(daemon, 2, "vectoradd", as_tenant("alice", GPUPOOL_ISOLATION="session")) as loop:
            wait_until("it runs", lambda: loop.runs > 2, PATIENCE)
            times = first_calls(daemon, NAMES[1:])
        require(not loop.wrong, str(loop.wrong))
        require(max(times) < FIRST_CALL, f"first calls take {times}")


@case("faults of one tenant in a loop, each of which takes a worker, leave one to others")
def _():
    with Workers(f"[daemon]\nready-workers = 1\nquarantine = 0\n{TENANTS}", env=START) as daemon:
        daemon.reserve = 1
        wait_until("two are ready", lambda: daemon.ready() == 2, PATIENCE)
        with Loop(daemon, 1, "assertion", as_tenant("alice")) as loop:
            wait_until("it runs", lambda: loop.runs > 2, PATIENCE)
            times = first_calls(daemon, NAMES[1:])
        require(max(times) < FIRST_CALL, f"first calls take {times}")


if __name__ == "__main__":
    sys.exit(main(at_once=2 if SOFTWARE else 1))
