# SPDX-License-Identifier: Apache-2.0
"""Sessions of class tenant: those of one tenant share a worker, which is started on demand; others have none of it."""
import os
import re
import signal
import sys

from harness import (PATIENCE, SANITIZED, SOFTWARE, Skip, as_tenant, case, main, read_file, require, software_env, wait_until)
from wire import Closed, Conn, Listener, field, fields_of, hello, message, preamble, recv_refusal, recv_reply, varint
from workers import Workers, stay

SOON = 30 if SANITIZED else 2
TENANTS = "[daemon]\nworker-idle-timeout = {idle}\n[tenant alice]\n[tenant bob]\n"
SHARED = "[daemon]\nisolation = shared\n"
# So that a worker can be seen before it is ready.
SLOW = software_env(GPUPOOL_SOFT_START_MS="400")


def request(daemon, tenant, isolation):
    conn = Conn(daemon.port, PATIENCE)
    conn.send(preamble() + message(hello(more=field(14, tenant) + field(13, field(4, isolation)))))
    return conn


@case("sessions of a tenant share its worker, and another tenant has another")
def _():
    with Workers(TENANTS.format(idle=60)) as daemon:
        require(daemon.list() == [("reserve", "", 0)], str(daemon.list()))
        programs = [stay(daemon, "alice"), stay(daemon, "alice"), stay(daemon, "bob")]
        require(daemon.list() == [("tenant", "alice", 2), ("tenant", "bob", 1)], str(daemon.list()))
        for program in programs:
            program.finish().expect()
        # The worker stays for the next session.
        wait_until("all sessions have ended", lambda: not daemon.open_sessions(), PATIENCE)
        before = daemon.workers()
        daemon.run("vectoradd", env=as_tenant("alice")).expect(out="vectoradd: ok\n", err="")
        require(daemon.workers() == before, "another worker was started")


def ledger_mappings(pid):
    """{(name, inode): permissions} of the parts of the ledger that a process has mapped."""
    found = {}
    for line in read_file(f"/proc/{pid}/maps").splitlines():
        part = re.search(r"^\S+ (\S+) \S+ \S+ (\d+) +/memfd:(gpupool-(?:ledger|tenant)) ", line)
        if part:
            found.setdefault((part[3], part[2]), set()).add(part[1])
    return found


@case("a worker has no writable mapping of the ledger but of its own tenant's part")
def _():
    if os.geteuid() != 0:
        raise Skip("only root sees the mappings of the daemon's processes")
    with Workers(TENANTS.format(idle=60)) as daemon:
        programs = [stay(daemon, "alice"), stay(daemon, "alice"), stay(daemon, "bob")]
        written = {}
        for row in daemon.rows():
            mappings = ledger_mappings(row["pid"])
            require([seen for (name, _), seen in mappings.items() if name == "gpupool-ledger"] == [{"r--s"}], str(mappings))
            parts = {inode for (name, inode), seen in mappings.items()
                     if name == "gpupool-tenant" and "rw-s" in seen}
            require(len(parts) == (1 if row["tenant"] else 0), f"{row}: {mappings}")
            written[row["tenant"]] = parts
        require(written["alice"] and written["alice"].isdisjoint(written["bob"]), str(written))
        for program in programs:
            program.finish().expect()


@case("a kernel's fault ends the sessions of its tenant, and no other")
def _():
    with Workers(TENANTS.format(idle=60)) as daemon:
        bystanders = {tenant: daemon.start("sleeper", "-ms=4000", env=as_tenant(tenant)) for tenant in ("alice", "bob", "default")}
        for program in bystanders.values():
            program.wait_for_output("running")
        daemon.run("assertion", env=as_tenant("bob"))
        require(bystanders["bob"].finish().status != 0, "a session of the same context goes on")
        daemon.run("vectoradd", env=as_tenant("bob")).expect(out="vectoradd: ok\n", err="")
        bystanders["alice"].finish().expect(out="running\nsleeper: ok\n", err="")
        bystanders["default"].finish().expect(out="running\nsleeper: ok\n", err="")


@case("a tenant's worker ends when it has had no session for the configured time, but not the last one")
def _():
    with Workers(TENANTS.format(idle=1)) as daemon:
        program = stay(daemon, "alice")
        daemon.run("vectoradd", env=as_tenant("bob")).expect(out="vectoradd: ok\n", err="")
        wait_until("bob's worker is gone", lambda: daemon.list() == [("tenant", "alice", 1)], SOON)
        program.finish().expect()
        daemon.run("vectoradd", env=as_tenant("bob")).expect(out="vectoradd: ok\n", err="")
        wait_until("one of both is left", lambda: len(daemon.list()) == 1, SOON)
        daemon.run("vectoradd", env=as_tenant("alice")).expect(out="vectoradd: ok\n", err="")
        require("error:" not in daemon.log(), "the end of a worker that is not needed is logged as an error")


@case("a tenant gets a worker of the reserve, and another takes its place")
def _():
    with Workers("[daemon]\nready-workers = 1\n[tenant alice]\n") as daemon:
        daemon.reserve = 1
        wait_until("one is in reserve, besides that of the first session", lambda: daemon.ready() == 2, PATIENCE)
        daemon.take_idle()
        known = set(daemon.workers())
        program = stay(daemon, "alice")
        require(set(daemon.workers()) == known, "the worker of the reserve was not used")
        require(daemon.list() == [("reserve", "", 0), ("tenant", "alice", 1)], str(daemon.list()))
        program = [program, stay(daemon, "alice", GPUPOOL_ISOLATION="session")]
        wait_until("another is in reserve", lambda: daemon.ready() == 1 and len(daemon.workers()) == 3, PATIENCE)
        require(known < set(daemon.workers()), "the worker of the reserve was not used")
        for one in program:
            one.finish().expect()


@case("after the end of a client whose work goes on the tenant's next session gets a worker of the reserve")
def _():
    with Workers("[daemon]\nready-workers = 1\nquarantine = 0\n[tenant alice]\n", env=software_env(GPUPOOL_SOFT_NO_CANCEL="1")) as daemon:
        daemon.reserve = 1
        bystander = stay(daemon, "alice")
        for attempt in range(3):
            wait_until("one is in reserve", lambda: daemon.ready() == 1, PATIENCE)
            client = daemon.start("sleeper", "-endless", env=as_tenant("alice"))
            client.wait_for_output("running")
            client.kill()
            daemon.run("vectoradd", env=as_tenant("alice")).expect(out="vectoradd: ok\n", err="")
            before_open = daemon.log().rsplit(" vectoradd): open from", 1)[0]
            # A machine may be so slow that the program has come after these two seconds.
            if len(re.findall("new sessions use another worker", before_open)) <= attempt:
                break
        else:
            require(False, "the sessions have waited for two seconds each")
        bystander.finish().expect()
        daemon.settle(PATIENCE)


@case("without tenants a daemon has one worker, with tenants one more in reserve")
def _():
    with Workers("") as daemon:
        program = daemon.start("memhog", "16", stdin=True)
        program.wait_for_output("free after")
        require(daemon.list() == [("tenant", "default", 1)], str(daemon.list()))
        program.finish().expect()
    with Workers("# ready-workers is not set\n[tenant alice]\n") as daemon:
        wait_until("one is in reserve, besides that of the first session", lambda: daemon.ready() == 2, PATIENCE)
        daemon.reserve = 1
        daemon.take_idle()
        program = stay(daemon, "alice")
        wait_until("one is in reserve", lambda: daemon.list() == [("reserve", "", 0), ("tenant", "alice", 1)], PATIENCE)
        program.finish().expect()
    with Workers("[tenant alice]\nisolation = shared\n") as daemon:
        program = stay(daemon, "alice")
        require(daemon.list() == [("shared", "", 1)], str(daemon.list()))
        program.finish().expect()


@case("clients that arrive while their tenant's worker starts all get it")
def _():
    with Workers(TENANTS.format(idle=60), env=SLOW) as daemon:
        first = stay(daemon, "bob")
        programs = [daemon.start("vectoradd", env=as_tenant("alice")) for _ in range(4)]
        for program in programs:
            program.finish().expect(out="vectoradd: ok\n", err="")
        require(len(daemon.workers()) == 2, f"{len(daemon.workers())} workers")
        first.finish().expect()


@case("few workers of tenants start at a time, and all do")
def _():
    names = [f"tenant{i}" for i in range(7)]
    with Workers("".join(f"[tenant {name}]\n" for name in names), env=SLOW) as daemon:
        programs = [daemon.start("vectoradd", env=as_tenant(name)) for name in names]
        most = 0
        while any(program.process.poll() is None for program in programs):
            most = max(most, sum(row["state"] == "starting" for row in daemon.rows()))
        require(1 <= most <= 4, f"{most} at a time")
        for program in programs:
            program.finish().expect(out="vectoradd: ok\n", err="")
        require(len(daemon.workers()) == len(names), f"{len(daemon.workers())} workers")


@case("a tenant's worker that is killed while it starts is replaced, and its clients notice nothing")
def _():
    with Workers(TENANTS.format(idle=60), env=SLOW) as daemon:
        first = stay(daemon, "bob")
        known = daemon.workers()
        program = daemon.start("vectoradd", env=as_tenant("alice"))
        pid, = wait_until("a worker starts", lambda: [pid for pid in daemon.workers() if pid not in known], SOON)
        os.kill(pid, signal.SIGKILL)
        program.finish().expect(out="vectoradd: ok\n")
        require(pid not in daemon.workers(), "it was not killed")
        first.finish().expect()


@case("a client can request a stricter class, and no looser one")
def _():
    with Workers(SHARED + "[tenant alice]\n[tenant apart]\nisolation = tenant\n") as daemon:
        programs = [stay(daemon, "alice"), stay(daemon, "alice", GPUPOOL_ISOLATION="tenant"),
                    stay(daemon, "apart", GPUPOOL_ISOLATION="shared"), stay(daemon, "apart", GPUPOOL_ISOLATION="session")]
        require(daemon.list() == [("session", "apart", 1), ("shared", "", 1), ("tenant", "alice", 1), ("tenant", "apart", 1)],
                str(daemon.list()))
        for program in programs:
            program.finish().expect()


@case("a quota of multiprocessors needs one context: its tenant shares a worker, the log reports it, and no client escapes")
def _():
    text = "[tenant alice]\nsm = 50%\n[tenant bob]\nsm = 50%\nisolation = tenant\n"
    with Workers(text) as daemon:
        daemon.wait_for_log("info: tenant alice: runs as isolation = shared, because of the key sm")
        daemon.wait_for_log(r"warning: .*\[tenant bob\]: isolation = tenant: its kernels run on the multiprocessors of sm")
        programs = [stay(daemon, "alice"), stay(daemon, "bob")]
        require(daemon.list() == [("shared", "", 1), ("tenant", "bob", 1)], str(daemon.list()))
        for isolation, number in (("tenant", 3), ("session", 2)):
            why = f"tenant alice may not have sessions with isolation = {isolation} (they would escape its quota, the key sm)"
            result = daemon.run("vectoradd", env=as_tenant("alice", GPUPOOL_ISOLATION=isolation))
            require(result.status != 0 and why in result.err, str(result))
            require(recv_refusal(request(daemon, "alice", number)) == why, "another reason")
        for program in programs:
            program.finish().expect()


@case("a device with a policy or with virtual devices keeps its tenants in one worker")
def _():
    for key in ("policy = equal", "virtual-number = 2"):
        with Workers(f"[device *]\n{key}\n[tenant alice]\n") as daemon:
            daemon.wait_for_log(f"info: tenant alice: runs as isolation = shared, because of the key {key.split()[0]}")
            program = stay(daemon, "alice")
            require(daemon.list() == [("shared", "", 1)], str(daemon.list()))
            program.finish().expect()


@case("where the class is shared, a client cannot escape a quota of multiprocessors either")
def _():
    for text in (SHARED + "[tenant alice]\nsm = 50%\n", "[tenant alice]\nisolation = shared\nsm = 50%\n"):
        with Workers(text) as daemon:
            require("runs as" not in daemon.log(), "a class that is as configured is reported")
            require(recv_refusal(request(daemon, "alice", 3)) ==
                    "tenant alice may not have sessions with isolation = tenant (they would escape its quota, the key sm)",
                    "another reason")


@case("after a reload sessions go on where they are, and new ones have the new class")
def _():
    with Workers(SHARED + "[tenant alice]\n") as daemon:
        old = stay(daemon, "alice")
        daemon.reload("[tenant alice]\n")
        new = stay(daemon, "alice")
        require(daemon.list() == [("shared", "", 1), ("tenant", "alice", 1)], str(daemon.list()))
        daemon.reload(SHARED + "worker-idle-timeout = 1\n[tenant alice]\n")
        last = stay(daemon, "alice")
        require(daemon.list() == [("shared", "", 2), ("tenant", "alice", 1)], str(daemon.list()))
        new.finish().expect()
        wait_until("the tenant's worker is gone", lambda: daemon.list() == [("shared", "", 2)], SOON)
        for program in (old, last):
            program.finish().expect()


@case("a class that the daemon does not know is refused, not ignored")
def _():
    with Workers("[tenant alice]\n", "--insecure") as daemon:
        require(recv_refusal(request(daemon, "alice", 9)) ==
                "this daemon does not know the isolation that the client requests (number 9): update it", "another reason")
        conn = request(daemon, "alice", 3)
        require(recv_reply(conn)[0] == 2, "no welcome")
        conn.close()


class OldDaemon(Listener):
    """Relays control connections; the Welcome that passes lacks the feature of tenants' workers, as an older daemon's."""

    def __init__(self, port):
        self.port = port
        super().__init__()

    def begin(self, near_socket):
        near, far = Conn.__new__(Conn), Conn(self.port, PATIENCE)
        near.socket = near_socket
        self.sockets.append(far.socket)
        try:
            far.send(near.take(64))
        except Closed:
            # A connection that the client has made ahead and does not need.
            return
        near.send(far.take(64))
        far.send(message(near.take_message()[0]))
        (kind, (welcome,)), = fields_of(far.take_message()[0]).items()
        features, = fields_of(welcome)[6]
        without = welcome.replace(b"\x30" + varint(features), b"\x30" + varint(features & ~(1 << 5)))
        require(without != welcome, "the daemon has no such feature")
        near.send(message(field(kind, without)))


@case("an older daemon that ignores the class tenant is not used")
def _():
    with Workers("[tenant alice]\n") as daemon, OldDaemon(daemon.port) as old:
        result = daemon.run("vectoradd", env=as_tenant("alice", GPUPOOL_ISOLATION="tenant", REMOTE_GPU=old.address))
        require(result.status != 0 and "does not know GPUPOOL_ISOLATION=tenant: update it, or use session" in result.err,
                str(result))


if __name__ == "__main__":
    sys.exit(main(at_once=4 if SOFTWARE else 1))
