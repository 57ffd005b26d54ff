# SPDX-License-Identifier: Apache-2.0
"""Attacks of a client on the memory that it shares with the worker, while a neighbor program runs."""
import fcntl
import os
import random
import sys
import tempfile
import threading

import attacked
import wire
from attacked import SUCCESS, Attacked, expect_one_ending
from harness import SANITIZED, Daemon, case, require, wait_until
from wire import Closed, Conn, Session, preamble

ROUNDS = 5 if SANITIZED else 20
SEAL, SHRINK, GROW, WRITE = 1, 2, 4, 8

def refused(function, *args):
    try:
        function(*args)
    except PermissionError:
        return
    raise AssertionError(f"{function.__name__}{args} is allowed")

@case("the memory of a lane has its size for ever, and a hole in it harms the client alone")
def _():
    with Attacked() as target, Session(wire.Shm(target.local)) as session:
        lane = session.lane
        require(fcntl.fcntl(lane.file, fcntl.F_GET_SEALS) & 7 == SEAL | SHRINK | GROW, "it is not sealed")
        refused(os.ftruncate, lane.file, 0)
        refused(os.ftruncate, lane.file, 4096)
        refused(os.ftruncate, lane.file, 1 << 24)
        refused(fcntl.fcntl, lane.file, fcntl.F_ADD_SEALS, WRITE)
        require(session.create_context() == SUCCESS, "no context")
        # All positions are 0 again, which is not a valid state.
        lane.memory[:] = bytes(len(lane.memory))
        try:
            lane.wake()
        except Closed:
            pass
        lane.wait_closed()
        expect_one_ending(target, session.id, ".*has broken the ring")

@case("positions that cannot be end the session, in either ring")
def _():
    with Attacked() as target:
        for tail in (0x80000000, 0xffffffff, (1 << 19) + 1):
            with Session(wire.Shm(target.local)) as session:
                session.lane.set_word(0, 0, tail)
                # A worker that polls the ring has ended the session already.
                try:
                    session.lane.wake()
                except Closed:
                    pass
                session.lane.wait_closed()
                expect_one_ending(target, session.id, ".*has broken the ring")
        with Session(wire.Shm(target.local)) as session:
            session.lane.set_word(1, 128, 4711)
            # The answer is written before the place is looked at.
            try:
                session.create_context()
            except Closed:
                pass
            expect_one_ending(target, session.id, ".*has broken the ring")

@case("bytes that change while they are read are what they were at one moment")
def _():
    with Attacked() as target:
        for seed in range(ROUNDS):
            chance = random.Random(seed)
            session = Session(wire.Shm(target.local))
            session.create_context()
            over = threading.Event()

            def change(lane=session.lane, chance=chance, over=over):
                while not over.is_set():
                    at = lane.PAGE + (lane.tail + chance.randrange(-64, 64)) % lane.ring
                    lane.memory[at] = chance.randrange(256)
            thread = threading.Thread(target=change, daemon=True)
            thread.start()
            try:
                for _ in range(200):
                    session.post("gpFence")
                    session.post("cuStreamCreateWithPriority", {"phStream": chance.randrange(2, 64)})
            except (Closed, TimeoutError):
                pass
            over.set()
            thread.join()
            session.close()
            wait_until("the session has ended", lambda session=session: str(session.id) in attacked.endings(target), 60)

@case("a client that consumes no wake-ups, and requests one with every byte, blocks no other client")
def _():
    with Attacked() as target, Session(wire.Shm(target.local)) as session:
        require(session.create_context() == SUCCESS, "no context")
        for _ in range(2000):
            session.lane.set_word(1, 192, 1)
            require(session.ask("gpFence", acting=0)[0] == SUCCESS, "no fence")

@case("a client that leaves in the middle of a copy is noticed, although records of it are unread")
def _():
    with tempfile.TemporaryDirectory() as folder, Daemon("--listen", f"unix://{folder}/socket") as daemon:
        with Session(wire.Shm(f"{folder}/socket"), lanes=4) as session:
            require(session.create_context() == SUCCESS, "no context")
            require(session.map(0, 8 << 20) == SUCCESS, "no memory")
            session.post("gpCopyInLanes", {"stream": 1, "dst": session.base, "size": 3 << 20, "flags": 0, "copy": 1})
            session.post("gpFence", {})
            session.lane.close()
            wait_until("it is noticed", lambda: "the client closed it in the middle of a copy" in daemon.log(), 60)


@case("memory is for local sockets alone, and for the ticket's session")
def _():
    with Attacked() as target:
        with Session(target.port, lane=False) as session, Conn(target.port) as lane:
            lane.send(preamble(wire.LANE_SHM, 0, session.ticket))
            lane.wait_closed()
            wait_until("the log has the reason", lambda: "through shared memory, not over a local socket: closed" in target.log(), 20)
        with Conn(target.local) as lane:
            lane.send(preamble(wire.LANE_SHM, 0, bytes(31) + b"x"))
            require(lane.socket.recv(64) == b"", "a stranger gets something")

if __name__ == "__main__":
    sys.exit(attacked.run())
