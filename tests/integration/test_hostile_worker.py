# SPDX-License-Identifier: Apache-2.0
"""Workers that have been taken over, and send the supervisor messages of their own; and workers that hang."""
import os
import signal
import struct
import sys
import time

from harness import PATIENCE, Skip, as_tenant, case, count_descriptors, main, require, software_env, wait_until
from worker_channel import Channel
from workers import Workers, stay

TENANTS = "[daemon]\nready-workers = 1\n[tenant alice]\n[tenant bob]\nsessions = 1\n[tenant carol]\n"
CONTEXT_FAILED = 2


def get_pid(daemon, tenant):
    return next(row["pid"] for row in daemon.rows() if row["tenant"] == tenant and row["class"] != "reserve")


def get_reserve(daemon):
    return [row["pid"] for row in daemon.rows() if row["class"] == "reserve" and row["state"] == "serving"]


def is_alive(pid):
    return os.path.exists(f"/proc/{pid}")


class Taken:
    """A daemon with sessions of alice and bob, and the channel of alice's worker."""

    def __init__(self, *args, text=TENANTS, env=None):
        if os.geteuid() != 0:
            raise Skip("needs root")
        self.daemon = Workers(text, *args, env=env)

    def __enter__(self):
        daemon = self.daemon.__enter__()
        self.alice, self.bob = stay(daemon, "alice"), stay(daemon, "bob")
        self.channel = Channel(get_pid(daemon, "alice"))
        wait_until("the reserve has a worker", lambda: get_reserve(daemon), PATIENCE)
        return daemon, self.channel

    def __exit__(self, kind, *error):
        self.channel.socket.close()
        if not kind:
            self.bob.finish().expect()
            self.alice.kill()
        self.daemon.__exit__(kind, *error)


def require_works(daemon):
    daemon.run("vectoradd", env=as_tenant("carol")).expect(out="vectoradd: ok\n", err="")
    daemon.run("vectoradd", env=as_tenant("alice")).expect(out="vectoradd: ok\n", err="")


@case("reports of a start that come from a worker with sessions change nothing")
def _():
    with Taken() as (daemon, channel):
        before = daemon.rows()
        for data in b"\xff\xff\xff", b"", b"x" * 1000:
            channel.send("READY", data=data)
            channel.send("FAILED", data=data)
            for step in range(4):
                channel.send("CONTEXT", data=struct.pack("<IiQ", step, 999, 1 << 30))
        require_works(daemon)
        classes = [[(row["pid"], row["state"]) for row in rows if row["tenant"]] for rows in (before, daemon.rows())]
        require(set(classes[0]) <= set(classes[1]), str(classes))
        require(not any(row["state"] == "sick" for row in daemon.ctl("device", "list")), "the device is sick")


@case("the end of a session, and its orphaned work, are reported by its own worker only")
def _():
    with Taken() as (daemon, channel):
        before = daemon.ctl("session", "list")
        for row in before:
            if row["tenant"] == "bob":
                for name in "CLOSED", "BUSY":
                    channel.send(name, 1, row["id"], b"forged")
        refused = daemon.run("vectoradd", env=as_tenant("bob"))
        require("limit of 1 sessions" in refused.err, str(refused))
        keys = ("id", "tenant", "memory_bytes", "state")
        require([[row[key] for key in keys] for row in before]
                == [[row[key] for key in keys] for row in daemon.ctl("session", "list")], "the sessions differ")
        require_works(daemon)


@case("descriptors that come with a worker's messages do not stay")
def _():
    with Taken() as (daemon, channel):
        before = count_descriptors(daemon.pid)
        with open("/dev/null") as file:
            for count in 1, 2, 100:
                for _ in range(10):
                    channel.send("PONG", fds=[file.fileno()] * count)
        require_works(daemon)
        # Carol's worker has a channel.
        wait_until("they are closed", lambda: count_descriptors(daemon.pid) <= before + 2, PATIENCE)


@case("a worker that reports the loss of its contexts again and again is killed as soon as one that does so once")
def _():
    with Taken() as (daemon, channel):
        worker = get_pid(daemon, "alice")
        lost = daemon.ctl("status")["workers_lost"]
        os.kill(worker, signal.SIGSTOP)
        begin = time.monotonic()
        while is_alive(worker):
            try:
                channel.send("LOST", 700)
            except BrokenPipeError:
                pass
            require(time.monotonic() - begin < PATIENCE, "it lives")
            time.sleep(0.1)
        wait_until("one worker is lost", lambda: daemon.ctl("status")["workers_lost"] == lost + 1, PATIENCE)
        require_works(daemon)


@case("a worker that closes its channel gets no session, and is killed")
def _():
    with Taken() as (daemon, channel):
        worker = get_pid(daemon, "alice")
        os.kill(worker, signal.SIGSTOP)
        channel.socket.shutdown(2)
        require_works(daemon)
        wait_until("it is gone", lambda: not is_alive(worker), PATIENCE)


@case("recalls without end of one worker fill no queue of another that does not read")
def _():
    with Taken() as (daemon, channel):
        other = get_pid(daemon, "bob")
        os.kill(other, signal.SIGSTOP)
        # More than the queue of a worker takes.
        for _ in range(20000):
            channel.send("RECALL")
        require_works(daemon)
        os.kill(other, signal.SIGCONT)
        require(is_alive(other) and get_pid(daemon, "bob") == other, "bob's worker was killed")


@case("forged failures of contexts start a worker now and then, not without end")
def _():
    with Taken("--log-level", "debug") as (daemon, channel):
        before, begin = daemon.log().count(" starts\n"), time.monotonic()
        for _ in range(100):
            channel.send("CONTEXT", data=struct.pack("<IiQ", CONTEXT_FAILED, 999, 0))
            time.sleep(0.02)
        require_works(daemon)
        started = daemon.log().count(" starts\n") - before
        # One every five seconds, and one for carol's session.
        require(started <= 2 + (time.monotonic() - begin) / 5, f"{started} workers were started")


@case("a worker without a session that hangs is killed, in the reserve or not")
def _():
    with Workers(TENANTS) as daemon:
        daemon.run("vectoradd", env=as_tenant("alice")).expect()
        wait_until("the reserve has a worker", lambda: get_reserve(daemon), PATIENCE)
        hung = [get_pid(daemon, "alice"), *get_reserve(daemon)]
        for pid in hung:
            os.kill(pid, signal.SIGSTOP)
        wait_until("they are gone", lambda: not any(map(is_alive, hung)), PATIENCE)
        daemon.wait_for_log("it has no session and is killed", count=2)
        for tenant in "alice", "carol":
            daemon.run("vectoradd", env=as_tenant(tenant)).expect(out="vectoradd: ok\n", err="")
        daemon.settle()


@case("worker replace with the number of another process, or of a session's own worker, leaves the reserve")
def _():
    with Workers(TENANTS) as daemon:
        own = stay(daemon, "alice", GPUPOOL_ISOLATION="session")
        wait_until("the reserve has a worker", lambda: get_reserve(daemon), PATIENCE)
        before = get_reserve(daemon)
        require(daemon.replace(1) != 0, "process 1 was replaced")
        daemon.replace(get_pid(daemon, "alice"))
        require(set(before) <= set(get_reserve(daemon)), "the reserve was replaced")
        daemon.run("vectoradd", env=as_tenant("bob")).expect()
        wait_until("the reserve has a worker", lambda: get_reserve(daemon), PATIENCE)
        before = get_reserve(daemon)
        require(daemon.replace(get_pid(daemon, "bob")) == 0, "not replaced")
        wait_until("the reserve is replaced, too", lambda: not set(before) & set(get_reserve(daemon)), PATIENCE)
        own.finish().expect()


@case("a start for the reserve that hangs on one device does not stop that of another")
def _():
    text = "[daemon]\nready-workers = 1\n[tenant alice]\ndevices = 0\n[tenant bob]\ndevices = 0\n[tenant carol]\ndevices = 1\n"
    with Workers(text, env=software_env(GPUPOOL_SOFT_DEVICES="2", GPUPOOL_SOFT_START_MS="1500")) as daemon:
        def find_starting():
            return [row["pid"] for row in daemon.rows() if row["state"] == "starting"]

        wait_until("both devices have one", lambda: daemon.ready() >= 2 and not find_starting(), PATIENCE, each=0.3)

        # On a slow machine it may have started before it is looked for.
        def use_one():
            daemon.run("vectoradd", env=as_tenant("carol", GPUPOOL_ISOLATION="session")).expect()
            return find_starting()

        starting = wait_until("the next one starts", use_one, PATIENCE)
        os.kill(starting[0], signal.SIGSTOP)
        before = get_reserve(daemon)
        # There are two before the first of them, and one afterwards.
        for tenant in "alice", "bob":
            daemon.run("vectoradd", env=as_tenant(tenant)).expect()
        wait_until("the other device has one again", lambda: set(get_reserve(daemon)) - set(before), PATIENCE, each=0.3)
        os.kill(starting[0], signal.SIGCONT)


if __name__ == "__main__":
    sys.exit(main(at_once=2))
