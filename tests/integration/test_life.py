# SPDX-License-Identifier: Apache-2.0
"""Clients that connect, disconnect or are killed: they leave nothing in the daemon."""
import os
import re
import resource
import sys
import time

import wire
from harness import (PATIENCE, SANITIZED, SOFTWARE, Configured, Daemon, Program, as_tenant, case, main, require,
                     software_env, wait_until)

# The design's promise is two seconds; a sanitized build on a busy machine gets more.
SOON = 30 if SANITIZED else 2
# Longer than new clients wait for the work of one that is gone.
SOME_SECONDS = 8 if SANITIZED else 5


def free_memory(daemon):
    out = daemon.run("memhog", "1").expect().out
    return int(re.match(r"free before: (\d+) MiB", out)[1])


def require_no_window(daemon, more=b""):
    with wire.Conn(daemon.port) as conn:
        conn.send(wire.preamble() + wire.message(wire.hello(more=more)))
        require(wire.recv_refusal(conn) == "no free device address range for a session", "another reason")


@case("a client killed in the middle of a kernel leaves no resources allocated")
def _():
    with Daemon() as daemon:
        before = free_memory(daemon)
        daemon.settle()
        workers = daemon.workers()
        client = daemon.start("sleeper", "-endless")
        client.wait_for_output("running")
        client.kill()
        # A GPU cannot stop the kernel: there it ends with its worker, and that takes longer.
        daemon.wait_for_log(r"session 2 \(.*\): closed", SOON if SOFTWARE else 15)
        daemon.settle()
        # Another worker's driver may take a few MiB more or less.
        now = free_memory(daemon)
        require(abs(now - before) <= (0 if SOFTWARE else 16), f"{before} MiB were free, now {now} are")
        require((daemon.workers() == workers) == SOFTWARE, f"the worker was {'' if SOFTWARE else 'not '}replaced")
        daemon.check_works()


@case("work of a killed client that cannot be stopped gets new clients another worker")
def _():
    with Daemon(env=software_env(GPUPOOL_SOFT_NO_CANCEL="1")) as daemon:
        workers = daemon.workers()
        bystander = daemon.start("memhog", "16", stdin=True)
        bystander.wait_for_output("free after")
        client = daemon.start("sleeper", "-endless")
        client.wait_for_output("running")
        client.kill()
        daemon.wait_for_log("new sessions use another worker", SOON + 3)
        daemon.check_works()
        require(len(daemon.workers()) == 2, "the bystander's worker is gone")
        bystander.finish().expect()
        daemon.wait_for_log("the worker exits", SOON)
        require(daemon.workers() != workers, "the worker of the endless kernel is still there")
        daemon.check_works()


TWO_TENANTS = "[daemon]\nisolation = shared\n{daemon}[tenant alice]\n[tenant bob]\n"
TOO_MANY = "orphaned work of a tenant in more than 4 workers: the oldest is killed"


def stay(daemon, tenant):
    """A program of the tenant's that stays, and its session."""
    program = daemon.start("memhog", "16", env=as_tenant(tenant), stdin=True)
    program.wait_for_output("free after")
    return program, re.findall(r"session (\d+) \(.* memhog\): open from", daemon.log())[-1]


def leave_endless_work(daemon, tenant, count):
    client = daemon.start("sleeper", "-endless", env=as_tenant(tenant))
    client.wait_for_output("running")
    client.kill()
    daemon.wait_for_log("new sessions use another worker", SOON + 3, count=count)
    daemon.check_works()
    # One that is killed is there for a moment more.
    wait_until(f"there are no more than six workers after {count} endless kernels", lambda: len(daemon.workers()) <= 6, SOON)


@case("a client that leaves endless work again and again gets its own workers, and costs a bounded number of others")
def _():
    with Configured(TWO_TENANTS.format(daemon=""), env=software_env(GPUPOOL_SOFT_NO_CANCEL="1")) as daemon:
        bystanders = []
        for i in range(1, 3):
            bystanders.append(stay(daemon, "alice")[0])
            leave_endless_work(daemon, "bob", i)
        daemon.wait_for_log("warning: tenant bob: program sleeper of .*: in quarantine until .*: its GPU work did not end after "
                            "its client had left")
        bystanders.append(stay(daemon, "alice")[0])
        # The tenant's later clients have workers of their own, which end with them.
        before = daemon.workers()
        for i in range(2):
            client = daemon.start("sleeper", "-endless", env=as_tenant("bob"))
            client.wait_for_output("running")
            require(len(set(daemon.workers()) - set(before)) == 1, f"{daemon.workers()} after {before}: no worker of its own")
            client.kill()
            wait_until("the tenant's own worker ends with its work", lambda: set(daemon.workers()) == set(before), SOON + 3)
        require(len(re.findall("new sessions use another worker", daemon.log())) == 2, "another worker was replaced")
        daemon.run("vectoradd", env=as_tenant("bob")).expect(out="vectoradd: ok\n")
        daemon.run("vectoradd", env=as_tenant("alice")).expect(out="vectoradd: ok\n")
        for program in bystanders:
            program.finish().expect()
        require("the oldest is killed" not in daemon.log(), "a worker with sessions of hers has ended")
        daemon.settle(SOON + 3)


@case("of a tenant's endless work next to others everywhere the oldest worker ends, and other tenants' work does not count")
def _():
    text = TWO_TENANTS.format(daemon="quarantine = 0\n") + "[tenant carol]\n"
    with Configured(text, env=software_env(GPUPOOL_SOFT_NO_CANCEL="1")) as daemon:
        bystanders = []
        for i, tenant in enumerate(("bob", "bob", "carol", "bob", "bob"), 1):
            bystanders.append(stay(daemon, "alice"))
            leave_endless_work(daemon, tenant, i)
        require("the oldest is killed" not in daemon.log(), "a worker has ended")
        bystanders.append(stay(daemon, "alice"))
        leave_endless_work(daemon, "bob", 6)
        daemon.wait_for_log(TOO_MANY + "; orphaned work of tenant bob$")
        program, session = bystanders.pop(0)
        daemon.wait_for_log(rf"session {session} \(.* memhog\): closed: .*{TOO_MANY}; 1 launches, ")
        program.kill()
        for program, _ in bystanders:
            program.finish().expect()
        daemon.settle(SOON + 3)


@case("a worker in which left work has ended serves again, rather than one more for each such kernel")
def _():
    with Configured("[daemon]\nquarantine = 0\n", env=software_env(GPUPOOL_SOFT_NO_CANCEL="1")) as daemon:
        bystanders = []
        for i in range(1, 6):
            bystanders.append(daemon.start("memhog", "16", stdin=True))
            bystanders[-1].wait_for_output("free after")
            client = daemon.start("sleeper", f"-ms={SOME_SECONDS * 1000}")
            client.wait_for_output("running")
            client.kill()
            daemon.wait_for_log("new sessions use another worker", SOON + 3, count=i)
            daemon.check_works()
            require(len(daemon.workers()) == 2, f"{len(daemon.workers())} workers after {i} kernels that end")
            daemon.wait_for_log(r"session \d+ \(.* sleeper\): closed: ", SOME_SECONDS + SOON, count=i)
        for bystander in bystanders:
            bystander.finish().expect()
        daemon.check_works()
        # One of them stays, and the other ends with its last session.
        wait_until("one worker is left", lambda: len(daemon.workers()) == 1, PATIENCE)
        daemon.settle(SOON + 3)


@case("work that a client left running is not attributed to another client")
def _():
    with Daemon(env={"GPUPOOL_SOFT_NO_CANCEL": "1"}) as daemon:
        bystander = daemon.start("sleeper", "-ms=4000")
        bystander.wait_for_output("running")
        # It fails once its client has gone.
        gone = daemon.start("assertlate", "1500")
        gone.wait_for_output("running")
        gone.kill()
        result = bystander.finish()
        require(result.status > 0, f"the context is not lost: {result}")
        require("all is well" not in result.err, f"it got the output of another client's kernel: {result}")
        daemon.wait_for_log(r"has lost its GPU contexts: .*")
        daemon.wait_for_log(r"with work of .*all is well")
        daemon.settle(SOON)
        for line in daemon.log().splitlines():
            if "with work of" in line or "has lost its GPU contexts" in line:
                require("last kernel _Z4fail" in line, f"the faulting kernel is not named: {line}")


@case("output to a closed descriptor is dropped, and does not reach the daemon")
def _():
    with Daemon() as daemon:
        for number, closed in enumerate((">&-", "2>&-", "<&- >&- 2>&-"), 1):
            program = os.path.join(os.environ["GP_APPS"], "printf")
            Program("sh", ["-c", f'exec "$0" {closed}', program], daemon.address, path="/bin/sh").finish().expect()
            daemon.wait_for_log(r"closed: (the client closed it|connection closed by the client|client sent Bye); 11 launches", count=number)
        daemon.settle()


@case("the memory of a killed client is free again")
def _():
    with Daemon() as daemon:
        before = free_memory(daemon)
        client = daemon.start("memhog", "512", stdin=True)
        client.wait_for_output("free after")
        require(free_memory(daemon) <= before - 512, "the memory of a client does not count")
        client.kill()
        daemon.wait_for_ends()
        daemon.settle(SOON)
        require(free_memory(daemon) == before, f"{before} MiB were free, now {free_memory(daemon)} are")


@case("clients killed at any moment of their start leave no resources allocated")
def _():
    with Daemon() as daemon:
        for i in range(12):
            client = daemon.start("vectoradd")
            time.sleep(0.02 * i)
            client.kill()
        daemon.settle(SOON)
        daemon.check_works()


@case("a client that exits without cleaning up leaves no resources allocated")
def _():
    with Daemon() as daemon:
        daemon.run("exitnoclean").expect(out="exitnoclean: ok\n")
        daemon.settle(SOON)
        daemon.run("exitpending").expect(out="exitpending: ok\n")
        daemon.settle(SOON)


@case("twenty clients at once are all served")
def _():
    with Daemon() as daemon:
        clients = [daemon.start("vectoradd") for _ in range(20)]
        for client in clients:
            client.finish(2 * PATIENCE).expect(out="vectoradd: ok\n", err="")


@case("many clients one after the other leave no resources allocated")
def _():
    with Daemon() as daemon:
        for _ in range(15):
            daemon.check_works()
        daemon.settle()


@case("a client with eight threads, several times at once")
def _():
    with Daemon() as daemon:
        clients = [daemon.start("threads") for _ in range(3)]
        for client in clients:
            client.finish(2 * PATIENCE).expect(out="threads: ok\n", err="")


@case("an idle session delays no other client, and the daemon ends while it is open")
def _():
    with Daemon() as daemon:
        idle = daemon.start("memhog", "8", stdin=True)
        idle.wait_for_output("free after")
        daemon.check_works()
        daemon.stop()
        result = idle.finish()
        require(result.status == 1 and "cudaError" in result.out, f"expected an error: {result}")


@case("the daemon ends while a kernel runs, and its client gets an error")
def _():
    with Daemon() as daemon:
        client = daemon.start("sleeper", "-endless")
        client.wait_for_output("running")
        daemon.stop()
        result = client.finish()
        require(result.status == 1 and "cudaError" in result.out, f"expected an error: {result}")


@case("a client that takes all memory leaves its neighbours with an error of CUDA, not more")
def _():
    with Daemon(env=software_env(GPUPOOL_SOFT_MEMORY="1G")) as daemon:
        free = free_memory(daemon)
        hog = daemon.start("memhog", str(free - 64), stdin=True)
        hog.wait_for_output("free after")
        result = daemon.run("memhog", "512")
        require(result.status == 1 and "cudaErrorMemoryAllocation (2)" in result.out, f"expected error 2: {result}")
        daemon.check_works()
        hog.finish().expect()
        daemon.settle(SOON)
        daemon.run("memhog", "512").expect()


@case("kernels of three programs that print at their end at the same time all do")
def _():
    with Daemon() as daemon:
        clients = [(letter, daemon.start("printlate", letter, ms)) for letter, ms in (("a", "2500"), ("b", "1500"), ("c", "500"))]
        for letter, client in clients:
            client.finish(2 * PATIENCE).expect(out=f"kernel of {letter}\nprintlate: ok\n", err="")


@case("a client that is killed while it waits to print leaves no resources allocated")
def _():
    with Daemon() as daemon:
        first = daemon.start("printlate", "a", "6000")
        time.sleep(0.5)
        second = daemon.start("printlate", "b", "0")
        daemon.wait_for_log(r": open from", count=2)
        time.sleep(0.5)
        second.kill()
        daemon.wait_for_log(r"session \d+ .*: closed", SOON)
        require(first.process.poll() is None, "the first one's kernel has ended, so nothing was shown")
        first.finish(2 * PATIENCE).expect(out="kernel of a\nprintlate: ok\n", err="")


@case("memory that kernels allocate and do not free is freed with the worker, which is replaced")
def _():
    with Daemon() as daemon:
        for i in range(4):
            workers = daemon.workers()
            daemon.run("deviceheap", "take", "100").expect(out="blocks: 100\ndeviceheap: ok\n", err="")
            daemon.wait_for_log("replacing the worker", count=i + 1)
            daemon.settle()
            require(not set(workers) & set(daemon.workers()), "the worker is the same")
        daemon.run("deviceheap", "look", "100").expect(out="blocks: 100\nmarked: 0\ndeviceheap: ok\n", err="")
        daemon.wait_for_log("replacing the worker", count=5)
        daemon.settle()


@case("a worker that has no device addresses left is replaced, unless it is the client that leaves no place")
def _():
    with Daemon() as daemon:
        workers = daemon.workers()
        # Before a session is there, whose window may be left for a moment after its end.
        with open(f"/proc/{workers[0]}/statm") as statm:
            size = int(statm.read().split()[0]) * resource.getpagesize()
        require_no_window(daemon, wire.field(8, wire.field(1, 1 << 20) + wire.field(2, 1 << 47)))
        daemon.check_works()
        require(daemon.workers() == workers, "the worker was replaced for a client that asks for too much")
        # Room for less than a window.
        resource.prlimit(workers[0], resource.RLIMIT_AS, (size + (4 << 30), resource.RLIM_INFINITY))
        require_no_window(daemon)
        daemon.wait_for_log("no range of device addresses is left; replacing the worker")
        wait_until("another worker serves", lambda: set(daemon.workers()) - set(workers), PATIENCE)
        daemon.check_works()


@case("a worker is replaced only when no client uses it")
def _():
    with Daemon() as daemon:
        workers = daemon.workers()
        idle = daemon.start("memhog", "8", stdin=True)
        idle.wait_for_output("free after")
        daemon.run("deviceheap", "take", "10").expect()
        daemon.check_works()
        require(daemon.workers() == workers, "the worker was replaced under a client")
        idle.finish().expect()
        daemon.check_works()
        daemon.wait_for_log("replacing the worker")
        daemon.settle()
        daemon.check_works()


@case("a client that uses the device heap and reconnects at once gets a bounded number of workers")
def _():
    with Daemon() as daemon:
        idle = []
        for i in range(6):
            user = daemon.start("deviceheap", "take", "1")
            # It may come before the first one has gone, or right afterwards: to the old worker, or to the next.
            idle.append(daemon.start("memhog", "8", stdin=True))
            user.finish().expect()
            idle[-1].wait_for_output("free after")
            if i % 2:
                idle.pop(0).finish().expect()
            require(len(daemon.workers()) <= 2, f"{len(daemon.workers())} workers for one who uses the device heap")
        for client in idle:
            client.finish().expect()
        wait_until("one worker is left", lambda: len(daemon.workers()) == 1, PATIENCE)
        daemon.wait_for_log("replacing the worker")
        daemon.check_works()
        daemon.settle()


@case("an unlimited number of streams, events and contexts does not affect other clients")
def _():
    with Daemon() as daemon:
        for call, values in (("cuStreamCreateWithPriority", lambda i: {"phStream": i}), ("cuEventCreate", lambda i: {"phEvent": i}),
                             ("gpContextCreate", lambda i: {"context": i, "legacy": i})):
            with wire.Session(daemon.port) as session:
                session.create_context()
                session.lane.socket.settimeout(PATIENCE)
                for begin in range(10, 20010, 500):
                    waits = call == "gpContextCreate"
                    session.send(b"".join(wire.record(call, values(i), 1000000 + i if waits else 0, 1)
                                          for i in range(begin, begin + 500)))
                    if waits:
                        session.ask("gpFence")
                require(session.ask("gpFence")[0] == 0, "the session is over")
                require({result for result, _, _ in session.errors()} <= {2}, f"{call}: {session.errors()}")
                daemon.check_works()
            daemon.settle(SOON)


if __name__ == "__main__":
    sys.exit(main(at_once=2))
