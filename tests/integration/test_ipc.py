# SPDX-License-Identifier: Apache-2.0
"""Memory and events of one session in another one, used by hostile clients: access rights, modified handles, and the
state after one of the two sessions ends."""
import os
import sys
import threading

from harness import Configured, Daemon, case, main, require, wait_until
from hostile import SUCCESS, Host
from wire import Session, field, record

INVALID_VALUE, INVALID_CONTEXT, INVALID_HANDLE, NOT_READY, NOT_SUPPORTED = 1, 201, 400, 600, 801
INTERPROCESS = 6  # and CU_EVENT_DISABLE_TIMING
SHARE, EVENT, OPENED = 7, 8, 9
TEXT = b"known to A and B" * 16
CONFIG = "[daemon]\nisolation = shared\n[tenant other]\n[tenant small]\nmemory = 32M\n[tenant large]\nmemory = 512M\n"
# struct gp_ipc_handle
KIND, DEVICE, DAEMON, WORKER, NUMBER, SECRET, MAPPING, OFFSET = 4, 5, 8, 16, 20, 24, 40, 48

daemon = None


class Pool(Configured, Host):
    """A daemon with tenants that must remain in service."""


def start(tenant=None, more=b""):
    session = Session(daemon.port, more=(field(14, tenant) if tenant else b"") + more)
    require(session.create_context() == SUCCESS, "no context")
    return session


def give(session, granules=1, share=SHARE):
    """Maps memory with the text in it and shares it: the handle."""
    size = granules * session.granularity
    require(session.map(0, size) == SUCCESS, "no memory")
    session.copy_in(session.base, TEXT)
    require(session.ask("gpFence")[0] == SUCCESS, "fence")
    result, reply = session.ask("gpMemoryShare", {"share": share, "address": session.base, "size": size})
    require(result == SUCCESS and len(reply["handle"]) == 64, f"shared with {result}")
    return reply["handle"]


def open_memory(session, handle, offset=0, granules=1, device=0):
    """The result of opening it at this offset of the window."""
    return session.ask("gpMemoryOpen", {"address": session.base + offset, "size": granules * session.granularity,
                                        "device": device, "handle": handle})[0]


def drop(session, offset=0, granules=1):
    session.post("gpMemoryUnmap", {"address": session.base + offset, "size": granules * session.granularity})


def get_free(session):
    """Of its tenant's quota, which is less than the device has: there others may be beside."""
    result, reply = session.ask("gpMemoryInfo", {"device": 0})
    require(result == SUCCESS, f"memory info {result}")
    return reply["free"]


def reads(session, offset=0):
    return session.copy_out(session.base + offset, len(TEXT))


def changed(handle, at):
    return handle[:at] + bytes([handle[at] ^ 1]) + handle[at + 1:]


@case("another session of the tenant reads and writes the memory")
def _():
    with start() as first, start() as second:
        handle = give(first)
        require(open_memory(second, handle) == SUCCESS and reads(second) == (SUCCESS, TEXT), "B reads what A wrote")
        second.copy_in(second.base, TEXT[::-1])
        require(second.ask("gpFence")[0] == SUCCESS and reads(first) == (SUCCESS, TEXT[::-1]), "A reads what B wrote")
        require(open_memory(second, handle, 4 * second.granularity) == SUCCESS, "and again elsewhere")
        require(open_memory(second, handle) == INVALID_VALUE, "but not where something is mapped")


@case("a handle that was guessed, changed, cut off or meant for something else opens nothing")
def _():
    with start() as first, start() as second:
        handle = give(first)
        wanted = {0: INVALID_VALUE, KIND: INVALID_VALUE, DAEMON: INVALID_HANDLE, DAEMON + 7: INVALID_HANDLE,
                  WORKER: NOT_SUPPORTED, NUMBER: INVALID_HANDLE, NUMBER + 3: INVALID_HANDLE,
                  **{SECRET + i: INVALID_HANDLE for i in range(16)}}
        for at, error in wanted.items():
            result = open_memory(second, changed(handle, at))
            require(result == error, f"byte {at} changed: {result}, not {error}")
        for bad in (bytes(64), b"\xff" * 64):
            require(open_memory(second, bad) == INVALID_VALUE, f"{bad[0]} is taken")
        for bad in (handle[:63], handle + b"x", b""):
            daemon.violate(lambda s, bad=bad: open_memory(s, bad, s.granularity), "it sent a malformed call")
        require(open_memory(second, handle, granules=2) == INVALID_VALUE, "a mapping of another size")
        require(second.ask("gpEventOpen", {"event": OPENED, "handle": handle})[0] == INVALID_VALUE, "as an event")
        require(open_memory(first, handle, first.granularity) == INVALID_CONTEXT, "in the session that shares it")
        # The daemon ignores the other fields of the handle.
        for at in (DEVICE, MAPPING, OFFSET):
            require(open_memory(second, changed(handle, at)) == SUCCESS, f"byte {at}")
            drop(second)
        daemon.wait_for_log("an IPC handle is refused: the exported object does not exist")
        daemon.wait_for_log("an IPC handle is refused: it is of another daemon")


@case("another tenant cannot open anything, and gets the reason")
def _():
    with start() as first, start("other") as stranger:
        handle = give(first)
        first.post("cuEventCreate", {"phEvent": EVENT, "Flags": INTERPROCESS})
        event = first.ask("gpEventShare", {"event": EVENT})[1]["handle"]
        require(open_memory(stranger, handle) == INVALID_HANDLE, "another tenant's memory")
        require(stranger.ask("gpEventOpen", {"event": OPENED, "handle": event})[0] == INVALID_HANDLE, "or its event")
        require(reads(stranger)[0] != SUCCESS, "nothing is mapped")
        require(any(b"another tenant's" in body for _, _, body, _ in stranger.notes), f"no reason was sent: {stranger.notes}")


@case("a session in a worker of its own exports nothing to other sessions, and opens nothing of theirs")
def _():
    with start() as first, start(more=field(13, field(4, 2))) as alone:
        handle, other = give(first), give(alone)
        require(open_memory(alone, handle, 4 * alone.granularity) == NOT_SUPPORTED, "into a worker of its own")
        require(open_memory(first, other, 4 * first.granularity) == NOT_SUPPORTED, "out of a worker of its own")
        daemon.wait_for_log("an IPC handle is refused: it is of another worker process")


@case("memory that is no longer shared cannot be opened, and stays with the sessions that have it open")
def _():
    with start() as first, start() as second, start() as third:
        handle = give(first)
        require(open_memory(second, handle) == SUCCESS, "open")
        first.post("gpUnshare", {"share": SHARE})
        drop(first)
        require(first.ask("gpFence")[0] == SUCCESS and open_memory(third, handle) == INVALID_HANDLE, "opened after the end")
        # A has other memory at its old place, and B has not.
        require(give(first, share=SHARE + 1) != handle, "one handle for two things")
        first.copy_in(first.base, TEXT[::-1])
        require(first.ask("gpFence")[0] == SUCCESS and reads(second) == (SUCCESS, TEXT), "B's memory changed")


@case("shared memory counts for the tenant while a session has it open, and no longer")
def _():
    daemon.wait_for_ends()  # The memory of earlier cases' sessions is freed at their ends.
    with start("small") as watcher:
        first, second = start("small"), start("small")
        granule, own = first.granularity, first.granted[0]
        before = get_free(watcher)
        handle = give(first, 2)
        require(open_memory(second, handle, 0, 2) == SUCCESS and open_memory(second, handle, 8 * granule, 2) == SUCCESS, "open")
        require(get_free(watcher) == before - 2 * granule, "memory counts once")
        first.close()
        daemon.wait_for_log(rf"session {first.id} \(.*closed:")
        require(reads(second, 8 * granule) == (SUCCESS, TEXT), "it went with the session that made it")
        # The session's other memory is given back.
        before += own
        wait_until("the other session pays for it", lambda: get_free(watcher) == before - 2 * granule, 20)
        require(open_memory(second, handle, 16 * granule, 2) == INVALID_HANDLE, "opened after the session's end")
        drop(second, 0, 2)
        require(second.ask("gpFence")[0] == SUCCESS and get_free(watcher) == before - 2 * granule, "given back too early")
        drop(second, 8 * granule, 2)
        require(second.ask("gpFence")[0] == SUCCESS, "fence")
        wait_until("the memory is the tenant's again", lambda: get_free(watcher) == before, 20)
        second.close()


@case("memory that is opened often is one memory")
def _():
    with start("small") as first, start("small") as second:
        handle, count = give(first), 300
        for i in range(count):
            require(open_memory(second, handle, i * second.granularity) == SUCCESS, f"opened {i} times")
        require(reads(second, (count - 1) * second.granularity) == (SUCCESS, TEXT), "the last one")
        for i in range(count):
            drop(second, i * second.granularity)
        require(second.ask("gpFence")[0] == SUCCESS, "fence")
        result = first.ask("gpMemoryShare", {"share": SHARE + 1, "address": first.base, "size": 512})[0]
        require(result == SUCCESS, f"a part of it: {result}")
        for values in ({"address": first.base, "size": 0}, {"address": first.base, "size": first.granularity + 1},
                       {"address": first.base + 64 * first.granularity, "size": 512}):
            require(first.ask("gpMemoryShare", {"share": SHARE + 2, **values})[0] == INVALID_VALUE, f"shared {values}")


def give_physical(session, memory=5, share=SHARE):
    """Makes physical memory and shares it: the handle."""
    require(session.ask("gpMemoryCreate", {"memory": memory, "size": session.granularity, "device": 0})[0] == SUCCESS, "no memory")
    result, reply = session.ask("gpPhysicalShare", {"share": share, "memory": memory})
    require(result == SUCCESS and len(reply["handle"]) == 64, f"shared with {result}")
    return reply["handle"]


def open_physical(session, handle, memory=6, granules=1):
    return session.ask("gpPhysicalOpen", {"memory": memory, "size": granules * session.granularity, "device": 0,
                                          "handle": handle})[0]


def place(session, memory, offset=0):
    return session.ask("gpMemoryAttach", {"memory": memory, "address": session.base + offset,
                                          "size": session.granularity})[0]


@case("physical memory is shared before and after it is mapped, and zeroed once")
def _():
    daemon.wait_for_ends()
    with start("small") as first, start("small") as second:
        before = get_free(first)
        handle = give_physical(first)
        require(open_physical(second, handle) == SUCCESS and place(second, 6) == SUCCESS, "open")
        require(reads(second) == (SUCCESS, bytes(len(TEXT))), "data of another session")
        second.copy_in(second.base, TEXT)
        require(second.ask("gpFence")[0] == SUCCESS, "fence")
        require(place(first, 5) == SUCCESS and reads(first) == (SUCCESS, TEXT), "A zeroes what B has written")
        require(open_physical(first, handle, 7) == SUCCESS and place(first, 7, 4 * first.granularity) == SUCCESS,
                "once more in the same session")
        require(reads(first, 4 * first.granularity) == (SUCCESS, TEXT), "other memory")
        require(get_free(first) == before - first.granularity, "memory counts once")
        first.post("gpUnshare", {"share": SHARE})
        for memory, offset in ((5, 0), (7, 4 * first.granularity)):
            drop(first, offset)
            first.post("gpMemoryRelease", {"memory": memory})
        require(first.ask("gpFence")[0] == SUCCESS and reads(second) == (SUCCESS, TEXT), "B's went with A's")
        require(open_physical(second, handle, 8) == INVALID_HANDLE, "opened after the end")
        require(get_free(first) == before - first.granularity, "it does not count for a session")
        drop(second)
        second.post("gpMemoryRelease", {"memory": 6})
        require(second.ask("gpFence")[0] == SUCCESS, "fence")
        wait_until("the memory is the tenant's again", lambda: get_free(first) == before, 20)


@case("physical memory is opened by its own handle, and by no session of another tenant")
def _():
    with start() as first, start() as second, start("other") as stranger:
        handle = give_physical(first)
        for at in (DAEMON, WORKER, NUMBER, SECRET, SECRET + 15):
            require(open_physical(second, changed(handle, at)) != SUCCESS, f"byte {at} changed")
        require(open_physical(stranger, handle) == INVALID_HANDLE, "by another tenant")
        require(open_physical(second, handle, granules=2) == INVALID_VALUE, "more than there is")
        require(open_memory(second, handle) == INVALID_VALUE, "as an allocation")
        require(open_physical(second, give(first, share=SHARE + 1)) == INVALID_VALUE, "of an allocation")
        require(first.ask("gpMemoryShare", {"share": SHARE + 2, "address": first.base + first.granularity,
                                            "size": 512})[0] == INVALID_VALUE, "nothing is mapped there")
        require(place(first, 5, 2 * first.granularity) == SUCCESS, "map")
        require(first.ask("gpMemoryShare", {"share": SHARE + 2, "address": first.base + 2 * first.granularity,
                                            "size": 512})[0] == INVALID_VALUE, "physical memory as an allocation")
        require(first.ask("gpPhysicalShare", {"share": SHARE + 2, "memory": 99})[0] == INVALID_VALUE, "none")


@case("memory of another daemon is refused with one line that has the reason, by each call that opens it")
def _():
    with Daemon() as other, Session(other.port) as session:
        require(session.create_context() == SUCCESS, "no context")
        handles = (("open", give(session)), ("import", give_physical(session, share=SHARE + 1)))
        for how, handle in handles:
            result = daemon.run("probe", how, handle.hex(), path=os.environ["GP_PROBE"])
            result.expect(out="CUDA_ERROR_INVALID_HANDLE\nprobe: ok\n",
                          err="gpupool: an IPC handle is refused: it is of another daemon, or of one that has ended\n")
        elsewhere = handle[:DEVICE] + b"\xff" + handle[DEVICE + 1:]
        result = daemon.run("probe", "import", elsewhere.hex(), path=os.environ["GP_PROBE"])
        result.expect(out="CUDA_ERROR_INVALID_VALUE\nprobe: ok\n")
        require(result.err.count("\n") == 1 and "cannot import memory of another process: its GPU is not in this session" in result.err, str(result))


POOL = 20


def give_pool(session, pool=POOL, share=SHARE):
    """Shares a pool, and memory that is mapped for it: both handles."""
    require(session.map(0, session.granularity) == SUCCESS, "no memory")
    session.copy_in(session.base, TEXT)
    require(session.ask("gpFence")[0] == SUCCESS, "fence")
    result, reply = session.ask("gpPoolShare", {"share": pool, "device": 0})
    require(result == SUCCESS and len(reply["handle"]) == 64, f"shared with {result}")
    return reply["handle"], give_of_pool(session, pool, share)


def give_of_pool(session, pool=POOL, share=SHARE):
    result, reply = session.ask("gpPoolMemoryShare", {"share": share, "pool": pool, "address": session.base,
                                                      "size": session.granularity})
    require(result == SUCCESS and len(reply["handle"]) == 64, f"shared with {result}")
    return reply["handle"]


def open_pool(session, pool, device=0):
    return session.ask("gpPoolOpen", {"device": device, "handle": pool})[0]


def open_pool_memory(session, pool, handle, offset=0, granules=1):
    return session.ask("gpPoolMemoryOpen", {"address": session.base + offset, "size": granules * session.granularity,
                                            "device": 0, "pool": pool, "handle": handle})[0]


@case("a pool's memory is opened with the pool's handle and its own, and only in sessions of the tenant")
def _():
    with start() as first, start() as second, start("other") as stranger:
        pool, handle = give_pool(first)
        other = first.ask("gpPoolShare", {"share": POOL + 1, "device": 0})[1]["handle"]
        for at in (0, KIND, DAEMON, WORKER, NUMBER, SECRET, SECRET + 15):
            require(open_pool(second, changed(pool, at)) != SUCCESS, f"byte {at} of a pool changed")
            require(open_pool_memory(second, changed(pool, at), handle) != SUCCESS, f"byte {at} of its pool changed")
            require(open_pool_memory(second, pool, changed(handle, at)) != SUCCESS, f"byte {at} changed")
        require(open_pool(stranger, pool) == INVALID_HANDLE, "by another tenant")
        require(open_pool_memory(stranger, pool, handle) == INVALID_HANDLE, "another tenant's memory")
        require(any(b"another tenant's" in body for _, _, body, _ in stranger.notes), f"no reason was sent: {stranger.notes}")
        require(open_pool_memory(second, other, handle) == INVALID_VALUE, "as of another pool")
        require(open_pool_memory(second, handle, handle) == open_pool_memory(second, pool, pool) == INVALID_VALUE, "one for both")
        require(open_memory(second, handle) == open_physical(second, handle) == INVALID_VALUE, "as memory of no pool")
        require(open_pool(second, handle) == open_pool(second, bytes(64)) == INVALID_VALUE, "as a pool")
        require(open_pool_memory(second, pool, handle, granules=2) == INVALID_VALUE, "more than there is")
        require(open_pool(second, pool) == SUCCESS and open_pool_memory(second, pool, handle) == SUCCESS, "open")
        require(reads(second) == (SUCCESS, TEXT), "B reads what A wrote")
        require(open_pool_memory(first, pool, handle, 4 * first.granularity) == SUCCESS, "once more in the same session")
        for values in ({"pool": 99}, {"pool": SHARE}, {"address": first.base + 64 * first.granularity}, {"size": 0},
                       {"size": 2 * first.granularity}):
            wanted = {"share": SHARE + 5, "pool": POOL, "address": first.base, "size": first.granularity, **values}
            require(first.ask("gpPoolMemoryShare", wanted)[0] in (INVALID_VALUE, INVALID_HANDLE), f"shared {values}")
        require(first.ask("gpPoolShare", {"share": SHARE + 5, "device": 99})[0] == 101, "of no device")
        daemon.wait_for_log("an IPC handle is refused: the exported object does not exist")


@case("a pool that is gone is not opened, and who has its memory pays for it")
def _():
    daemon.wait_for_ends()
    with start("small") as watcher:
        first, second = start("small"), start("small")
        granule, own, before = first.granularity, first.granted[0], get_free(watcher)
        pool, handle = give_pool(first)
        require(open_pool_memory(second, pool, handle) == SUCCESS, "open")
        first.post("gpUnshare", {"share": POOL})
        require(first.ask("gpFence")[0] == SUCCESS, "fence")
        require(open_pool(second, pool) == INVALID_HANDLE, "a pool that is gone")
        require(open_pool_memory(second, pool, handle, 4 * granule) == INVALID_HANDLE, "memory of a pool that is gone")
        first.close()
        daemon.wait_for_log(rf"session {first.id} \(.*closed:")
        require(reads(second) == (SUCCESS, TEXT), "it went with the session that made it")
        wait_until("the other session pays for it", lambda: get_free(watcher) == before + own - granule, 20)
        second.close()
        wait_until("the memory is the tenant's again", lambda: get_free(watcher) >= before + own, 20)


@case("names of what is shared have the usual rules")
def _():
    daemon.violate(lambda s: [s.ask("gpMemoryShare", {"share": 5, "address": s.base, "size": 512}) for _ in range(2)],
                   ".*(twice|in use|taken)")
    with start() as session:
        before = len(session.errors())
        session.post("gpUnshare", {"share": 77})
        require(session.ask("gpFence")[0] == SUCCESS, "fence")
        require([error[0] for error in session.errors()[before:]] == [INVALID_HANDLE], "an unknown name")
        require(session.ask("gpEventShare", {"event": 77})[0] == INVALID_HANDLE, "of no event")
        session.post("cuEventCreate", {"phEvent": EVENT, "Flags": 2})
        require(session.ask("gpEventShare", {"event": EVENT})[0] == INVALID_HANDLE, "of an event for one process")
        require(session.ask("gpEventRecord", {"event": 77, "stream": 1})[0] == INVALID_HANDLE, "recording no event")


@case("while the session that shares it ends, memory is opened or it is not")
def _():
    daemon.wait_for_ends()
    with start("large") as watcher:
        before = get_free(watcher)
        for _ in range(20):
            with start("large") as second:
                first = start("large")
                handle = give(first)
                ending = threading.Thread(target=first.close)
                ending.start()
                result = open_memory(second, handle)
                ending.join()
                require(result in (SUCCESS, INVALID_HANDLE), f"opened with {result}")
                require(result != SUCCESS or reads(second) == (SUCCESS, TEXT), "other bytes")
        wait_until("all memory is free again", lambda: get_free(watcher) == before, 30)


@case("an event of two sessions is recorded by one and awaited by the other")
def _():
    with start() as first, start() as second:
        first.post("cuEventCreate", {"phEvent": EVENT, "Flags": INTERPROCESS})
        handle = first.ask("gpEventShare", {"event": EVENT})[1]["handle"]
        require(first.ask("gpEventShare", {"event": EVENT})[1]["handle"] == handle, "two handles for one event")
        require(first.ask("gpEventOpen", {"event": OPENED, "handle": handle})[0] == INVALID_CONTEXT, "in the same session")
        for at in (DAEMON, WORKER, NUMBER, SECRET):
            require(second.ask("gpEventOpen", {"event": OPENED, "handle": changed(handle, at)})[0] != SUCCESS, f"byte {at}")
        require(second.ask("gpEventOpen", {"event": OPENED, "handle": handle})[0] == SUCCESS, "open")
        require(second.ask("gpEventShare", {"event": OPENED})[0] == INVALID_HANDLE, "exported again by the session that opened it")
        require(second.ask("cuEventQuery", {"hEvent": OPENED})[0] == SUCCESS, "never recorded: complete")
        require(first.ask("gpEventRecord", {"event": EVENT, "stream": 1})[0] == SUCCESS, "record")
        second.post("cuStreamWaitEvent", {"hStream": 1, "hEvent": OPENED})
        require(second.ask("cuStreamSynchronize", {"hStream": 1})[0] == SUCCESS, "wait")
        require(second.ask("gpEventRecord", {"event": OPENED, "stream": 1})[0] == SUCCESS, "record by the other")
        require(first.ask("cuEventSynchronize", {"hEvent": EVENT})[0] == SUCCESS, "synchronise")
        first.post("cuEventDestroy_v2", {"hEvent": EVENT})
        require(first.ask("gpFence")[0] == SUCCESS, "fence")
        require(second.ask("gpEventOpen", {"event": OPENED + 1, "handle": handle})[0] == INVALID_HANDLE, "a destroyed event")
        require(second.ask("gpEventRecord", {"event": OPENED, "stream": 1})[0] == SUCCESS, "its other name lives on")
        first.close()
        require(second.ask("cuEventSynchronize", {"hEvent": OPENED})[0] == SUCCESS, "and after the other session")


@case("an event record after a host function is answered at once, and other sessions wait for the event")
def _():
    with start() as first, start() as second:
        first.post("cuEventCreate", {"phEvent": EVENT, "Flags": INTERPROCESS})
        handle = first.ask("gpEventShare", {"event": EVENT})[1]["handle"]
        require(second.ask("gpEventOpen", {"event": OPENED, "handle": handle})[0] == SUCCESS, "open")

        def hold(function):
            first.post("gpHostFunction", {"stream": 1, "function": function})
            require(first.wait_turn()[0] == function, "the function's turn")
            require(first.ask("gpEventRecord", {"event": EVENT, "stream": 1})[0] == SUCCESS, "record")
            require(first.ask("cuEventQuery", {"hEvent": EVENT})[0] == NOT_READY, "query of the session that recorded it")
            require(second.ask("cuEventQuery", {"hEvent": OPENED})[0] == NOT_READY, "query of another session")

        hold(10)
        second.post("cuStreamWaitEvent", {"hStream": 1, "hEvent": OPENED})
        require(second.ask("cuStreamQuery", {"hStream": 1})[0] == NOT_READY, "the stream does not wait")
        first.post("gpHostFunctionDone", {"function": 10})
        require(second.ask("cuStreamSynchronize", {"hStream": 1})[0] == SUCCESS, "the stream's wait")
        require(second.ask("cuEventQuery", {"hEvent": OPENED})[0] == SUCCESS, "query after the function")
        # Both record it: the second one after the first.
        hold(11)
        require(second.ask("gpEventRecord", {"event": OPENED, "stream": 1})[0] == SUCCESS, "record of both")
        first.post("gpHostFunctionDone", {"function": 11})
        require(first.ask("cuEventSynchronize", {"hEvent": EVENT})[0] == SUCCESS, "synchronise")
        require(second.ask("cuEventSynchronize", {"hEvent": OPENED})[0] == SUCCESS, "synchronise in the other session")
        # A record that is never carried out, as its session ends.
        hold(12)
        first.close()
        require(second.ask("cuEventSynchronize", {"hEvent": OPENED})[0] == SUCCESS, "after the other session")


if __name__ == "__main__":
    with Pool(CONFIG) as daemon:
        status = main(daemon)
    sys.exit(status)
