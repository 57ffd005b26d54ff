# SPDX-License-Identifier: Apache-2.0
"""The memory that all sessions together use on the daemon's machine has a limit, and each session a part of it."""
import sys

from harness import SANITIZED, Configured, case, main, read_file, require, wait_until
from hostile import SUCCESS
from wire import Closed, Session, record

MIB = 1 << 20
OUT_OF_MEMORY = 2
EVENT = 256  # bytes that an event counts for, in addition to its table entry
MIN = 4 * MIB


def with_function(session):
    """Later records wait until the function is reported as done."""
    session.create_context()
    require(session.map(0, session.granularity) == SUCCESS, "map")
    session.post("cuStreamCreateWithPriority", {"phStream": 5, "flags": 1})
    session.post("gpHostFunction", {"stream": 5, "function": 9})
    session.wait_turn()


def make_events(session, first, count):
    """How many of them there is memory for."""
    session.notes = []
    for at in range(first, first + count, 4000):
        session.send(b"".join(record("cuEventCreate", {"phEvent": name}, 0, 1)
                              for name in range(at, min(at + 4000, first + count))))
    require(session.ask("gpFence")[0] in (SUCCESS, OUT_OF_MEMORY), "the session has ended")
    errors = session.errors()
    require(all(result == OUT_OF_MEMORY for result, _, _ in errors), f"another error: {errors[:3]}")
    made, not_made = first, first + count  # below it is made, from here on it is not
    if not errors:
        return count
    while made < not_made:
        middle = (made + not_made) // 2
        if session.ask("cuEventQuery", {"hEvent": middle})[0] == SUCCESS:
            made = middle + 1
        else:
            not_made = middle
    return made - first


def drop_events(session, first, count):
    for at in range(first, first + count, 4000):
        session.send(b"".join(record("cuEventDestroy_v2", {"hEvent": name}, 0, 1)
                              for name in range(at, min(at + 4000, first + count))))
    require(session.ask("gpFence")[0] == SUCCESS, "events cannot be dropped")


def resident(pid):
    return int(next(line for line in read_file(f"/proc/{pid}/status").splitlines() if line.startswith("VmRSS")).split()[1])


@case("records after host functions: 64 MiB each while there is room, then 4, and the session's end frees them")
def _():
    with Configured("[daemon]\nhost-memory = 136M\n") as daemon:
        first = Session(daemon.port)
        second = Session(daemon.port)
        require((first.max_held, second.max_held) == (64 * MIB, MIN), f"{first.max_held} and {second.max_held} bytes")
        first.close()
        wait_until("its part is free", lambda: room_again(daemon), 60)
        second.close()


def room_again(daemon):
    with Session(daemon.port) as session:
        return session.max_held == 64 * MIB


@case("a session that sends more than its part after a host function is ended; programs wait, and finish")
def _():
    with Configured("[daemon]\nhost-memory = 16M\n") as daemon:
        session = Session(daemon.port)
        with_function(session)
        for _ in range(2):  # of 2 MiB each, of which the second is not all that there is room for
            try:
                session.copy_in(session.base, bytes(session.granularity), flags=0, stream=5)
            except Closed:
                pass
        daemon.wait_for_log("closed: it sent more than 4 MiB after a host function")
        session.close()
        daemon.run("callbacks", "flood", "150").expect(out="callbacks: ok\n", err="")


@case("programs beside others whose host functions never end take no more memory than they may")
def _():
    with Configured("[daemon]\nhost-memory = 16M\n", env={"GPUPOOL_WINDOW_SIZE": str(256 * MIB)}) as daemon:
        worker, = daemon.workers()
        sessions = [Session(daemon.port) for _ in range(12)]
        for session in sessions:
            with_function(session)
        before = resident(worker)
        for session in sessions:
            session.copy_in(session.base, bytes(MIB), flags=0, stream=5)
            session.copy_in(session.base, bytes(MIB), flags=0, stream=5)
        daemon.run("callbacks", "flood", "20").expect(out="callbacks: ok\n", err="")
        if not SANITIZED:
            require(resident(worker) - before < 100 << 10, f"{resident(worker) - before} KiB more")
        for session in sessions:
            session.close()


@case("names: one session's are limited by what all have, and others have their part in any case")
def _():
    with Configured("[daemon]\nhost-memory = 16M\n") as daemon:
        part, more = MIN // EVENT, 8 * MIB // EVENT
        greedy, other = Session(daemon.port), Session(daemon.port)
        greedy.create_context()
        other.create_context()
        made = make_events(greedy, 1, 2 * (part + more))
        require((part + more) * 9 // 10 < made <= part + more, f"{made} events")
        # It goes on with what it has.
        require(greedy.ask("cuEventQuery", {"hEvent": 1})[0] == SUCCESS, "the session does not work any more")
        require(make_events(other, 1, part * 8 // 10) == part * 8 // 10, "another session has not its part")
        require(make_events(other, part, part) < part, "there is more than there may be")
        daemon.check_works()
        # The memory of dropped events is available to other sessions.
        drop_events(greedy, 1, made // 2)
        require(make_events(other, 2 * part, part // 2) == part // 2, "the memory of dropped events is not available")
        greedy.close()
        # Of its two connections either may be seen to end first.
        daemon.wait_for_log(rf"session {greedy.id} .*: closed: ")
        require(make_events(other, 3 * part, part) == part, "the memory of an ended session is not available")
        other.close()


if __name__ == "__main__":
    sys.exit(main())
