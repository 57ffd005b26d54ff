# SPDX-License-Identifier: Apache-2.0
"""Every limit of gpupoold(8) on sessions is reached by one peer, while another one works and is not affected.
test_limits.py tests the limits of connections without a session."""
import hashlib
import os
import re
import signal
import socket
import struct
import threading
import time
import urllib.request

import wire
from harness import Certificates, Configured, Daemon, Encrypted, Program, case, read_file, require, wait_until
from limiting import (ATTACKER, FAR, SOON, SUCCESS, comes_in, expect_closed, is_open, lost, neighbour, own_network, refusal,
                      set_loopback, run_cases)
from wire import Closed, Conn, Session, field, hello, message, preamble, record


@case("an address has at most the sessions of the configuration, and other addresses have their own")
@own_network
def many_sessions():
    with Configured("[daemon]\nsessions-per-address = 3\n", "--insecure") as daemon:
        held = [Session(daemon.port, source=FAR, lane=i > 0) for i in range(3)]
        with Conn(daemon.port, source=FAR) as conn:
            conn.send(preamble() + message(hello()))
            require("sessions-per-address" in refusal(conn), "another reason")
        neighbour(daemon)
        held.pop().close()
        wait_until("one has a place again", lambda: comes_in(daemon, source=FAR), 60)
        daemon.reload("[daemon]\nsessions-per-address = unlimited\n")
        held += [Session(daemon.port, source=FAR, lane=False) for _ in range(4)]
        for session in held:
            session.close()


@case("one request of each number in the queue is kept, at most for the time that it states")
def _():
    def queue(number, timeout_ms):
        conn = Conn(daemon.port)
        conn.send(preamble() + message(hello(more=field(17, number) + field(18, timeout_ms))))
        return conn

    def is_first(number):
        with queue(number, 0) as conn:
            return refusal(conn).endswith("; position 1 in the queue")

    with Daemon("--max-sessions", "1") as daemon, Session(daemon.port):
        require(is_first(7), "another reason")
        held = [queue(7, 60000) for _ in range(40)]
        for conn in held:
            expect_closed(conn)
            conn.close()
        # The others were closed without a word when the next one came.
        told = daemon.log().count("; position 1 in the queue")
        require(1 < told < 10, f"{told} requests were kept until their time was over")
        with queue(7, 60000) as gone:
            time.sleep(0.5)
            require(is_open(gone), "the request is not kept")
        wait_until("its number is given up", lambda: is_first(8), 15)
        begin = time.monotonic()
        with queue(8, 1600) as last:
            require(refusal(last).endswith("; position 1 in the queue"), "another reason")
        require(time.monotonic() - begin >= 1.6, "it was not kept")
        require(is_first(9), "the number of one whose time is over is still before it")


@case("a name that could be mistaken for the daemon's own words is quoted in the log")
def _():
    with Daemon() as daemon:
        with Session(daemon.port, program='a b"c: open'):
            daemon.wait_for_log(r'session \d+ \(test \d+ "a b\\"c: open"\): open from')
        daemon.wait_for_log(r'session \d+ \(test \d+ "a b\\"c: open"\): closed: ')
        # The log is the same if the worker cannot report how the session ended.
        with Session(daemon.port, program='a b"c: open'):
            daemon.wait_for_log(r"open from", count=2)
            os.kill(daemon.workers()[0], signal.SIGKILL)
            daemon.wait_for_log(r'session \d+ \(test \d+ "a b\\"c: open"\): closed: the worker was killed')
        wait_until("there is another worker", lambda: comes_in(daemon), 60)


@case("sessions that map the same memory again and again leave the worker the mappings that others need")
def _():
    def place(session, first, count):
        session.send(b"".join(record("gpMemoryPlace", {"memory": 9, "address": session.base + i * session.granularity,
                                                       "size": session.granularity}, 0, 1) for i in range(first, first + count)))
        require(session.ask("gpFence")[0] == SUCCESS, "the session is over")

    def fill(session):
        """Maps until a mapping is refused."""
        require(session.create_context() == SUCCESS, "no context")
        require(session.ask("gpMemoryCreate", {"memory": 9, "size": session.granularity, "device": 0})[0] == SUCCESS, "no memory")
        first = 1
        while not session.errors() and first < 6000:
            place(session, first, 500)
            first += 500
        require({result for result, _, _ in session.errors()} == {2}, f"{session.errors()[:3]}")

    def count_mappings(daemon):
        with open(f"/proc/{daemon.workers()[0]}/maps") as maps:
            return sum(1 for _ in maps)

    with Daemon() as daemon:
        workers, before = daemon.workers(), count_mappings(daemon)
        hogs = [Session(daemon.port) for _ in range(4)]
        for hog in hogs:
            fill(hog)
        daemon.wait_for_log("refused a mapping of device memory: it has")
        # The system lets a process have 65530.
        require(8192 < count_mappings(daemon) - before < 20000, f"{count_mappings(daemon)} mappings")
        with Session(daemon.port) as session:
            require(session.create_context() == SUCCESS, "a new session has no context")
            for i in range(8):
                require(session.map(i * session.granularity, session.granularity) == SUCCESS, "a new session has no memory")
        neighbour(daemon)
        # A mapping that is unmapped makes room for another one.
        hog = hogs[0]
        hog.post("gpMemoryUnmap", {"address": hog.base + hog.granularity, "size": hog.granularity})
        hog.notes.clear()
        place(hog, 1, 1)
        require(not hog.errors(), f"{hog.errors()}")
        for hog in hogs:
            hog.close()
        wait_until("the mappings are gone", lambda: count_mappings(daemon) < before + 200, 60)
        neighbour(daemon)
        require(daemon.workers() == workers, "the worker was replaced")


@case("a session without its first lane is given up, and so is one that asks for windows for ever")
def _():
    with Daemon() as daemon:
        lonely = Session(daemon.port, lane=False, source=ATTACKER)
        with Session(daemon.port, lane=False, source=ATTACKER) as session:
            for _ in range(16):
                session.control.send(message(field(4, field(2, 1 << 30))))
                require(set(wire.fields_of(session.control.take_message()[0])) == {5}, "no answer")
            session.control.send(message(field(4, field(2, 1 << 30))))
            require(lost(session.control) == "too many WindowRequests", "another reason")
            expect_closed(session.control)
        # One that does not wait for the answers, beside one that does.
        with Session(daemon.port, lane=False, source=ATTACKER) as hasty, Session(daemon.port, lane=False) as patient:
            try:
                hasty.control.send(message(field(4, field(2, 1 << 30))) * 1000)
            except Closed:
                pass
            for _ in range(5):
                patient.control.send(message(field(4, field(2, 1 << 30))))
                require(set(wire.fields_of(patient.control.take_message()[0])) == {5}, "no answer")
            expect_closed(hasty.control)
        daemon.wait_for_log(rf"session {hasty.id} .*: (unexpected WindowRequest|"
                            r"control connection: too many pending WindowRequests)")
        neighbour(daemon)
        expect_closed(lonely.control, 20)
        lonely.close()
        daemon.wait_for_log(r"no lane within the timeout")


@case("lanes that are half open are closed, and cost neither their session nor another one anything")
def _():
    with Daemon(env={"GPUPOOL_STALL_MS": "3000"}) as daemon:
        owner = Session(daemon.port, lanes=4)
        owner.create_context()
        require(owner.map(0, 8 << 20) == SUCCESS, "map")
        whole = preamble(wire.LANE, 1, owner.ticket)
        # Nothing, a part of what the session's lane would begin with, and that a byte at a time.
        half = [Conn(daemon.port, source=ATTACKER) for _ in range(3)]
        half[1].send(whole[:63])
        begin = time.monotonic()
        sent = 0
        # They would take sixteen seconds, or longer on a busy machine: if each gave it more time, all would go.
        while is_open(half[2]):
            require(sent < 63, "a byte from time to time keeps a connection half open")
            try:
                half[2].send(whole[sent:sent + 1])
            except (Closed, OSError):
                break
            sent += 1
            require(owner.copy_out(owner.base, 4096)[0] == SUCCESS, "the owner suffers")
            time.sleep(0.25)
        for conn in half:
            expect_closed(conn)
            conn.close()
        require(time.monotonic() - begin > 9, "that was before the documented time")
        # The lane can still connect; silence for longer than a message may take is valid.
        with owner.connect_lane(1) as lane:
            time.sleep(5)
            require(is_open(lane), "a lane between messages was closed")
            require(owner.copy_out(owner.base, 4096)[0] == SUCCESS, "the owner suffers from its silent lane")
            neighbour(daemon)
            # In the middle of a chunk it is: the session has counted on it.
            lane.send(message(struct.pack("<IIQ", 1, 0, 0), bytes(1 << 20))[:1000])
            begin = time.monotonic()
            daemon.wait_for_log(rf"session {owner.id} .*: closed: .*lane")
            require(time.monotonic() - begin > 2, "too early")
        expect_closed(owner.control)
        owner.close()
        neighbour(daemon)


def is_passed_on(daemon, conn):
    """Whether the daemon's supervisor has accepted this connection over loopback and has passed it on to a worker."""
    ends = tuple(f"0100007F:{port:04X}" for port in (daemon.port, conn.socket.getsockname()[1]))
    rows = [row.split() for row in read_file("/proc/net/tcp").splitlines()[1:]]
    inodes = {row[9] for row in rows if (row[1], row[2]) == ends} - {"0"}
    own = set()
    for name in os.listdir(f"/proc/{daemon.process.pid}/fd"):
        try:
            own.add(os.readlink(f"/proc/{daemon.process.pid}/fd/{name}"))
        except FileNotFoundError:
            pass  # closed meanwhile
    return bool(inodes) and not any(f"socket:[{inode}]" in own for inode in inodes)


def counted(daemon, reason):
    """Clients that were refused for this reason."""
    url = re.search(r"^metrics at (\S+)$", read_file(daemon.out_path), re.M)[1]
    with urllib.request.urlopen(url, timeout=20) as answer:
        found = re.search(rf'^gpupool_refused_clients_total{{reason="{reason}"}} (\d+)$', answer.read().decode(), re.M)
    return int(found[1]) if found else 0


@case("a client with a ticket's name but no key, or with neither, is counted, fills no log and costs the session nothing")
def _():
    with Certificates() as certificates, Encrypted(certificates, "--metrics=127.0.0.1:0") as daemon:
        with Session(daemon.clear_port, lanes=4) as owner:
            owner.create_context()
            name = hashlib.sha256(b"gpupool ticket name" + owner.ticket).digest()
            for _ in range(130):
                with Conn(daemon.port) as conn:
                    conn.send(preamble(wire.LANE_TLS, 1, name) + bytes(200))
            # One that is gone when the worker gets it.
            worker = daemon.workers()[0]
            os.kill(worker, signal.SIGSTOP)
            try:
                with Conn(daemon.port) as conn:
                    conn.send(preamble(wire.LANE_TLS, 1, name))
                    wait_until("the worker has the connection", lambda: is_passed_on(daemon, conn), 60)
                    conn.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            finally:
                os.kill(worker, signal.SIGCONT)
            for _ in range(5):
                with Conn(daemon.port) as conn:
                    conn.send(preamble(wire.LANE_TLS, 1, bytes(32)))
                    expect_closed(conn)
            wait_until("all are counted", lambda: counted(daemon, "unknown_ticket") == 136, 60)
            require(owner.map(0, owner.granularity) == SUCCESS, "the session suffers")
        neighbour(daemon)
        lines = daemon.log().count("a lane (1) is refused")
        require(90 <= lines < 110, f"{lines} lines of the log")


@case("a client that connects again and again fills no log, and loses no line with some sessions a second")
@own_network
def come_and_go():
    def opened(log, peer):
        return len(re.findall(rf": open from tcp://{peer}:", log))

    def closed(log, level, program):
        return len(re.findall(rf": {level}: session \d+ \([^)]* {program}\): closed: ", log))

    def come(program, count, violate, source=FAR):
        for _ in range(count):
            with Session(daemon.port, source=source, program=program) as session:
                session.create_context()
                require(session.map(0, session.granularity) == SUCCESS, "map")
                if violate:
                    session.send(bytes(64))
                    expect_closed(session.lane)

    with Daemon("--insecure") as daemon:
        come("rough", 130, True)
        wait_until("the log has them", lambda: opened(daemon.log(), FAR) >= 130, 60)
        begin = time.monotonic()
        others = [threading.Thread(target=come, args=("quick", 200, False)) for _ in range(4)]
        for thread in others:
            thread.start()
        for thread in others:
            thread.join()
        seconds = time.monotonic() - begin
        # Another one who is heard besides.
        come("quiet", 1, False, source=None)
        wait_until("the neighbour's lines", lambda: closed(daemon.log(), "info", "quiet") == 1, 60)
        log = daemon.log()
        require(opened(log, "127.0.0.1") == 1, "the neighbour's first line is missing")
        warnings, news = closed(log, "warning", "rough"), opened(log, FAR) + closed(log, "info", "quick")
        require(100 <= warnings < 125, f"{warnings} warnings of 130")
        # 130 and twice 800 would be all; the number that the limit allows again meanwhile depends on the machine.
        require(900 <= news <= 1010 + 10 * (seconds + 15), f"{news} lines of 1730 in {seconds:.0f} s")
        daemon.wait_for_log(rf"warning: sessions of tenant default from {FAR}: \d+ further lines suppressed, "
                            r"\d+ of them warnings", 70)
        require(daemon.log().count("further lines suppressed") < 5, "the lines about lines are many")


@case("a client that faults in a process of its own again and again fills no log")
def _():
    def count_lines(log):
        return len(re.findall(r": warning: session \d+ .*: closed: |the driver, with work of|has lost its GPU contexts", log))

    with Daemon() as daemon:
        begin = time.monotonic()
        for _ in range(110):
            with Session(daemon.port) as session:
                session.create_context()
                session.send(bytes(64))
                expect_closed(session.lane)
        wait_until("the log has had room for no more", lambda: count_lines(daemon.log()) >= 100, SOON)
        for _ in range(10):
            daemon.run("sticky", env={"GPUPOOL_ISOLATION": "process"}).expect()
        wait_until("their processes have ended", lambda: len(daemon.workers()) == 1, SOON)
        lines, seconds = count_lines(daemon.log()), time.monotonic() - begin
        require(100 <= lines <= 101 + seconds / 2, f"{lines} lines in {seconds:.0f} s")
        neighbour(daemon)


@case("a client that does not read its messages loses its session, after the documented time")
def _():
    with Configured("[daemon]\ntimeout = 3\n") as daemon:
        deaf = Session(daemon.port, source=ATTACKER)
        deaf.create_context()
        size = 16 * deaf.granularity
        require(deaf.map(0, size) == SUCCESS, "map")

        def make_record(session):
            return record("gpCopyOut", {"stream": 1, "src": session.base, "pitch": size, "width": size, "height": 1}, 5, 1)

        begin = time.monotonic()
        deaf.send(make_record(deaf) * 20)
        neighbour(daemon)
        # Whichever of the two threads that send notices it first.
        daemon.wait_for_log(r"session 1 .*: closed: (the peer has read nothing for 3 s|the client does not read what is sent);", 20)
        require(time.monotonic() - begin >= 2.5, "it had too little time")
        deaf.close()
        # One that reads slowly, but reads, keeps its own.
        with Session(daemon.port, source=ATTACKER) as slow:
            slow.create_context()
            require(slow.map(0, size) == SUCCESS, "map")
            slow.send(make_record(slow))
            begin, got = time.monotonic(), 0
            while time.monotonic() - begin < 8:
                time.sleep(0.25)
                got += len(slow.lane.socket.recv(256 << 10))
            require(got > 1 << 20 and is_open(slow.lane), "a slow reader was given up")


@case("an idle session ends if the configuration requires it, a session that waits for its work does not")
def _():
    with Configured("[daemon]\nidle-timeout = 3\n", env={"GPUPOOL_STALL_MS": "3000"}) as daemon:
        busy = daemon.start("sleeper", "-ms=8000")
        busy.wait_for_output("running")
        with Session(daemon.port) as session:
            session.create_context()
            begin = time.monotonic()
            expect_closed(session.lane, 15)
            require(time.monotonic() - begin > 2.5, "too early")
        daemon.wait_for_log(r"closed: it was idle for 3 s \(idle-timeout\)")
        busy.finish().expect()
        # A later session has the limit of the new configuration, and so has a session that is already idle.
        daemon.reload("[daemon]\nidle-timeout = never\n")
        with Session(daemon.port) as session:
            session.create_context()
            time.sleep(5)
            require(is_open(session.lane), "it has ended all the same")
            busy = daemon.start("sleeper", "-ms=9000")
            busy.wait_for_output("running")
            daemon.reload("[daemon]\nidle-timeout = 2\n")
            expect_closed(session.lane, 8)
            busy.finish().expect()
        # The time before the limit was set does not count as idle time.
        daemon.reload("[daemon]\nidle-timeout = never\n")
        just = daemon.start("sleeper", "-ms=5500", "-rest=1500")
        just.wait_for_output("running")
        # The daemon has polled once, and polls again when the kernel has just ended.
        time.sleep(4)
        daemon.reload("[daemon]\nidle-timeout = 2\n")
        just.finish().expect()


@case("peers that are gone without a word are noticed in less than a minute, whether a kernel runs or not")
@own_network
def lose_the_network():
    """The connections end without a closing message."""
    folder = os.environ["TMPDIR"]
    with Daemon("--listen", f"unix://{folder}/gone.sock") as daemon:
        idle = Session(daemon.port)
        idle.create_context()
        busy = daemon.start("sleeper", "-endless")
        busy.wait_for_output("running")
        set_loopback(False)
        begin = time.monotonic()
        # A GPU does not stop a kernel: that is the last line about its session in the log.
        daemon.wait_for_log(r"session \d+ .*: (closed:|orphaned work does not end)", 60, count=2)
        seconds = time.monotonic() - begin
        require(15 < seconds < 50, f"noticed after {seconds:.0f} s")
        Program("vectoradd", (), f"unix://{folder}/gone.sock").finish().expect(out="vectoradd: ok\n")
        set_loopback(True)
        busy.kill()
        idle.close()


if __name__ == "__main__":
    run_cases()
