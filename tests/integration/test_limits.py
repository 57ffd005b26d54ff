# SPDX-License-Identifier: Apache-2.0
"""Every limit of gpupoold(8) on connections without a session is reached by one peer, while another one works and is
not affected. Where the address counts, the attacker's machine is in a network of the case. test_limits_sessions.py
tests the limits of sessions."""
import os
import resource
import signal
import socket
import struct
import threading
import time

import wire
from harness import Certificates, Daemon, Encrypted, Skip, case, require, wait_until
from limiting import (ALICE, ATTACKER, FAR, NOBODY, SOON, SUCCESS, AtOnce, Held, answer_kinds, become, comes_in, expect_closed,
                      is_open, neighbour, own_network, refusal, run_cases)
from pool import Pool, token_of
from wire import LANE, Conn, Session, field, hello, message, preamble


@case("silent connections use the slots of their address and no others")
@own_network
def silent_address():
    with Daemon() as daemon:
        silent = [Conn(daemon.port, source=FAR) for _ in range(400)]
        neighbour(daemon)
        # Those that are silent make room for those that wait, and the last are closed when their time is over.
        wait_until("some are closed", lambda: sum(not is_open(c) for c in silent) >= 100, 60)
        neighbour(daemon)
        for conn in silent:
            expect_closed(conn, 25)
            conn.close()
        lines = [line for line in daemon.log().splitlines() if f"//{FAR}:" in line]
        require(100 <= len(lines) < 150, f"{len(lines)} lines of the log")
        daemon.wait_for_log(rf"warning: {FAR}: \d+ further lines suppressed", 70)
        require(daemon.log().count("further lines suppressed") < 5, "the lines about lines are many")
        # It is not held against it later: it is asked for credentials as others are.
        with Conn(daemon.port, source=FAR) as conn:
            conn.send(preamble() + message(hello()))
            require("credentials" in refusal(conn), "another reason")


@case("connections that are closed before the daemon accepts them cost nothing, and delay no other client")
@own_network
def closed_again():
    with Daemon("--log-level", "debug") as daemon:
        with AtOnce(daemon):
            for sent in (b"", b"x", preamble(), preamble() + message(hello())):
                for _ in range(300):
                    with Conn(daemon.port, source=FAR) as conn:
                        conn.send(sent)
            conn = Conn(daemon.port)
            conn.send(preamble() + message(hello()))
        require(2 in answer_kinds(conn), "no welcome")
        conn.close()
        # No thread was made for one of them.
        require(f"tcp://{FAR}" not in daemon.log(), "a closed connection was taken")
        # Records of a lane may count though its peer has closed it.
        with AtOnce(daemon), Conn(daemon.port, source=FAR) as conn:
            conn.send(preamble(LANE))
        daemon.wait_for_log(rf"tcp://{FAR}:\d+: a lane with an unknown ticket")
        neighbour(daemon)


@case("programs that all come at once come in, each with the connection that is to be its lane")
def _():
    with Daemon() as daemon:
        os.kill(daemon.pid, signal.SIGSTOP)
        conns = []
        for _ in range(300):
            conns.append(Conn(daemon.port, seconds=60))
            conns[-1].send(preamble() + message(hello(more=field(16, 1))))
            conns.append(Conn(daemon.port))
        os.kill(daemon.pid, signal.SIGCONT)
        for i, conn in enumerate(conns[::2]):
            conn.take(64)
            require(10 in wire.fields_of(conn.take_message()[0]), f"program {i} does not get its devices")
        for conn in conns:
            conn.close()
        neighbour(daemon)


@case("a connection that has started its handshake keeps its slot longer than a silent one")
def _():
    with Daemon() as daemon, Conn(daemon.port) as slow:
        slow.send(preamble())
        silent = [Conn(daemon.port) for _ in range(60)]
        daemon.wait_for_log(r"no session: no Hello while other connections wait")
        slow.send(message(hello()))
        require(2 in answer_kinds(slow), "it is not welcome")
        for conn in silent:
            conn.close()
        neighbour(daemon)


@case("an address that connects again and again does not keep out other addresses")
@own_network
def busy_addresses():
    with Daemon() as daemon:
        stop, count = threading.Event(), [0]

        def attack(number):
            held = []
            while not stop.is_set():
                try:
                    held.append(Conn(daemon.port, source=f"10.9.0.{number}"))
                    count[0] += 1
                except OSError:
                    time.sleep(0.01)
                for conn in held[:-200]:
                    conn.close()
                held = held[-200:]
            for conn in held:
                conn.close()

        threads = [threading.Thread(target=attack, args=(number,)) for number in (2, 3)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(3):
                neighbour(daemon)
                # By hand, too: each is welcomed at once.
                for _ in range(10):
                    begin = time.monotonic()
                    Session(daemon.port, lane=False).close()
                    require(time.monotonic() - begin < SOON, "a welcome took too long")
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        require(count[0] > 500, f"only {count[0]} connections: that was no attack")


@case("when each of many addresses has one connection, who comes last has a turn, and the daemon's own user the first")
@own_network
def many_addresses():
    with Pool() as pool:
        with AtOnce(pool):
            others = [Conn(pool.port, source=f"10.9.1.{i}") for i in range(1, 201)]
            # Without credentials: it is known whose they are.
            own = [Conn(pool.port) for _ in range(20)]
            others += [Conn(pool.port, source=f"10.9.2.{i}") for i in range(1, 251)]
            last = Conn(pool.port, source=FAR)
            for conn in [*own, last]:
                conn.send(preamble() + message(hello()))
        for conn in own:
            require(2 in answer_kinds(conn), "no welcome")
        require(3 in answer_kinds(last), "no refusal")
        for conn in [*own, last, *others]:
            conn.close()


@case("each user of this machine has one part of its connections, from any address")
def _():
    if os.geteuid() != 0:
        raise Skip("only root can be other users")
    with Pool() as pool:
        right = field(9, token_of(pool.create("alice")[0]))
        local = pool.local[len("unix://"):]

        def alice(address):
            conn = Conn(address)
            conn.send(preamble() + message(hello(more=right)))
            return conn

        def hasty():
            """The owner of its sockets is not known any more."""
            conns = many()
            for conn in conns:
                conn.socket.shutdown(socket.SHUT_WR)
            return conns

        def many():
            return [Conn(pool.port, source=f"127.1.{i % 7}.{i % 250 + 1}") for i in range(450)]

        for address, attack in ((local, lambda: [Conn(local) for _ in range(450)]), (pool.port, many), (pool.port, hasty)):
            with AtOnce(pool):
                attackers = Held(NOBODY, attack)
                conn = become(ALICE, alice, address)
            with attackers:
                begin = time.monotonic()
                require(2 in answer_kinds(conn), "no welcome")
                require(time.monotonic() - begin < SOON, "she had to wait")
                conn.close()
                neighbour(pool)


@case("a byte from time to time does not make the handshake longer, unencrypted and inside of TLS")
def _():
    said = message(hello())
    with Certificates() as certificates, Encrypted(certificates) as daemon:
        drips = []
        for port, begin, rest in ((daemon.clear_port, b"", preamble()), (daemon.clear_port, preamble(), said),
                                  (daemon.port, preamble(wire.CONTROL_TLS), b"\x16\x03\x01\x02\x00\x01" + bytes(500))):
            conn = Conn(port, source=ATTACKER)
            conn.send(begin)
            if begin:
                conn.take(64)
            drips.append((conn, rest))
        begin = time.monotonic()
        ended = set()
        for i in range(40):
            for k, (conn, rest) in enumerate(drips):
                try:
                    conn.socket.send(rest[i:i + 1])
                except OSError:
                    ended.add(k)
            if len(ended) == len(drips):
                break
            if i == 4:
                neighbour(daemon)
            time.sleep(0.5)
        require(len(ended) == len(drips), f"only {ended} have ended")
        require(time.monotonic() - begin < 18, "they had too much time")
        for conn, _rest in drips:
            conn.close()


@case("before Hello a message has 16 KiB at most, and more afterwards")
def _():
    with Daemon() as daemon:
        for size in (16384 + 1, 262144, 0xffffffff):
            with Conn(daemon.port, source=ATTACKER) as conn:
                conn.send(preamble() + struct.pack("<II", size, 0))
                conn.take(64)
                expect_closed(conn, 5)
        daemon.wait_for_log(r"no session: the peer sent a message of 16385 bytes, over the limit")
        with Session(daemon.port, lane=False, more=field(8, field(1, 1 << 40)) * 1000) as session:
            avoid = b"".join(field(1, field(1, i << 30) + field(2, 1 << 29)) for i in range(5000))
            require(len(avoid) > 16384, "too short to show anything")
            session.control.send(message(field(4, avoid)))
            require(set(wire.fields_of(session.control.take_message()[0])) == {5}, "no answer")
        neighbour(daemon)


@case("failed logins are answered later and later, the right ones at once, from the same address, too")
@own_network
def failed_logins():
    wrong = field(9, "gpt_" + "z" * 10 + "_" + "a" * 52)
    with Pool() as pool:
        right = field(9, token_of(pool.create("alice")[0]))
        begin = time.monotonic()
        conns = [Conn(pool.port, source=ATTACKER) for _ in range(20)]
        times = []
        for i, conn in enumerate(conns):
            conn.send(preamble() + message(hello(more=wrong)))
            if i < 10:
                require("unknown token" in refusal(conn), "another reason")
                times.append(time.monotonic() - begin)
        with Session(pool.port, source=ATTACKER, more=right) as session:
            require(session.create_context() == SUCCESS, "no context")
        with Conn(pool.port, source=FAR) as conn:
            conn.send(preamble() + message(hello(more=wrong)))
            refusal(conn)
        at_once = time.monotonic() - begin
        for conn in conns[10:]:
            refusal(conn)
            times.append(time.monotonic() - begin)
            conn.close()
        require(times[9] < 2 and at_once < 2, f"those that may be answered at once were not: {times}, {at_once}")
        require(min(times[10:]) >= 2, f"too early: {times}")
        for conn in conns:
            conn.close()
        neighbour(pool)


@case("connections without a session leave descriptors for the administrator and for sessions")
def _():
    with Pool() as pool:
        with Session(pool.port) as session:
            require(session.create_context() == SUCCESS, "no context")
            before = resource.prlimit(pool.pid, resource.RLIMIT_NOFILE)
            # Of these a quarter is kept back.
            resource.prlimit(pool.pid, resource.RLIMIT_NOFILE, (160, before[1]))
            held = [Conn(pool.port, source=f"127.0.0.{2 + i % 3}") for i in range(240)]
            pool.wait_for_log(r"closed: out of file descriptors")
            require(pool.sessions() == ["default"], "the administrator does not get through")
            require(session.map(0, session.granularity) == SUCCESS, "the session suffers")
            for conn in held:
                conn.close()
            wait_until("it comes in again", lambda: comes_in(pool), 60)
            resource.prlimit(pool.pid, resource.RLIMIT_NOFILE, before)
        neighbour(pool)


if __name__ == "__main__":
    run_cases()
