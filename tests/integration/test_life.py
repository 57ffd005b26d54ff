# SPDX-License-Identifier: Apache-2.0
"""Clients that come, go, or are killed: nothing of them stays with the daemon."""
import os
import re
import signal
import sys
import time

import wire
from harness import (PATIENCE, SANITIZED, SOFTWARE, Configured, Daemon, Program, as_tenant, case, main, require,
                     software_env, wait_until)

# The design's promise is two seconds; a sanitized build on a busy machine gets more.
SOON = 10 if SANITIZED else 2
# Longer than new clients wait for the work of one that is gone.
SOME_SECONDS = 5


def free_memory(daemon):
    out = daemon.run("memhog", "1").expect().out
    return int(re.match(r"free before: (\d+) MiB", out)[1])


@case("a client killed in the middle of a kernel leaves nothing behind")
def _():
    with Daemon() as daemon:
        before = free_memory(daemon)
        daemon.settle()
        workers = daemon.workers()
        client = daemon.start("sleeper", "-endless")
        client.wait_for_output("running")
        client.kill()
        # A GPU cannot stop the kernel: there it ends with its worker, and that takes longer.
        daemon.settle(SOON if SOFTWARE else 15)
        require(free_memory(daemon) == before, f"{before} MiB were free, now {free_memory(daemon)} are")
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
        daemon.wait_for_log("new clients get another worker", SOON + 3)
        daemon.check_works()
        require(len(daemon.workers()) == 2, "the bystander's worker is gone")
        bystander.finish().expect()
        daemon.wait_for_log("the worker ends with it", SOON)
        require(daemon.workers() != workers, "the worker of the endless kernel is still there")
        daemon.check_works()


TWO_TENANTS = "[tenant alice]\n[tenant bob]\n"
TOO_MANY = "goes on in more than 4 older workers: this one ends"
SHUT_OUT = "work of tenant bob's clients that are gone goes on in 4 workers, all of which others use: "


def stay(daemon, tenant):
    """A program of the tenant's that stays, and its session."""
    program = daemon.start("memhog", "16", env=as_tenant(tenant), stdin=True)
    program.wait_for_output("free after")
    return program, re.findall(r"session (\d+) \(.* memhog\): open from", daemon.log())[-1]


def leave_endless_work(daemon, tenant, count):
    client = daemon.start("sleeper", "-endless", env=as_tenant(tenant))
    client.wait_for_output("running")
    client.kill()
    daemon.wait_for_log("new clients get another worker", SOON + 3, count=count)
    daemon.check_works()
    # One that is killed is there for a moment more.
    wait_until(f"there are no more than five workers after {count} endless kernels", lambda: len(daemon.workers()) <= 5, SOON)


@case("who leaves endless work behind again and again gets so many workers and no more")
def _():
    with Configured(TWO_TENANTS, env=software_env(GPUPOOL_SOFT_NO_CANCEL="1")) as daemon:
        bystanders = []
        for i in range(1, 5):
            bystanders.append(stay(daemon, "alice")[0])
            leave_endless_work(daemon, "bob", i)
        # She has sessions in all of them, so he gets none in which he could do it again.
        for i in range(2):
            refused = daemon.run("vectoradd", env=as_tenant("bob"))
            require(refused.status == 1 and SHUT_OUT in refused.err, f"bob got a session: {refused}")
            daemon.wait_for_log(rf"warning: .* vectoradd\): refused: {SHUT_OUT}", count=i + 1)
        daemon.run("vectoradd", env=as_tenant("bob", GPUPOOL_ISOLATION="process")).expect(out="vectoradd: ok\n")
        daemon.run("vectoradd", env=as_tenant("alice")).expect(out="vectoradd: ok\n")
        # With the session of hers one of the workers ends, and his work there.
        bystanders.pop().finish().expect()
        daemon.wait_for_log("the worker ends with it", SOON)
        wait_until("one of the workers has ended", lambda: len(daemon.workers()) == 4, SOON)
        daemon.run("vectoradd", env=as_tenant("bob")).expect(out="vectoradd: ok\n")
        for program in bystanders:
            program.finish().expect()
        require("older workers" not in daemon.log(), "a worker with sessions of hers has ended")
        daemon.settle(SOON + 3)


@case("of endless work of several tenants together, next to others everywhere, the oldest worker ends")
def _():
    with Configured(TWO_TENANTS + "[tenant carol]\n", env=software_env(GPUPOOL_SOFT_NO_CANCEL="1")) as daemon:
        bystanders = []
        for i in range(1, 6):
            bystanders.append(stay(daemon, "alice"))
            leave_endless_work(daemon, "bob" if i % 2 else "carol", i)
        daemon.wait_for_log(TOO_MANY + "; here it is work of tenant bob$")
        program, session = bystanders.pop(0)
        daemon.wait_for_log(rf"session {session} \(.* memhog\): closed: .* {TOO_MANY}; 1 launches, ")
        program.kill()
        for program, _ in bystanders:
            program.finish().expect()
        daemon.settle(SOON + 3)


@case("of too many workers with endless work those end in which only who left it has sessions")
def _():
    with Configured(TWO_TENANTS, env=software_env(GPUPOOL_SOFT_NO_CANCEL="1")) as daemon:
        neighbour, _ = stay(daemon, "alice")
        own = []
        for i in range(1, 7):
            own.append(stay(daemon, "bob"))
            leave_endless_work(daemon, "bob", i)
        daemon.wait_for_log(TOO_MANY + "; here it is work of tenant bob$", count=2)
        # The first worker is the neighbour's as well: the second and the third have ended.
        ended = re.findall(rf"session (\d+) \(.* memhog\): closed: .* {TOO_MANY}; 1 launches, ", daemon.log())
        require(ended == [session for _, session in own[1:3]], f"sessions {ended} of {own} ended")
        left = re.findall(rf"session \d+ \(.* sleeper\): closed: .* {TOO_MANY}; 2 launches, ", daemon.log())
        require(len(left) == 2, f"the work that was left is not in the log: {left}")
        neighbour.finish().expect()
        for number, (program, _) in enumerate(own):
            if number in (1, 2):
                program.kill()
            else:
                program.finish().expect()
        daemon.settle(SOON + 3)


@case("a worker in which left work has ended serves again, rather than one more for each such kernel")
def _():
    with Daemon(env=software_env(GPUPOOL_SOFT_NO_CANCEL="1")) as daemon:
        bystanders = []
        for i in range(1, 6):
            bystanders.append(daemon.start("memhog", "16", stdin=True))
            bystanders[-1].wait_for_output("free after")
            client = daemon.start("sleeper", f"-ms={SOME_SECONDS * 1000}")
            client.wait_for_output("running")
            client.kill()
            daemon.wait_for_log("new clients get another worker", SOON + 3, count=i)
            daemon.check_works()
            require(len(daemon.workers()) == 2, f"{len(daemon.workers())} workers after {i} kernels that end")
            daemon.wait_for_log(r"session \d+ \(.* sleeper\): closed: ", SOME_SECONDS + SOON, count=i)
        daemon.wait_for_log("has ended: new clients get this worker again", count=4)
        for bystander in bystanders:
            bystander.finish().expect()
        daemon.check_works()
        # The one that serves is as sound as a new one: it stays, and the other ends with its last session.
        daemon.settle(SOON + 3)


@case("what a client that has gone left running is not taken for another's")
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
        require("all is well" not in result.err, f"it was told what another's kernel said: {result}")
        daemon.wait_for_log(r"has lost its GPU contexts: .*")
        daemon.wait_for_log(r"with work of .*all is well")
        daemon.settle(SOON)
        for line in daemon.log().splitlines():
            if "with work of" in line or "has lost its GPU contexts" in line:
                require("last kernel _Z4fail" in line, f"who did it is not named: {line}")


@case("what is printed to a closed descriptor goes nowhere, and not to the daemon")
def _():
    with Daemon() as daemon:
        for number, closed in enumerate((">&-", "2>&-", "<&- >&- 2>&-"), 1):
            program = os.path.join(os.environ["GP_APPS"], "printf")
            Program("sh", ["-c", f'exec "$0" {closed}', program], daemon.address, path="/bin/sh").finish().expect()
            daemon.wait_for_log(r"closed: the client (closed it|is gone|said goodbye); 5 launches", count=number)
        daemon.settle()


@case("the memory of a killed client is free again")
def _():
    with Daemon() as daemon:
        before = free_memory(daemon)
        client = daemon.start("memhog", "512", stdin=True)
        client.wait_for_output("free after")
        require(free_memory(daemon) <= before - 512, "the memory of a client does not count")
        client.kill()
        daemon.settle(SOON)
        require(free_memory(daemon) == before, f"{before} MiB were free, now {free_memory(daemon)} are")


@case("clients killed at any moment of their start leave nothing behind")
def _():
    with Daemon() as daemon:
        for i in range(12):
            client = daemon.start("vectoradd")
            time.sleep(0.02 * i)
            client.kill()
        daemon.settle(SOON)
        daemon.check_works()


@case("a client that exits without cleaning up leaves nothing behind")
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


@case("many clients one after the other leave nothing behind")
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


@case("an idle session holds nobody up, and the daemon ends with it open")
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


@case("a client that is killed while it waits to print leaves nothing behind")
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


@case("what kernels allocate and do not free is gone with the worker, which is replaced")
def _():
    with Daemon() as daemon:
        for i in range(4):
            workers = daemon.workers()
            daemon.run("deviceheap", "take", "100").expect(out="blocks: 100\ndeviceheap: ok\n", err="")
            daemon.wait_for_log("takes its place", count=i + 1)
            daemon.settle()
            require(not set(workers) & set(daemon.workers()), "the worker is the same")
        daemon.run("deviceheap", "look", "100").expect(out="blocks: 100\nmarked: 0\ndeviceheap: ok\n", err="")
        daemon.wait_for_log("takes its place", count=5)
        daemon.settle()


@case("a worker is replaced only when nobody uses it, and nobody has to wait")
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
        daemon.wait_for_log("takes its place")
        daemon.settle()
        daemon.check_works()


PLACES = "takes its place"


def places_taken(daemon):
    return len(re.findall(PLACES, daemon.log()))


def stay_behind(daemon, idle):
    """Kernels allocate memory, and before the next worker is ready a client comes; True: in time."""
    before, taken = daemon.workers(), places_taken(daemon)
    user = daemon.start("deviceheap", "take", "1")
    successor = daemon.next_worker(before)
    os.kill(successor, signal.SIGSTOP)
    try:
        user.finish().expect()
        client = daemon.start("memhog", "8", stdin=True)
        wait_until("the client is there", lambda: "free after" in client.out() or places_taken(daemon) > taken, PATIENCE)
        in_time = places_taken(daemon) == taken
    finally:
        os.kill(successor, signal.SIGCONT)
    if in_time:
        idle.append(client)
    else:
        client.finish().expect()
    return in_time


def fill_workers(daemon):
    """Clients in four older workers, and one in a fifth, whose place another worker waits for."""
    idle = []
    for _ in range(20):
        taken = places_taken(daemon)
        if stay_behind(daemon, idle) and len(idle) < 5:
            daemon.wait_for_log(PLACES, count=taken + 1)
        elif len(idle) == 5:
            break
    require(len(idle) == 5, f"only {len(idle)} clients came in time")
    time.sleep(0.5)
    require(places_taken(daemon) == taken, "the fifth worker was replaced")
    require(len(daemon.workers()) == 6, f"{len(daemon.workers())} workers")
    return idle, taken


def let_go(daemon, idle):
    for client in idle:
        client.finish().expect()
    wait_until("the older workers end", lambda: len(daemon.workers()) == 1, PATIENCE)
    daemon.settle()


@case("who uses the device heap and comes back at once does not get any number of workers")
def _():
    with Daemon() as daemon:
        idle, taken = fill_workers(daemon)
        daemon.run("deviceheap", "take", "1").expect()
        later = daemon.start("memhog", "8", stdin=True)
        later.wait_for_output("free after")
        idle.pop().finish().expect()
        time.sleep(0.5)
        require(places_taken(daemon) == taken and len(daemon.workers()) == 6, "a worker was replaced under a client")
        later.finish().expect()
        daemon.wait_for_log(PLACES, count=taken + 1)
        daemon.check_works()
        let_go(daemon, idle)


@case("a worker that waits for a place gets it when an older one ends")
def _():
    with Daemon() as daemon:
        idle, taken = fill_workers(daemon)
        idle.pop(0).finish().expect()
        daemon.wait_for_log(PLACES, count=taken + 1)
        daemon.check_works()
        let_go(daemon, idle)


@case("streams, events and contexts without number are a burden to nobody")
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
    sys.exit(main())
