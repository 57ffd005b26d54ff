# SPDX-License-Identifier: Apache-2.0
"""test_pinned_memory.py PROGRAM...: host memory that kernels access: programs over each transport, its quota, and
clients that name memory of others."""
import os
import signal
import struct
import sys
import tempfile
import time

import test_apps
import wire
from harness import PATIENCE, Configured, Daemon, Program, Skip, case, main, require, wait_until
from hostile import SUCCESS, Host
from stats import ASKED, read_stats
from wire import Closed, Session, field, flat_text, launch_values, load, message, record

MIB = 1 << 20
INVALID_VALUE, OUT_OF_MEMORY, INVALID_CONTEXT, INVALID_HANDLE, NOT_SUPPORTED = 1, 2, 201, 400, 801
# enum gp_host_after
STREAM, EVENT, CONTEXT = range(3)
PROGRAMS, sys.argv[1:] = sys.argv[1:], []


class Both:
    """A daemon on tcp and on a local socket."""

    def __init__(self, *args, text=None, env=None):
        self.folder = tempfile.TemporaryDirectory(prefix="gpupool-pinned-")
        self.local = f"unix://{self.folder.name}/sock"
        listen = ("--listen", self.local, *args)
        self.daemon = Configured(text, *listen, env=env) if text else Daemon(*listen, env=env)

    def __enter__(self):
        self.daemon.__enter__()
        return self

    def __exit__(self, *error):
        self.daemon.__exit__(*error)
        self.folder.cleanup()


def packed(*ranges):
    return b"".join(struct.pack("<QQ", *one) for one in ranges)


class Pinned(Session):
    """A session with a context and a range for host memory."""

    def __init__(self, port, **more):
        super().__init__(port, **more)
        require(self.create_context() == SUCCESS, "no context")
        result, back = self.ask("gpHostReserve", {"size": 1 << 40})
        require(result == SUCCESS and back["room"] >= 1 << 30, f"no range: {result} {back}")
        self.host, self.room = back["address"], back["room"]

    def make(self, offset, size, shared=0):
        return self.ask("gpHostMap", {"address": self.host + offset, "size": size, "shared": shared})[0]

    def give(self, offset, size):
        return self.ask("gpHostUnmap", {"address": self.host + offset, "size": size})[0]

    def write(self, address, data):
        padded = data + bytes(-len(data) % 8)
        self.post("gpHostWrite", {"changes": struct.pack("<QII", address, len(data), 0) + padded})

    def fetch(self, *ranges):
        """The result, the number of bytes done, and the runs by address; a run may arrive in parts."""
        result, back = self.ask("gpHostTake", {"ranges": packed(*ranges)})
        return result, back.get("done"), self.parse_runs(result, back)

    def fetch_after(self, kind, name, *ranges):
        """The result, how many gpHostWrite the daemon has carried out, and the runs."""
        result, back = self.ask("gpHostTakeBehind", {"kind": kind, "name": name, "ranges": packed(*ranges)})
        return result, back.get("writes"), self.parse_runs(result, back)

    @staticmethod
    def parse_runs(result, back):
        parts, runs, at = [], [], 0
        while result == SUCCESS and at < len(back["changes"]):
            address, size, _ = struct.unpack_from("<QII", back["changes"], at)
            parts.append((address, back["changes"][at + 16:at + 16 + size]))
            at += 16 + (size + 7) // 8 * 8
        for address, data in sorted(parts):
            if runs and runs[-1][0] + len(runs[-1][1]) == address:
                runs[-1] = (runs[-1][0], runs[-1][1] + data)
            else:
                runs.append((address, data))
        return runs


# In rounds of 32 MiB, and calls; hostorder many alone has 32 rounds and 100,000 calls.
HELD = (("function", 2, 20000), ("value", 2, 20000), ("kernel", 0, 20000))

for holder, *amounts in HELD:
    @case(f"no call waits for what holds up its stream ({holder}): copies and calls, over tcp and a local socket")
    def _(arguments=("many", holder, *map(str, amounts))):
        with Both() as both:
            for remote in both.daemon.address, both.local:
                Program("hostorder", arguments, remote).finish().expect(out="hostorder: ok\n", err="")


for holder, what in (("value", "a wait for a value"), ("kernel", "a kernel that polls a word")):
    @case(f"the host's stores are not delayed with more calls after {what} than the daemon defers")
    def _(holder=holder):
        with Daemon() as daemon:
            daemon.run("hostorder", "many", holder, "0", "250000").expect(out="hostorder: ok\n", err="")


for mode, what in (("within", "copies within the host are done when they return; batches, graphs and fills wait for nothing in their caller"),
                   ("uses", "no call waits for an earlier copy to the memory that it uses"),
                   ("in kernel", "pageable copies that are held up do not hold up what the host stores"),
                   ("back kernel", "copies to the host that are held up hold up nothing else")):
    @case(f"{what}, over tcp and a local socket")
    def _(mode=mode):
        with Both() as both:
            for remote in both.daemon.address, both.local:
                Program("hostorder", tuple(mode.split()), remote).finish().expect(out="hostorder: ok\n", err="")


for name in PROGRAMS:
    # Over tcp and TLS: test_apps.py.
    @case(f"{name} over shared memory")
    def _(name=name):
        with Both() as both:
            test_apps.judge(name, Program(name, (), both.local).finish(), shared=True)


# Without shared memory a local socket exchanges changes as tcp does.
for name in "pinned", "zerocopy":
    @case(f"{name} over a local socket without shared memory")
    def _(name=name):
        with Both() as both:
            test_apps.judge(name, Program(name, (), both.local, env={"GPUPOOL_SHM": "0"}).finish())


@case("written data is visible, is fetched once, and is accessible to copies")
def _():
    with Host() as daemon, Pinned(daemon.port) as session:
        require(session.make(0, 2 * MIB) == SUCCESS, "no memory")
        require(session.map(0, session.granularity) == SUCCESS, "no device memory")
        session.write(session.host + 100, b"abcd" * 10)
        require(session.copy_out(session.host + 96, 48) == (SUCCESS, bytes(4) + b"abcd" * 10 + bytes(4)), "it is not there")
        session.post("gpCopyDevice", {"stream": 1, "dst": session.base, "dst_pitch": 40, "dst_slice": 40,
                                      "src": session.host + 100, "src_pitch": 40, "src_slice": 40, "width": 40, "height": 1,
                                      "depth": 1})
        require(session.copy_out(session.base, 40) == (SUCCESS, b"abcd" * 10), "the device does not have it")
        require(session.fetch((session.host, 2 * MIB)) == (SUCCESS, 2 * MIB, []), "the client knows what it has sent")
        session.copy_in(session.host + 4096, b"0123456789ab")
        require(session.ask("cuStreamSynchronize", {"hStream": 1})[0] == SUCCESS, "synchronise")
        require(session.fetch((session.host, 2 * MIB)) == (SUCCESS, 2 * MIB, [(session.host + 4096, b"0123456789ab")]),
                "the changes of the device")
        require(session.fetch((session.host, 2 * MIB))[2] == [], "once is enough")


@case("addresses outside the session's host memory end that session, and no other")
def _():
    with Host() as daemon, daemon.neighbour():
        def worker_memory():
            with open(f"/proc/{daemon.workers()[0]}/maps") as maps:
                return int(maps.readline().split("-")[0], 16)

        ends = [
            (lambda s: s.make(s.room, 4096), "it names 4096 bytes"),
            (lambda s: s.make(-4096, 4096), "it names 4096 bytes"),
            (lambda s: s.make(0, s.room + 4096), "it names"),
            (lambda s: s.make(worker_memory() - s.host, 4096), "it names 4096 bytes"),
            (lambda s: s.make(s.base - s.host, 4096), "it names 4096 bytes"),
            (lambda s: s.write(s.host, b"1234"), "it changes host memory that is not mapped"),
            (lambda s: s.write(worker_memory(), b"1234"), "it names 4 bytes"),
            (lambda s: s.ask("gpHostPlace", {"address": s.host, "size": s.granularity, "device": 0}), "it maps"),
            (lambda s: s.ask("gpHostPlace", {"address": s.base - s.granularity, "size": s.granularity, "device": 0}), "it maps"),
            (lambda s: s.write((1 << 64) - 4, b"1234"), "it sent invalid changes of host memory"),
            (lambda s: s.post("gpHostWrite", {"changes": b"12345678"}), "it sent invalid changes of host memory"),
            (lambda s: s.post("gpHostWrite", {"changes": struct.pack("<QII", s.host, 1 << 31, 0)}),
             "it sent invalid changes of host memory"),
        ]
        for act, reason in ends:
            session = Pinned(daemon.port)
            try:
                act(session)
                session.ask("gpFence")
            except Closed:
                pass
            daemon.expect_ended(session, reason)


@case("invalid requests are refused, and the session continues")
def _():
    with Host() as daemon, daemon.neighbour(), Pinned(daemon.port) as session:
        require(session.make(0, 4 * MIB) == SUCCESS, "no memory")
        for offset, size in ((0, 4096), (2 * MIB, 4 * MIB), (5 * MIB, 0), (5 * MIB + 1, 4096), (5 * MIB, 4097)):
            require(session.make(offset, size) == INVALID_VALUE, f"{offset} {size}")
        require(session.make(8 * MIB, 4096, 2) == INVALID_VALUE, "neither shared nor not")
        require(session.make(8 * MIB, 4096, 1) == NOT_SUPPORTED, "no descriptor passes over tcp")
        require(session.ask("gpHostReserve", {"size": MIB})[0] == INVALID_VALUE, "a range in use")
        for offset, size in ((0, 2 * MIB), (1, 4 * MIB), (8 * MIB, 4096)):
            require(session.give(offset, size) == INVALID_VALUE, f"give {offset} {size}")
        for one in ((session.host - 1, 2), (session.host, 4 * MIB + 1), (session.host, (1 << 64) - 1), (0, 1), (session.base, 1)):
            require(session.fetch(one)[0] == INVALID_VALUE, f"fetch {one}")
        require(session.ask("gpHostTake", {"ranges": bytes(17)})[0] == INVALID_VALUE, "half a range")
        require(session.fetch(*[(session.host, 4)] * 4096)[0] == SUCCESS, "4096 ranges")
        require(session.fetch(*[(session.host, 4)] * 4097)[0] == INVALID_VALUE, "4097 ranges")
        for address in (session.host + 4 * MIB, session.host + 4 * MIB - 4, session.host - 4):
            require(session.copy_out(address, 8)[0] == INVALID_VALUE, "a copy from where nothing is mapped")
        require(session.give(0, 4 * MIB) == SUCCESS, "give")
        require(session.copy_out(session.host, 8)[0] == INVALID_VALUE, "it is given back")
        wait_until("the addresses are free", lambda: session.make(0, 4 * MIB) == SUCCESS, 20)
        require(session.copy_out(session.host, 8) == (SUCCESS, bytes(8)), "zeros")


@case("changes are reported after the work of a stream, an event and a context")
def _():
    with Host() as daemon, Pinned(daemon.port) as session:
        require(session.make(0, 2 * MIB) == SUCCESS, "no memory")
        session.post("cuEventCreate", {"phEvent": 9, "Flags": 0})
        for number, (kind, name) in enumerate(((STREAM, 1), (EVENT, 9), (CONTEXT, 1)), 1):
            data = bytes([number]) * 8
            session.write(session.host + 64 * number, b"from the client!")
            session.copy_in(session.host + 8, data)
            if kind == EVENT:
                session.post("cuEventRecordWithFlags", {"hEvent": 9, "hStream": 1, "flags": 0})
            got = session.fetch_after(kind, name, (session.host, MIB))
            require(got == (SUCCESS, number, [(session.host + 8, data)]), f"{kind}: {got}")
        require(session.fetch_after(STREAM, 1, (session.host, MIB))[2] == [], "once is enough")
        require(session.fetch((session.host, 2 * MIB))[2] == [], "and gpHostTake knows it")
        require(session.fetch_after(STREAM, 1)[::2] == (SUCCESS, []), "no ranges, no changes")


@case("queries after work with unknown objects are refused, and the session continues")
def _():
    with Host() as daemon, daemon.neighbour(), Pinned(daemon.port) as session, Pinned(daemon.port) as other:
        require(session.make(0, 4 * MIB) == SUCCESS and other.make(0, MIB) == SUCCESS, "no memory")
        base = session.host
        for kind, name, wanted in ((STREAM, 77, INVALID_HANDLE), (STREAM, 0, INVALID_HANDLE), (EVENT, 1, INVALID_HANDLE),
                                   (CONTEXT, 77, INVALID_CONTEXT), (3, 1, INVALID_VALUE), ((1 << 32) - 1, 1, INVALID_VALUE)):
            require(session.fetch_after(kind, name, (base, 8))[0] == wanted, f"{kind} {name}")
        for one in ((base - 1, 2), (base, 4 * MIB + 1), (base, (1 << 64) - 1), (0, 1), (other.host, 8), (base, MIB + 1)):
            require(session.fetch_after(STREAM, 1, one)[0] == INVALID_VALUE, f"range {one}")
        require(session.fetch_after(STREAM, 1, (base, MIB), (base, 4))[0] == INVALID_VALUE, "too much together")
        require(session.fetch_after(STREAM, 1, *[(base, 4)] * 256)[0] == SUCCESS, "256 ranges")
        require(session.fetch_after(STREAM, 1, *[(base, 4)] * 257)[0] == INVALID_VALUE, "257 ranges")
        for ranges in (bytes(17), packed((base, MIB + 4)), packed((other.host, 8)), packed(*[(base, 4)] * 257)):
            require(session.ask("gpHostTakeChanged", {"ranges": ranges})[0] == INVALID_VALUE, f"held: {ranges[:32]}")
        half = {"kind": STREAM, "name": 1, "ranges": bytes(17)}
        require(session.ask("gpHostTakeBehind", half)[0] == INVALID_VALUE, "half a range")
        with Session(daemon.port) as bare:
            require(bare.create_context() == SUCCESS, "no context")
            require(bare.ask("gpHostTakeBehind", {**half, "ranges": b""})[0] in (SUCCESS, INVALID_VALUE), "nothing is mapped")
        daemon.check_works()


@case("a session that ends while many queries wait for its work leaves no resources allocated")
def _():
    with Host() as daemon, daemon.neighbour():
        for _ in range(3):
            session = Pinned(daemon.port)
            require(session.make(0, 2 * MIB) == SUCCESS, "no memory")
            require(session.map(0, session.granularity) == SUCCESS, "no device memory")
            for i in range(200):
                session.post("gpFill", {"stream": 1, "dst": session.base, "pitch": session.granularity, "element_size": 1,
                                        "value": i, "width": session.granularity, "height": 1})
                asked = {"kind": STREAM, "name": 1, "ranges": packed((session.host, MIB))}
                session.lane.send(message(record("gpHostTakeBehind", asked, 1000 + i)))
            session.post("gpHostWrite", {"changes": struct.pack("<QIIQ", session.host, 8, 0, 7)})
            session.lane.socket.close()
        daemon.wait_for_ends()
        daemon.check_works()


@case("a session with many pending queries ends the same way, and the queries do not delay its calls")
def _():
    with Host() as daemon, daemon.neighbour():
        for _ in range(3):
            session = Pinned(daemon.port)
            require(session.make(0, 2 * MIB) == SUCCESS, "no memory")
            for i in range(500):
                asked = {"ranges": packed((session.host, MIB))}
                session.lane.send(message(record("gpHostTakeChanged", asked, 1000 + i)))
            session.post("gpHostWrite", {"changes": struct.pack("<QIIQ", session.host, 8, 0, 7)})
            # All are answered before this one.
            require(session.fetch((session.host, 4096))[0] == SUCCESS, "a query of the current changes")
            session.lane.send(message(record("gpHostTakeChanged", {"ranges": packed((session.host, 8))}, 2000)))
            session.lane.socket.close()
        daemon.wait_for_ends()
        daemon.check_works()


@case("memory is placed in the window alone, counts as pinned, and is unmapped as other memory")
def _():
    with Configured("[tenant default]\npinned-memory = 8M\n") as daemon, Pinned(daemon.port) as session:
        def place(offset, size, device=0):
            return session.ask("gpHostPlace", {"address": session.base + offset, "size": size, "device": device})[0]

        granule = session.granularity
        if place(0, granule) == NOT_SUPPORTED:
            raise Skip("the driver makes no such memory")
        require(place(0, granule) == INVALID_VALUE, "there is some")
        require(session.map(0, granule) == INVALID_VALUE, "device memory over it")
        require(place(granule, 4096) == INVALID_VALUE, "a part of a granule")
        require(place(granule, granule, 99) != SUCCESS, "no such device")
        require(place(granule, 16 * MIB) == OUT_OF_MEMORY, "past the quota")
        require(session.ask("gpHostUnmap", {"address": session.base, "size": granule})[0] == INVALID_VALUE, "the other way")
        session.write(session.base + 100, b"abcd" * 10)
        require(session.copy_out(session.base + 96, 48) == (SUCCESS, bytes(4) + b"abcd" * 10 + bytes(4)), "it is not there")
        session.copy_in(session.base + 4096, b"0123456789ab")
        require(session.ask("cuStreamSynchronize", {"hStream": 1})[0] == SUCCESS, "synchronise")
        require(session.fetch((session.base, granule)) == (SUCCESS, granule, [(session.base + 4096, b"0123456789ab")]),
                "the device's words")
        for _ in range(8):
            session.post("gpMemoryUnmap", {"address": session.base, "size": granule})
            require(place(0, granule) == SUCCESS, "it is not had again")
        require(session.copy_out(session.base + 96, 48) == (SUCCESS, bytes(48)), "the bytes of the earlier memory are there")


@case("one session reaches nothing of another's")
def _():
    with Host() as daemon, Pinned(daemon.port) as one, Pinned(daemon.port) as other:
        require(one.host != other.host and one.make(0, MIB) == SUCCESS, "no memory")
        one.write(one.host, b"secret!!")
        require(other.copy_out(one.host, 8)[0] == INVALID_VALUE, "a copy of another's memory")
        require(other.fetch((one.host, 8))[0] == INVALID_VALUE, "another's changes")
        require(one.copy_out(one.host, 8) == (SUCCESS, b"secret!!"), "its own")


@case("past pinned-memory there is none, for all sessions of a tenant together")
def _():
    # Each byte counts twice, with what both ends agreed on.
    with Configured("[tenant a]\npinned-memory = 128M\n[tenant b]\npinned-memory = 4M\n") as daemon:
        first, second = (Pinned(daemon.port, more=field(14, "a")) for _ in range(2))
        third = Pinned(daemon.port, more=field(14, "b"))
        require(first.make(0, 40 * MIB) == SUCCESS and second.make(0, 40 * MIB) == OUT_OF_MEMORY, "two of one tenant")
        require(second.make(0, 24 * MIB) == SUCCESS and first.make(64 * MIB, 4096) == OUT_OF_MEMORY, "the rest")
        require(third.make(0, 2 * MIB) == SUCCESS and third.make(4 * MIB, 4096) == OUT_OF_MEMORY, "another tenant")
        daemon.wait_for_log(r"refused 83886080 bytes of pinned memory \(pinned-memory\)")
        require(first.give(0, 40 * MIB) == SUCCESS, "give")
        wait_until("freed memory does not count", lambda: second.make(64 * MIB, 40 * MIB) == SUCCESS, 20)
        second.close()
        wait_until("nor what a session has left", lambda: first.make(128 * MIB, 64 * MIB) == SUCCESS, 20)
        for session in first, third:
            session.close()


@case("sessions with many small pieces leave the worker the mappings that others need")
def _():
    with Daemon() as daemon:
        hogs, made = [], []
        for _ in range(6):
            hogs.append(Pinned(daemon.port))
            made.append(next(i for i in range(5000) if hogs[-1].make(i * 16384, 4096) != SUCCESS))
        # The system lets a process have 65530.
        with open(f"/proc/{daemon.workers()[0]}/maps") as maps:
            count = sum(1 for _ in maps)
        require(count < 20000, f"{count} mappings: {made}")
        daemon.wait_for_log("refused 4096 bytes of pinned memory: it has")
        # Each has some in any case, and who comes then works.
        require(min(made) >= 32 and made[0] > 3000, f"{made}")
        daemon.run("zerocopy").expect(out=None)
        hogs[0].give(0, 4096)
        wait_until("freed memory can be allocated again", lambda: hogs[0].make(0, 4096) == SUCCESS, 20)
        for session in hogs:
            session.close()


@case("a program over shared memory is out of memory past its quota")
def _():
    with Both(text="[tenant default]\npinned-memory = 30M\n") as both:
        result = Program("zerocopy", (), both.local).finish()
        require(result.status == 1 and "cudaErrorMemoryAllocation" in result.out, str(result))
        require("\ngraph\n" in result.out, f"the parts that need less memory have not run: {result}")
        # Over a network only memory that kernels access counts.
        require(both.daemon.run("zerocopy").status == 0, "copy-only memory counts")


@case("the worker's file is sealed, and holes that a client makes in it are its own loss")
def _():
    with Both() as both:
        path = both.local[len("unix://"):]
        with Pinned(wire.Shm(path)) as session:
            require(session.make(0, 2 * MIB, 1) == SUCCESS, "no shared memory")
            require(session.map(0, session.granularity) == SUCCESS, "no device memory")
            file = session.lane.take_descriptor()
            try:
                require(os.fstat(file).st_size == 2 * MIB, "another size")
                for size in 0, 4096, 4 * MIB:
                    try:
                        os.ftruncate(file, size)
                        require(False, "its size can change")
                    except PermissionError:
                        pass
                os.pwrite(file, b"from the client!", 4096)
                require(session.copy_out(session.host + 4096, 16) == (SUCCESS, b"from the client!"), "not the same memory")
                session.copy_in(session.host + 8192, b"from the device!")
                require(session.ask("cuStreamSynchronize", {"hStream": 1})[0] == SUCCESS, "synchronise")
                require(os.pread(file, 16, 8192) == b"from the device!", "not the same memory")
            finally:
                os.close(file)
        both.daemon.check_works()


def stored(file):
    """Bytes of a file in memory that the system has pages for."""
    return os.fstat(file).st_blocks * 512


@case("shared memory is freed with its session, even if another process keeps its descriptors")
def _():
    with Both() as both:
        held = []
        try:
            session = Pinned(wire.Shm(both.local[len("unix://"):]))
            for offset, size in (0, 8 * MIB), (16 * MIB, 2 * MIB):
                require(session.make(offset, size, 1) == SUCCESS, "no shared memory")
                held.append(session.lane.take_descriptor())
                require(stored(held[-1]) >= size, "it has no pages")
            held.append(os.dup(session.lane.file))
            require(session.give(16 * MIB, 2 * MIB) == SUCCESS, "it is not given back")
            wait_until("memory that the session freed has no pages", lambda: stored(held[1]) == 0, PATIENCE)
            require(stored(held[0]) >= 8 * MIB, "memory in use is gone")
            session.close()
            wait_until("the arena is free", lambda: stored(held[0]) == 0, PATIENCE)
            wait_until("the rings are free", lambda: stored(held[2]) == 0, PATIENCE)
        finally:
            for file in held:
                os.close(file)


FAULTS = (b".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\n.reg .u64 %rd<2>;\n"
          b"mov.u64 %rd1, 4096;\nst.global.u32 [%rd1], 1;\nret;\n}\n")
IDLE = "[daemon]\nidle-timeout = 1\npinned-memory = 64M\n"


def hold_pinned(both, size):
    program = Program("probe", ("pinned", str(size)), both.local, path=os.environ["GP_PROBE"], stdin=True)
    program.wait_for_output("held\n")
    return program


@case("a program whose session the operator's settings end keeps what is in its pinned memory")
def _():
    with Both(text=IDLE) as both:
        program = hold_pinned(both, 17 * MIB)
        both.daemon.wait_for_log(r"closed: it was idle for 1 s \(idle-timeout\)")
        program.finish().expect(out="held\n999\nall there\n", err=None)


@case("so does one whose daemon stops")
def _():
    with Both() as both:
        program = hold_pinned(both, 17 * MIB)
        both.daemon.stop()
        program.finish().expect(out="held\n46\nall there\n", err=None)


@case("so does one whose daemon is killed, and one whose worker is")
def _():
    for is_worker in True, False:
        with Both() as both:
            program = hold_pinned(both, 17 * MIB)
            worker = both.daemon.workers()[0]
            os.kill(worker if is_worker else both.daemon.pid, signal.SIGKILL)
            wait_until("the worker is gone", lambda gone=worker: not os.path.exists(f"/proc/{gone}"), PATIENCE)
            program.finish().expect(out="held\n46\nall there\n", err=None)
            both.daemon.process.kill()
            both.daemon.process.wait()


@case("a program that is stopped while its session ends keeps no part of the quota, and gets the error afterwards")
def _():
    with Both(text=IDLE) as both:
        program = hold_pinned(both, 40 * MIB)
        program.process.send_signal(signal.SIGSTOP)
        both.daemon.wait_for_log(r"closed: it was idle for 1 s \(idle-timeout\)")
        with Pinned(wire.Shm(both.local[len("unix://"):])) as session:
            wait_until("the quota is free", lambda: session.make(0, 40 * MIB, 1) == SUCCESS, PATIENCE)
        program.process.send_signal(signal.SIGCONT)
        # Its time is over: the contents of its pinned memory are gone.
        result = program.finish()
        require(result.out.startswith("held\n999\n") and "idle-timeout" in result.err, str(result))


@case("a session has at once what the one before it had")
def _():
    with Both(text="[tenant default]\npinned-memory = 64M\n") as both:
        for _ in range(5):
            session = Pinned(wire.Shm(both.local[len("unix://"):]))
            require(session.make(0, 60 * MIB, 1) == SUCCESS, "the quota is not free")
            session.close()
            both.daemon.wait_for_log(rf"session {session.id} .*closed: ")


@case("pinned memory that the driver has for a kernel of others counts, though its session has ended")
def _():
    # The kernel of a program that is killed ends on the software device alone.
    with Both(text="[tenant default]\npinned-memory = 64M\n", env={"GPUPOOL_SOFT_LOADING_WAITS": "1"}) as both:
        sleeper = both.daemon.start("sleeper", "-ms=600000")
        sleeper.wait_for_output("running")
        for path in wire.Shm(both.local[len("unix://"):]), both.daemon.port:
            first = Pinned(path)
            require(first.make(0, 20 * MIB, int(path != both.daemon.port)) == SUCCESS, "no memory")
            first.close()
            both.daemon.wait_for_log(rf"session {first.id} .*closed: ")
        with Pinned(both.daemon.port) as second:
            require(second.make(0, 8 * MIB) == OUT_OF_MEMORY, "the quota is free though the driver has the memory")
            sleeper.kill()
            wait_until("the quota is free", lambda: second.make(0, 32 * MIB) == SUCCESS, PATIENCE)


@case("a client that goes on when its session ended keeps neither the worker's pages nor the quota")
def _():
    with Both(text=IDLE) as both:
        path = wire.Shm(both.local[len("unix://"):])
        held = []
        try:
            for number in range(3):
                session = Pinned(path)
                wait_until("the memory of the previous session is free", lambda each=session: each.make(0, 40 * MIB, 1) == SUCCESS, PATIENCE)
                held += [session.lane.take_descriptor(), os.dup(session.lane.file)]
                if number == 1:
                    session.lane.send(struct.pack("<II", 64, 0) + b"\xff" * 64)
                both.daemon.wait_for_log(rf"session {session.id} .*closed: ")
                wait_until("its pages are free", lambda: not any(stored(file) for file in held), PATIENCE)
            both.daemon.check_works()
        finally:
            for file in held:
                os.close(file)


@case("the pages of a worker that ends by a fault do not stay with its clients")
def _():
    with Both() as both:
        session = Pinned(wire.Shm(both.local[len("unix://"):]))
        require(session.make(0, 8 * MIB, 1) == SUCCESS, "no shared memory")
        held = [session.lane.take_descriptor(), os.dup(session.lane.file)]
        try:
            require(load(session, 1, flat_text(FAULTS))[0] == SUCCESS, "no kernel")
            session.post("gpLaunch", launch_values(kernel=1 << 32))
            require(session.ask("cuStreamSynchronize", {"hStream": 1})[0] != SUCCESS, "it does not fault")
            wait_until("its pages are free", lambda: not any(stored(file) for file in held), PATIENCE)
        finally:
            for file in held:
                os.close(file)
        both.daemon.check_works()


@case("a limit of bandwidth applies to pinned memory, in both directions and in small pieces")
def _():
    with Configured("[tenant slow]\nbandwidth = 256K\n") as daemon, Pinned(daemon.port, more=field(14, "slow")) as session:
        require(session.make(0, 2 * MIB) == SUCCESS, "no memory")

        def seconds(work):
            begin = time.monotonic()
            work()
            require(session.ask("gpFence")[0] == SUCCESS, "fence")
            return time.monotonic() - begin

        def write(count, size):
            for number in range(count):
                session.write(session.host, bytes([number % 256]) * size)

        def fetch():
            for number in range(5):
                session.post("gpFill", {"stream": 1, "dst": session.host, "pitch": 100000, "element_size": 4, "value": number + 1,
                                        "width": 25000, "height": 1})
                require(session.ask("cuStreamSynchronize", {"hStream": 1})[0] == SUCCESS, "synchronise")
                changed = session.fetch((session.host, 100000))[2]
                require(sum(len(data) for _address, data in changed) >= 25000, f"no change: {number}")

        # The first bytes and the last ones need not be waited for.
        took = seconds(lambda: write(8, 50000))
        require(took > 1.2, f"400,000 bytes came in {took:.2f} s")
        took = seconds(lambda: write(1000, 300))
        require(took > 0.9, f"300,000 bytes in small pieces came in {took:.2f} s")
        took = seconds(fetch)
        require(took > 1.2, f"500,000 bytes went in {took:.2f} s")


@case("a client that is killed while its kernel waits for it leaves no resources allocated")
def _():
    with Both() as both:
        for remote in both.local, both.daemon.address:
            program = Program("zerocopy", ("wait",), remote)
            program.wait_for_output("waiting")
            program.kill()
        # No call of CUDA stops a kernel: on a GPU the worker ends with it, and clients that connect meanwhile may get an error.
        both.daemon.wait_for_ends()
        both.daemon.settle()
        both.daemon.check_works()


@case("memory that kernels reach is had again and again beside a kernel that does not end")
def _():
    with Daemon() as daemon:
        # The device does not become nearly idle, so the worker does not free the memory yet.
        sleeper = daemon.start("sleeper", "-ms=600000")
        sleeper.wait_for_output("running")
        stats = read_stats(daemon.run("probe", "reach", "40", str(8 << 20), path=os.environ["GP_PROBE"], env=ASKED))
        # Natively this waits for no other kernel: each block is mapped at once, at unused addresses.
        require(stats.causes["gpHostMap"] == 40, f"it waits for the daemon to let go of addresses: {stats}")
        sleeper.kill()


if __name__ == "__main__":
    sys.exit(main())
