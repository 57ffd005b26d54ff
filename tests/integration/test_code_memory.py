# SPDX-License-Identifier: Apache-2.0
"""Host memory for device code: the daemon's limit, and each tenant's part of it, independent of other tenants."""
import os
import re
import struct
import subprocess
import sys
import tempfile
import threading
import time

from harness import SOFTWARE, Configured, Daemon, Skip, case, main, read_file, require, wait_until
from hostile import SUCCESS
from wire import BULK, Session, field, flat_image, flat_text, launch_values, load, record

MIB = 1 << 20
OUT_OF_MEMORY, INVALID_IMAGE, INVALID_PTX = 2, 200, 218
IN_A_PROCESS = field(13, field(4, 2))
TENANTS = "[daemon]\nisolation = shared\ncode-memory = 300M\n[tenant a]\n[tenant b]\n"


def tenant_field(tenant):
    return field(14, tenant)


def machine_code(size, number):
    """An ELF for a GPU that holds nothing but a number and zeros."""
    names = b"\0.shstrtab\0"
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 190, 1, 0, 0, 64, 0, 64, 56, 0, 64, 2, 1)
    sections = bytes(64) + struct.pack("<IIQQQQIIQQ", 1, 3, 0, 0, 192, len(names), 0, 0, 1, 0)
    data = header + sections + names + struct.pack("<Q", number)
    return data + bytes(size - len(data))


def repeated(begin, size):
    """A frame of zstd: these bytes, and zeros up to the size."""
    def block(kind, length, data, last):
        return struct.pack("<I", last | kind << 1 | length << 3)[:3] + data

    out = [struct.pack("<IBQ", 0xFD2FB528, 0xE0, size), block(0, len(begin), begin, False)]
    left = size - len(begin)
    while left:
        length = min(left, 128 << 10)
        left -= length
        out.append(block(1, length, b"\0", not left))
    return b"".join(out)


def pack_entry(begin, size, kind=2, sm=37):
    """A fatbin's entry of compressed code that begins so: machine code, or of another kind."""
    payload = repeated(begin, size)
    stored, payload = len(payload), payload + bytes(-len(payload) % 8)
    options = 64 if kind == 1 else 0
    entry = struct.pack("<HHIQIIHHIIIQQQ", kind, 0x0101, 64 + options // 8, len(payload), stored, options, 0, 8, sm, 0, 0, 0x8001, 0, size)
    return entry + bytes(options // 8) + payload


def packed_text(size, number):
    """A fatbin of one kernel in PTX, which is followed by zeros when it is unpacked."""
    text = b".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k%d() {\nret;\n}\n" % number
    entry = pack_entry(text, size, 1, 80)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry)) + entry


def with_saxpy(entry):
    """An image with the entry after those of saxpy."""
    with open(os.path.join(os.environ["GP_APPS"], "saxpy.fatbin"), "rb") as file:
        fatbin = file.read()
    begin, length = struct.unpack_from("<H", fatbin, 6)[0], struct.unpack_from("<Q", fatbin, 8)[0]
    return flat_image(fatbin[:8] + struct.pack("<Q", length + len(entry)) + fatbin[16:begin + length] + entry)


def make_image(size, number):
    """saxpy, and machine code for an architecture that no GPU has."""
    with open(os.path.join(os.environ["GP_APPS"], "saxpy.fatbin"), "rb") as file:
        fatbin = file.read()
    begin, length = struct.unpack_from("<H", fatbin, 6)[0], struct.unpack_from("<Q", fatbin, 8)[0]
    entry = bytearray(fatbin[begin:begin + 64])
    for layout, offset, value in (("<H", 0, 2), ("<I", 4, 64), ("<Q", 8, size), ("<I", 16, 0), ("<I", 20, 0), ("<I", 28, 37), ("<I", 32, 0),
                                  ("<I", 36, 0), ("<Q", 40, 1), ("<Q", 56, 0)):
        struct.pack_into(layout, entry, offset, value)
    fatbin = bytearray(fatbin[:begin + length] + entry + machine_code(size, number))
    struct.pack_into("<Q", fatbin, 8, len(fatbin) - begin)
    return flat_image(bytes(fatbin))


def loads(session, name, image):
    result, reply = load(session, name, image)
    require(result in (SUCCESS, OUT_OF_MEMORY), f"loading has another result: {result}")
    return result == SUCCESS


def open_sessions(daemon, count, **more):
    sessions = [Session(daemon.port, **more) for _ in range(count)]
    for session in sessions:
        session.create_context()
    return sessions


@case("each tenant has a part of the machine's memory for device code, in all its sessions and workers")
def _():
    with Configured(TENANTS) as daemon:
        alone = open_sessions(daemon, 2, more=tenant_field("a") + IN_A_PROCESS)
        shared, = open_sessions(daemon, 1, more=tenant_field("a"))
        require(loads(alone[0], 1, make_image(40 * MIB, 1)) and loads(alone[0], 2, make_image(40 * MIB, 2)), "there is room")
        for session in alone[1], shared:
            require(not loads(session, 1, make_image(40 * MIB, 3)), "more than the tenant may have")
        daemon.wait_for_log(rf"session {shared.id} \(.*\): an image of 409\d\d KiB is refused: it has 0 of 0 KiB, "
                            r"its tenant 819\d\d of 102400 KiB \(code-memory\)")
        # The images of one tenant do not count for another.
        others = open_sessions(daemon, 1, more=tenant_field("b")) + open_sessions(daemon, 1)
        for session in others:
            require(loads(session, 1, make_image(90 * MIB, 4)), "another tenant's programs are kept out")
            require(not loads(session, 2, make_image(20 * MIB, 5)), "more than the tenant may have")
        daemon.check_works()
        # An image of one session is available to others of its tenant, and counts for them.
        result, _ = load(shared, 3, make_image(40 * MIB, 1), bulk=False)
        require(result == OUT_OF_MEMORY, f"it does not count: {result}")
        # A process that is killed takes nothing along.
        os.kill(max(daemon.workers()), 9)
        wait_until("it is gone", lambda: len(daemon.workers()) == 2, 60)
        for session in alone:
            session.close()
        wait_until("only one worker is left", lambda: len(daemon.workers()) == 1, 60)
        wait_until("the memory of the other sessions is available", lambda: loads(shared, 4, make_image(90 * MIB, 8)), 60)
        for session in shared, *others:
            session.close()


@case("an image that a session only announces does not count for another tenant, and ends with the session")
def _():
    with Configured(TENANTS) as daemon:
        boasts, asks = open_sessions(daemon, 2, more=tenant_field("a"))
        neighbour, = open_sessions(daemon, 1, more=tenant_field("b"))
        # It asks and sends nothing: there are no such images.
        for number in range(50):
            result, reply = load(asks, 1, b"", sha=bytes([number] * 32), size=99 * MIB, bulk=False)
            require(result == SUCCESS and reply["missing"], f"{result}, {reply}")
        require(loads(boasts, 2, make_image(30 * MIB, 1)), "images that were only announced count")
        # And this one sends no more than the beginning.
        values = {"context": 1, "image": 1, "sha256": bytes(32), "size": 60 * MIB, "options": b""}
        said = record("gpImageLoad", values, 1, 1, BULK)
        boasts.lane.send(struct.pack("<II", len(said), 60 * MIB) + said + bytes(1000))
        wait_until("it counts", lambda: not loads(asks, 3, make_image(11 * MIB, 2)) or asks.post("gpImageUnload", {"image": 3}), 60)
        require(loads(neighbour, 1, make_image(90 * MIB, 3)), "another tenant's programs are kept out")
        boasts.lane.close()
        wait_until("it has gone with its session", lambda: loads(asks, 4, make_image(90 * MIB, 4)), 60)
        for session in neighbour, asks:
            session.close()


def at_once(function, sessions):
    """Results of the function for each session, called at the same time."""
    results = [None] * len(sessions)

    def run(n):
        results[n] = function(sessions[n], n)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(len(sessions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@case("unloaded images are dropped when a load needs their memory")
def _():
    with Configured("[daemon]\ncode-memory = 100M\n") as daemon:
        alone, = open_sessions(daemon, 1, more=IN_A_PROCESS)
        stays, greedy = open_sessions(daemon, 2)
        for number in range(12):
            require(loads(greedy, 10 + number, make_image(31 * MIB, number)), f"image {number} of a session that has none")
            greedy.post("gpImageUnload", {"image": 10 + number})
        require(loads(greedy, 1, make_image(90 * MIB, 20)), "the session has no room for one image")
        greedy.post("gpImageUnload", {"image": 1})
        require(loads(greedy, 2, make_image(91 * MIB, 24)), "the session has no room for the next")
        greedy.close()
        for number, session in enumerate((stays, alone)):
            wait_until("the memory of the ended session is available to others", lambda: loads(session, 2, make_image(45 * MIB, 30 + number)), 60)
        for session in stays, alone:
            session.close()


@case("a changed limit applies to later loads, and a tenant may have a limit of its own")
def _():
    with Configured("[daemon]\ncode-memory = 1G\n[tenant a]\n") as daemon:
        session, = open_sessions(daemon, 1, more=tenant_field("a"))
        require(loads(session, 1, make_image(60 * MIB, 1)), "there is room")
        daemon.reload("[daemon]\ncode-memory = 100M\n[tenant a]\n")
        require(not loads(session, 2, make_image(10 * MIB, 2)), "more than the tenant may have")
        daemon.reload("[daemon]\ncode-memory = 100M\n[tenant a]\ncode-memory = 75M\n")
        require(loads(session, 2, make_image(10 * MIB, 2)), "the tenant has not its own part")
        require(not loads(session, 3, make_image(10 * MIB, 3)), "more than the tenant may have")
        session.close()


@case("of sessions that load at once as many get their code as there is room for")
def _():
    with Configured("[daemon]\ncode-memory = 200M\n") as daemon:
        sessions = open_sessions(daemon, 2) + open_sessions(daemon, 2, more=IN_A_PROCESS)
        images = [make_image(60 * MIB, n) for n in range(len(sessions))]
        for number in range(1, 4):
            got = at_once(lambda session, n, number=number: loads(session, number, images[n]), sessions)
            require(sum(got) == 3, f"{got} got their code, of three for whom there is room")
            for session, mine in zip(sessions, got):
                if mine:
                    session.post("gpImageUnload", {"image": number})
                    session.ask("gpFence")
            images = [make_image(60 * MIB, 10 * number + n) for n in range(len(sessions))]
        for session in sessions:
            session.close()


@case("code that sessions load at the same time is sent once, unless the sender does not send it")
def _():
    with Configured("[daemon]\ncode-memory = 100M\n") as daemon:
        def get(session, image, number):
            """Whether it had to send it."""
            result, reply = load(session, number, image, bulk=False)
            require(result == SUCCESS, f"asking for it: {result}")
            if reply["missing"]:
                require(loads(session, number, image), "there is no room for it")
            return reply["missing"]

        sessions = open_sessions(daemon, 4)
        image = make_image(20 * MIB, 1)
        sent = at_once(lambda session, _n: get(session, image, 1), sessions)
        require(sum(sent) == 1, f"{sent} have sent it")
        for session in sessions:
            session.post("gpImageUnload", {"image": 1})
            session.ask("gpFence")
        # Each that waits does so for two seconds, and in all for ten.
        image = make_image(5 * MIB, 2)
        result, reply = load(sessions[0], 2, image, bulk=False)
        require(result == SUCCESS and reply["missing"], f"{result}, {reply}")
        begin = time.monotonic()
        require(get(sessions[1], image, 2) == 1, "no session has sent it")
        require(1.5 < time.monotonic() - begin < 20, f"that took {time.monotonic() - begin:.1f} s")
        require(get(sessions[0], image, 2) == 0, "it is missing for the session that announced it first")
        # A session that ends sends nothing, and no other session waits for it.
        image = make_image(1 * MIB, 3)
        result, reply = load(sessions[2], 3, image, bulk=False)
        require(result == SUCCESS and reply["missing"], f"{result}, {reply}")
        sessions.pop(2).close()
        begin = time.monotonic()
        require(get(sessions[0], image, 3) == 1, "no session has sent it")
        require(time.monotonic() - begin < 1.5, "it has waited for an ended session")
        for session in sessions:
            session.close()


def peak_kib(daemon):
    return sum(int(re.search(r"^VmHWM:\s+(\d+)", read_file(f"/proc/{pid}/status"), re.M)[1]) for pid in daemon.workers())


@case("compressed code takes no more memory than its tenant may have, and none if it is not code")
def _():
    size = (2 << 30) - MIB
    with Configured("[daemon]\ncode-memory = 6G\n[tenant a]\ncode-memory = 2M\n[tenant b]\ncode-memory = 4G\n") as daemon:
        small, large = open_sessions(daemon, 3, more=tenant_field("a")), open_sessions(daemon, 2, more=tenant_field("b"))
        before = peak_kib(daemon)
        got = at_once(lambda session, n: load(session, 1, with_saxpy(pack_entry(machine_code(4096, n), size)))[0], small)
        require(got == [OUT_OF_MEMORY] * len(small), f"more than the tenant may have: {got}")
        daemon.wait_for_log(r"compressed code is refused: unpacking it takes 2096128 KiB, more than is left of the tenant's code-memory")
        got = at_once(lambda session, n: load(session, 1, with_saxpy(pack_entry(bytes([n + 1] * 4096), size)))[0], large)
        require(got == [INVALID_IMAGE] * len(large), f"code that is not an ELF: {got}")
        daemon.wait_for_log(r"an image is refused: its compressed code is not an ELF for a GPU")
        grown = peak_kib(daemon) - before
        require(grown < 1 << 20, f"that has taken {grown >> 10} MiB")
        # Nothing of it counts any more.
        for session in large:
            require(loads(session, 2, with_saxpy(pack_entry(machine_code(4096, 9), 20 * MIB))), "there is room")
        for session in small + large:
            session.close()


@case("sessions of a tenant that unpack code at once wait for each other, where the tenant has room for one")
def _():
    with Configured("[daemon]\ncode-memory = 300M\n[tenant a]\n[tenant b]\n") as daemon:
        sessions = open_sessions(daemon, 4, more=tenant_field("a"))
        got = at_once(lambda session, n: loads(session, 1, with_saxpy(pack_entry(machine_code(4096, n), 60 * MIB))), sessions)
        require(all(got), f"not all have got their code: {got}")
        for session in sessions:
            session.close()


@case("code that the driver unpacks counts while it is loaded")
def _():
    with Configured("[daemon]\ncode-memory = 1G\n[tenant a]\ncode-memory = 64M\n") as daemon:
        session, other = open_sessions(daemon, 2, more=tenant_field("a"))
        before = peak_kib(daemon)
        for number in range(1, 9):
            require(not loads(session, number, flat_image(packed_text(256 * MIB, number))), "more than the tenant may have")
        daemon.wait_for_log(r"compressed code is refused: unpacking it takes 262144 KiB, more than is left of the tenant's code-memory")
        for number in range(1, 17):
            got = loads(session if number % 2 else other, 10 + number, flat_image(packed_text(60 * MIB, number)))
            require(got == (number == 1), f"image {number}, loaded {got}, of 60 MiB each where the tenant has 64 MiB")
        # Another image of the same code is charged as well.
        session.post("gpImageAgain", {"context": 1, "image": 40, "like": 11})
        session.ask("gpFence")
        require(session.errors(), "the same once more is not charged")
        # So is what is to be linked, until the linker ends.
        session.post("gpImageUnload", {"image": 11})
        require(session.ask("gpLinkCreate", {"linker": 9})[0] == SUCCESS, "no linker")
        for number, wanted in (60, SUCCESS), (61, OUT_OF_MEMORY):
            result, _ = session.ask("gpLinkAdd", {"linker": 9, "type": 2}, packed_text(60 * MIB, number))
            require(result == wanted, f"linking: {result}")
        require(not loads(other, 1, flat_image(packed_text(60 * MIB, 70))), "the linker's part does not count")
        session.post("gpLinkDrop", {"linker": 9})
        session.ask("gpFence")
        # The driver keeps up to 512 MiB of unused images.
        for number in range(80, 120):
            require(loads(session, number, flat_image(packed_text(60 * MIB, number))), "it is not given back")
            session.post("gpImageUnload", {"image": number})
        grown = peak_kib(daemon) - before
        require(grown < 3 << 19, f"that has taken {grown >> 10} MiB")
        for each in session, other:
            each.close()


@case("a tenant uses only code that it has sent")
def _():
    def is_missing(session, number, image):
        result, reply = load(session, number, image, bulk=False)
        require(result == SUCCESS, f"asking for it: {result}")
        return bool(reply["missing"])

    with Configured(TENANTS) as daemon:
        image = make_image(MIB, 1)
        (a, later), (b,) = open_sessions(daemon, 2, more=tenant_field("a")), open_sessions(daemon, 1, more=tenant_field("b"))
        require(is_missing(a, 1, image), "no session has sent it")
        require(loads(a, 1, image), "there is room")
        require(not is_missing(later, 1, image), "its tenant has sent it")
        require(is_missing(b, 1, image), "another tenant has sent it")
        b.close()
        b, = open_sessions(daemon, 1, more=tenant_field("b"))
        require(is_missing(b, 1, image) and loads(b, 1, image), "there is room")
        require(not is_missing(b, 2, image), "its tenant has sent it")
        for session in a, later, b:
            session.close()


@case("a kernel has at most 48 KiB of static shared memory")
def _():
    def text(size):
        return flat_text(b".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\n.reg .u64 %%rd<2>;\n"
                         b".shared .b8 a[%d];\nmov.u64 %%rd1, a;\nst.shared.u32 [%%rd1], 1;\nret;\n}\n" % size)

    if not SOFTWARE:
        raise Skip("needs the software device, whose compiler is our own")
    with Daemon() as daemon:
        session, = open_sessions(daemon, 1)
        for number, size in enumerate((1 << 32, (1 << 32) - 15, 1 << 33, (48 << 10) + 1), 1):
            result, _ = load(session, number, text(size))
            require(result == INVALID_PTX, f"{size} bytes: {result}")
        require(load(session, 9, text(48 << 10))[0] == SUCCESS, "48 KiB are allowed")
        session.post("gpLaunch", launch_values(kernel=9 << 32))
        session.ask("gpFence")
        require(not session.errors(), f"the kernel has failed: {session.errors()}")
        session.close()


@case("the cache on disk leaves a tenth of its file system free")
def _():
    with tempfile.TemporaryDirectory(prefix="gpupool-cache-") as folder:
        mounts = ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                  f'mount -t tmpfs -o size=64M tmpfs {folder} && exec "$@"', "sh"]
        if subprocess.run([*mounts, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
            raise Skip("nothing can be mounted here")
        with Daemon(env={"GPUPOOL_CACHE_DIR": folder}, prefix=mounts) as daemon:
            session, = open_sessions(daemon, 1)
            for number in range(1, 41):
                require(loads(session, number, make_image(2 * MIB, number)), "there is room")

            def is_written():
                tasks = [f"/proc/{pid}/task" for pid in daemon.workers()]
                try:
                    return "image-disk\n" not in [read_file(f"{task}/{thread}/comm") for task in tasks for thread in os.listdir(task)]
                except FileNotFoundError:
                    return False  # a thread has ended

            wait_until("all is written", is_written, 60)
            seen = f"/proc/{daemon.pid}/root{folder}"
            room = os.statvfs(seen)
            require(room.f_blocks * room.f_frsize == 64 * MIB, "it is another file system")
            require(len(os.listdir(seen)) >= 8, f"only {os.listdir(seen)} are there")
            require(room.f_bavail * 10 >= room.f_blocks, f"{room.f_bavail} of {room.f_blocks} blocks are free")
            session.close()


if __name__ == "__main__":
    sys.exit(main())
