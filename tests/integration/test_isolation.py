# SPDX-License-Identifier: Apache-2.0
"""Sessions of class process: they have a worker of their own and are not affected by faults of others."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

from harness import (PATIENCE, SANITIZED, SOFTWARE, Configured, Daemon, Failed, as_tenant, base_environment, case, main, read_file,
                     require, software_env, wait_until)
from wire import Conn, field, hello, message, preamble, recv_refusal, recv_reply

PROCESS = {"GPUPOOL_ISOLATION": "process"}
SOON = 30 if SANITIZED else 2
WISH = field(13, field(4, 2))
# How many workers of one tenant start at the same time; one more is for a tenant that has none.
STARTING = 3
# The log reports that a worker of one session is ready only with this option.
CHATTY = ("--log-level", "debug")
# So that a worker can be stopped before it is ready.
SLOW = software_env(GPUPOOL_SOFT_START_MS="400")


def one_worker(daemon):
    wait_until("only the shared worker is left", lambda: len(daemon.workers()) == 1, 60)


@case("a session of its own process has the same results, and its process ends with it")
def _():
    with Daemon() as daemon:
        shared = daemon.workers()
        program = daemon.start("sleeper", "-ms=500", env=PROCESS)
        program.wait_for_output("running")
        require(len(daemon.workers()) == 2, "there is no process of its own")
        program.finish().expect(out="running\nsleeper: ok\n", err="")
        daemon.run("vectoradd", env=PROCESS).expect(out="vectoradd: ok\n", err="")
        daemon.run("printf", env=PROCESS).expect(err="")
        one_worker(daemon)
        require(daemon.workers() == shared, "the shared worker was replaced")


def set_reserve(daemon, count):
    """Sets the number of reserve workers of a daemon that has only the shared worker."""
    daemon.reload(f"[daemon]\nready-workers = {count}\n")
    wait_until(f"{count} are in reserve", lambda: len(daemon.workers()) == 1 + count, 60)


@case("the reserve is counted: how many are ready, as the administrator and Prometheus see it")
def _():
    with tempfile.TemporaryDirectory(prefix="gpupool-admin-") as folder:
        socket = f"{folder}/admin.sock"
        with Configured("", "--admin-socket", socket) as daemon:
            def ready():
                said = subprocess.run([os.environ["GP_CTL"], "-s", socket, "status", "--format=json"], capture_output=True,
                                      text=True, check=True, env=base_environment()).stdout
                status = json.loads(said)
                return (status[0] if isinstance(status, list) else status)["workers_ready"]
            require(ready() == 1, "there is a reserve that is not configured")
            set_reserve(daemon, 2)
            wait_until("all are ready", lambda: ready() == 3, 60)
            # A worker of the reserve that is used is replaced; the number never exceeds the configured one.
            daemon.run("vectoradd", env=PROCESS).expect(out="vectoradd: ok\n", err="")
            wait_until("all are ready again", lambda: ready() == 3, 60)
            set_reserve(daemon, 0)
            require(ready() == 1, "the reserve is gone and still counted")


@case("a worker in reserve serves the next session of its own process, and another takes its place")
def _():
    with Configured("") as daemon:
        one_worker(daemon)
        set_reserve(daemon, 1)
        known = daemon.workers()
        daemon.run("vectoradd", env=PROCESS).expect(out="vectoradd: ok\n", err="")

        def replaced():
            now = daemon.workers()
            return len(now) == 2 and sum(pid in known for pid in now) == 1
        wait_until("another one takes its place", replaced, 60)
        daemon.check_works()
        set_reserve(daemon, 0)
        one_worker(daemon)


@case("more sessions of their own process than the reserve has workers are served all the same")
def _():
    with Configured("") as daemon:
        one_worker(daemon)
        set_reserve(daemon, 2)
        programs = [daemon.start("vectoradd", env=PROCESS) for _ in range(5)]
        for program in programs:
            program.finish().expect(out="vectoradd: ok\n", err="")
        wait_until("the reserve is filled again", lambda: len(daemon.workers()) == 3, 60)
        set_reserve(daemon, 0)


@case("a worker that dies in reserve is replaced")
def _():
    with Configured("") as daemon:
        one_worker(daemon)
        shared = daemon.workers()
        set_reserve(daemon, 1)
        spare, = (pid for pid in daemon.workers() if pid not in shared)
        os.kill(spare, signal.SIGKILL)
        wait_until("another one is there", lambda: any(pid not in [*shared, spare] for pid in daemon.workers()), 60)
        daemon.run("vectoradd", env=PROCESS).expect(out="vectoradd: ok\n", err="")
        set_reserve(daemon, 0)


@case("the log has two lines of a session of its own process, as of any other")
def _():
    with Daemon() as daemon:
        daemon.wait_for_log(r"worker \d+: device 0 is ")
        begun = len(daemon.log())
        for _ in range(5):
            daemon.run("devicequery", env=PROCESS).expect(err="")
        daemon.wait_for_log(r"session \d+ \(.*: closed: ", count=5)
        one_worker(daemon)
        lines = [line for line in daemon.log()[begun:].splitlines() if "device monitor" not in line]
        others = [line for line in lines if not re.search(r": info: session \d+ \(.*\): (open from|closed)", line)]
        require(len(lines) == 10 and not others, f"{len(lines)} lines of 5 sessions, and these: {others}")


@case("a fault among the shared ones does not reach a session of its own process")
def _():
    with Daemon() as daemon:
        program = daemon.start("sleeper", "-ms=4000", env=PROCESS)
        program.wait_for_output("running")
        daemon.run("sticky").expect()
        program.finish().expect(out="running\nsleeper: ok\n", err="")
        one_worker(daemon)
        daemon.check_works()


@case("a fault of a session in its own process affects no other session, and the shared worker stays")
def _():
    with Daemon() as daemon:
        shared = daemon.workers()
        others = [daemon.start("sleeper", "-ms=4000"), daemon.start("sleeper", "-ms=4000", env=PROCESS)]
        for other in others:
            other.wait_for_output("running")
        result = daemon.run("sticky", env=PROCESS).expect()
        require("session ended with error 700" in result.err and "sleeper" not in result.err, str(result))
        require("synchronise: cudaErrorIllegalAddress (700)" in result.out, str(result))
        for other in others:
            other.finish().expect(out="running\nsleeper: ok\n", err="")
        one_worker(daemon)
        require(daemon.workers() == shared, "the shared worker was replaced")


@case("the process of a client with isolation = process that is killed in an endless kernel ends")
def _():
    with Daemon() as daemon:
        shared = daemon.workers()
        program = daemon.start("sleeper", "-endless", env=PROCESS)
        program.wait_for_output("running")
        begin = time.monotonic()
        program.kill()
        daemon.check_works()
        require(time.monotonic() - begin < SOON, "another client had to wait")
        one_worker(daemon)
        require(daemon.workers() == shared, "the shared worker was replaced")


@case("a process that is killed is reported to its client only")
def _():
    with Daemon() as daemon:
        shared = daemon.workers()
        program = daemon.start("sleeper", "-endless", env=PROCESS)
        program.wait_for_output("running")
        own = [pid for pid in daemon.workers() if pid not in shared]
        os.kill(own[0], signal.SIGKILL)
        result = program.finish()
        require(result.status == 1 and "expected cudaSuccess" in result.out, str(result))
        one_worker(daemon)
        require(daemon.workers() == shared, "the shared worker was replaced")
        daemon.wait_for_log(rf"session 1 .*: the worker was killed by signal 9")
        daemon.check_works()


@case("many at once, each alone")
def _():
    with Daemon() as daemon:
        programs = [daemon.start("vectoradd", env=PROCESS) for _ in range(4)]
        for program in programs:
            program.finish().expect(out="vectoradd: ok\n", err="")
        one_worker(daemon)


@case("a class that there is not is refused by name")
def _():
    with Daemon() as daemon:
        result = daemon.run("vectoradd", env={"GPUPOOL_ISOLATION": "strict"})
        require(result.status != 0 and "GPUPOOL_ISOLATION=strict: is not one of shared, tenant, session" in result.err, str(result))


def request_process(daemon, more=WISH):
    """A client that requests a process of its own, and sends nothing else."""
    conn = Conn(daemon.port, PATIENCE)
    conn.send(preamble() + message(hello(more=more)))
    return conn


def welcomed(conn):
    require(recv_reply(conn)[0] == 2, "no welcome")


def flood_is_over(daemon):
    """Those who have left and whose turn has not come yet may have one for a moment, between others."""
    daemon.check_works()
    last = [time.monotonic()]

    def is_over():
        if len(daemon.workers()) != 1:
            last[0] = time.monotonic()
        return time.monotonic() - last[0] > 0.5

    wait_until("only the shared worker is left", is_over, 30, each=0.002)


class Watch:
    """How many processes of their own sessions had at most, meanwhile."""

    def __init__(self, daemon):
        self.daemon, self.most, self.stop = daemon, 0, threading.Event()
        self.thread = threading.Thread(target=self.poll)

    def poll(self):
        while not self.stop.is_set():
            self.most = max(self.most, len(self.daemon.workers()) - 1)
            time.sleep(0.002)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


def get_state(pid):
    try:
        return read_file(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


def start_one(daemon, known):
    """A client whose worker is stopped while it starts; None: it was ready before that, and is gone again."""
    conn = request_process(daemon)
    pid, = wait_until("a worker starts", lambda: [pid for pid in daemon.workers() if pid not in known], 60)
    os.kill(pid, signal.SIGSTOP)
    # A line that it printed before that is in the log after this time.
    time.sleep(0.1)
    if f"worker {pid}: device" not in daemon.log():
        known.append(pid)
        return conn, pid
    os.kill(pid, signal.SIGCONT)
    conn.close()
    wait_until("the worker is gone", lambda: pid not in daemon.workers(), 60)
    return None


def starting(daemon, count, known):
    """This number of clients whose workers are stopped while they start: [(client, worker)]."""
    held = []
    for _ in range(10 * count):
        one = start_one(daemon, known)
        held += [one] if one else []
        if len(held) == count:
            return held
    raise Failed("workers are ready before they can be stopped")


@case("clients that request a process and leave have no more processes than their tenant's limit of sessions")
def _():
    with Configured("[tenant alice]\nsessions = 2\n", "--insecure") as daemon:
        with Watch(daemon) as watch:
            asking = []
            for _ in range(100):
                # One that is closed before the daemon looks at it gets no process at all.
                asking.append(request_process(daemon, field(14, "alice") + WISH))
                if len(asking) > 4:
                    asking.pop(0).close()
            wait_until("a process of its own", lambda: watch.most, PATIENCE)
            for conn in asking:
                conn.close()
            flood_is_over(daemon)
        require(1 <= watch.most <= 2, f"{watch.most} processes at a time")
        daemon.run("vectoradd", env=as_tenant("alice", **PROCESS)).expect(out="vectoradd: ok\n", err="")
        require("error:" not in daemon.log(), "the end of a worker whose client has left is logged as an error")
        one_worker(daemon)


@case("the slot of a session that has ended is free when its process has exited")
def _():
    with Configured("[tenant alice]\nsessions = 1\n", "--insecure") as daemon:
        with Watch(daemon) as watch:
            # Each gets the slot of the one before, as early as there is one.
            waiting = [daemon.start("vectoradd", env=as_tenant("alice", GPUPOOL_WAIT="60", **PROCESS)) for _ in range(4)]
            for program in waiting:
                program.finish().expect(out="vectoradd: ok\n")
        require(watch.most == 1, f"{watch.most} processes at a time")
        one_worker(daemon)


@case("processes are no more than there may be sessions, and what leaves gives its place back")
def _():
    with Daemon("--max-sessions", "6", "--insecure") as daemon:
        with Watch(daemon) as watch:
            for _ in range(60):
                request_process(daemon).close()
            held = [request_process(daemon) for _ in range(6)]
            for conn in held:
                welcomed(conn)
            require(recv_refusal(request_process(daemon)) == "no free session slot (--max-sessions)", "another reason")
        require(watch.most <= 6, f"{watch.most} processes at a time")
        for conn in held:
            conn.close()
        daemon.check_works()
        one_worker(daemon)


@case("an address has no more processes than sessions")
def _():
    with Configured("[daemon]\nsessions-per-address = 3\n", "--insecure") as daemon:
        with Watch(daemon) as watch:
            for _ in range(60):
                request_process(daemon).close()
            flood_is_over(daemon)
        # Connections whose address the system no longer returned count as one more address.
        require(watch.most <= 6, f"{watch.most} processes at a time")
        with Watch(daemon) as watch:
            held = [request_process(daemon) for _ in range(3)]
            for conn in held:
                welcomed(conn)
            require("(sessions-per-address)" in recv_refusal(request_process(daemon)), "another reason")
        require(watch.most <= 3, f"{watch.most} processes at a time")
        for conn in held:
            conn.close()
        one_worker(daemon)


@case("few workers start at a time, one whose client leaves is killed, and the next one's turn comes, by tenants")
def _():
    with Configured("[tenant alice]\nsessions = 20\n", *CHATTY, env=SLOW) as daemon:
        known = daemon.workers()
        begun = starting(daemon, STARTING, known)
        waiting = [request_process(daemon) for _ in range(3)]
        daemon.check_works()
        time.sleep(0.3)
        require(sorted(daemon.workers()) == sorted(known), "more of them start")
        # She has none, and does not wait for those who have come before.
        alice = request_process(daemon, field(14, "alice") + WISH)
        welcomed(alice)
        begun[0][0].close()
        wait_until("the worker is killed whose client has left", lambda: get_state(begun[0][1]) in ("", "Z"), 5)
        for conn in waiting:
            welcomed(conn)
        for _, pid in begun[1:]:
            os.kill(pid, signal.SIGCONT)
        for conn, _ in begun[1:]:
            welcomed(conn)
        for conn in [alice, *waiting] + [conn for conn, _ in begun[1:]]:
            conn.close()
        one_worker(daemon)


@case("a client that waits for its turn has a session slot, and frees it when it leaves")
def _():
    with Daemon("--max-sessions", str(STARTING + 1), *CHATTY, env=SLOW) as daemon:
        known = daemon.workers()
        begun = starting(daemon, STARTING, known)
        waiting = request_process(daemon)
        time.sleep(1)  # it has come, and waits
        require("no free session slot" in recv_refusal(request_process(daemon)), "it has no place")
        waiting.close()
        wait_until("its place is free", lambda: daemon.run("vectoradd").status == 0, SOON)
        for conn, _ in begun:
            conn.close()
        one_worker(daemon)
        daemon.check_works()


@case("a worker that does not get ready is given up with its client")
def _():
    with Daemon(*CHATTY, env=SLOW) as daemon:
        (conn, _), = starting(daemon, 1, daemon.workers())
        begin = time.monotonic()
        require(recv_refusal(conn) == "dedicated worker start timed out", "another reason")
        require(25 < time.monotonic() - begin < 40, "not in its time")
        one_worker(daemon)


@case("a session slot that a reload adds is given to a client that waits for one")
def _():
    alice = field(14, "alice") + WISH
    with Configured("[tenant alice]\nsessions = 1\n") as daemon:
        first = request_process(daemon, alice)
        welcomed(first)
        second = request_process(daemon, alice)
        time.sleep(0.3)  # it has come, and waits
        daemon.reload("[tenant alice]\nsessions = 2\n")
        welcomed(second)
        require("has reached its limit of 2 sessions" in recv_refusal(request_process(daemon, alice)), "another reason")
        first.close()
        second.close()
        one_worker(daemon)


@case("the configuration can forbid a process of one's own, to one tenant and to all")
def _():
    wanted = "tenant alice may not have sessions with isolation = session (isolation = shared-only)"
    with Configured("[tenant alice]\nisolation = shared-only\n") as daemon:
        result = daemon.run("vectoradd", env=as_tenant("alice", **PROCESS))
        require(result.status != 0 and wanted in result.err, str(result))
        require(wanted in recv_refusal(request_process(daemon, field(14, "alice") + WISH)), "another reason")
        daemon.run("vectoradd", env=as_tenant("alice")).expect(out="vectoradd: ok\n", err="")
        daemon.run("vectoradd", env=PROCESS).expect(out="vectoradd: ok\n", err="")
        one_worker(daemon)
        daemon.reload("[daemon]\nisolation = shared-only\n[tenant alice]\nisolation = shared\n")
        require("tenant default may not" in recv_refusal(request_process(daemon)), "another reason")
        daemon.run("vectoradd", env=as_tenant("alice", **PROCESS)).expect(out="vectoradd: ok\n", err="")
        one_worker(daemon)


if __name__ == "__main__":
    # A GPU's driver begins one process after another: side by side they wait for it.
    sys.exit(main(at_once=4 if SOFTWARE else 1))
