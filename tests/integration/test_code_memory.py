# SPDX-License-Identifier: Apache-2.0
"""Device code has a part of the memory of the daemon's machine, and each tenant its part of that, whatever others do."""
import os
import struct
import sys
import threading
import time

from harness import Configured, case, main, require, wait_until
from hostile import SUCCESS
from wire import BULK, Session, field, flat_image, load, record

MIB = 1 << 20
OUT_OF_MEMORY = 2
IN_A_PROCESS = field(13, field(4, 2))
TENANTS = "[daemon]\ncode-memory = 300M\n[tenant a]\n[tenant b]\n"


def of(tenant):
    return field(14, tenant)


def machine_code(size, number):
    """An ELF for a GPU that holds nothing but a number and zeros."""
    names = b"\0.shstrtab\0"
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 190, 1, 0, 0, 64, 0, 64, 56, 0, 64, 2, 1)
    sections = bytes(64) + struct.pack("<IIQQQQIIQQ", 1, 3, 0, 0, 192, len(names), 0, 0, 1, 0)
    data = header + sections + names + struct.pack("<Q", number)
    return data + bytes(size - len(data))


def image_of(size, number):
    """saxpy, and besides machine code for an architecture that nobody has."""
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


def sessions_of(daemon, count, **more):
    sessions = [Session(daemon.port, **more) for _ in range(count)]
    for session in sessions:
        session.create_context()
    return sessions


@case("each tenant has a part of the machine's memory for device code, in all its sessions and workers")
def _():
    with Configured(TENANTS) as daemon:
        alone = sessions_of(daemon, 2, more=of("a") + IN_A_PROCESS)
        shared, = sessions_of(daemon, 1, more=of("a"))
        require(loads(alone[0], 1, image_of(40 * MIB, 1)) and loads(alone[0], 2, image_of(40 * MIB, 2)), "there is room")
        for session in alone[1], shared:
            require(not loads(session, 1, image_of(40 * MIB, 3)), "more than the tenant may have")
        daemon.wait_for_log(rf"session {shared.id} \(.*\): an image of 409\d\d KiB is refused: it has 0 of 0 KiB, "
                            r"its tenant 819\d\d of 102400 KiB \(code-memory\)")
        # What one tenant has is in no other's way.
        others = sessions_of(daemon, 1, more=of("b")) + sessions_of(daemon, 1)
        for session in others:
            require(loads(session, 1, image_of(90 * MIB, 4)), "another tenant's programs are kept out")
            require(not loads(session, 2, image_of(20 * MIB, 5)), "more than the tenant may have")
        daemon.check_works()
        # What is there for one is there for others, and counts for them.
        result, _ = load(shared, 3, image_of(40 * MIB, 1), bulk=False)
        require(result == OUT_OF_MEMORY, f"it does not count: {result}")
        # A process that is killed takes nothing along.
        os.kill(max(daemon.workers()), 9)
        wait_until("it is gone", lambda: len(daemon.workers()) == 2, 60)
        for session in alone:
            session.close()
        wait_until("only one worker is left", lambda: len(daemon.workers()) == 1, 60)
        wait_until("what the others had is there", lambda: loads(shared, 4, image_of(90 * MIB, 8)), 60)
        for session in shared, *others:
            session.close()


@case("what a session only says that it will load is in no other tenant's way, and goes with it")
def _():
    with Configured(TENANTS) as daemon:
        boasts, asks = sessions_of(daemon, 2, more=of("a"))
        neighbour, = sessions_of(daemon, 1, more=of("b"))
        # It asks and sends nothing: there are no such images.
        for number in range(50):
            result, reply = load(asks, 1, b"", sha=bytes([number] * 32), size=99 * MIB, bulk=False)
            require(result == SUCCESS and reply["missing"], f"{result}, {reply}")
        require(loads(boasts, 2, image_of(30 * MIB, 1)), "what was only asked for is in the way")
        # And this one sends no more than the beginning.
        values = {"context": 1, "image": 1, "sha256": bytes(32), "size": 60 * MIB, "options": b""}
        said = record("gpImageLoad", values, 1, 1, BULK)
        boasts.lane.send(struct.pack("<II", len(said), 60 * MIB) + said + bytes(1000))
        wait_until("it counts", lambda: not loads(asks, 3, image_of(11 * MIB, 2)) or asks.post("gpImageUnload", {"image": 3}), 60)
        require(loads(neighbour, 1, image_of(90 * MIB, 3)), "another tenant's programs are kept out")
        boasts.lane.close()
        wait_until("it has gone with its session", lambda: loads(asks, 4, image_of(90 * MIB, 4)), 60)
        for session in neighbour, asks:
            session.close()


def at_once(function, sessions):
    """What it gives for each of them, which do it together."""
    results = [None] * len(sessions)

    def run(n):
        results[n] = function(sessions[n], n)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(len(sessions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@case("what a session has unloaded goes for what is loaded next")
def _():
    with Configured("[daemon]\ncode-memory = 100M\n") as daemon:
        alone, = sessions_of(daemon, 1, more=IN_A_PROCESS)
        stays, greedy = sessions_of(daemon, 2)
        for number in range(12):
            require(loads(greedy, 10 + number, image_of(31 * MIB, number)), f"image {number} of a session that has none")
            greedy.post("gpImageUnload", {"image": 10 + number})
        require(loads(greedy, 1, image_of(90 * MIB, 20)), "the session has no room for one image")
        greedy.post("gpImageUnload", {"image": 1})
        require(loads(greedy, 2, image_of(91 * MIB, 24)), "the session has no room for the next")
        greedy.close()
        for number, session in enumerate((stays, alone)):
            wait_until("what the session has had is there for others", lambda: loads(session, 2, image_of(45 * MIB, 30 + number)), 60)
        for session in stays, alone:
            session.close()


@case("a limit that is another one holds for what is loaded next, and a tenant may have one of its own")
def _():
    with Configured("[daemon]\ncode-memory = 1G\n[tenant a]\n") as daemon:
        session, = sessions_of(daemon, 1, more=of("a"))
        require(loads(session, 1, image_of(60 * MIB, 1)), "there is room")
        daemon.reload("[daemon]\ncode-memory = 100M\n[tenant a]\n")
        require(not loads(session, 2, image_of(10 * MIB, 2)), "more than the tenant may have")
        daemon.reload("[daemon]\ncode-memory = 100M\n[tenant a]\ncode-memory = 75M\n")
        require(loads(session, 2, image_of(10 * MIB, 2)), "the tenant has not its own part")
        require(not loads(session, 3, image_of(10 * MIB, 3)), "more than the tenant may have")
        session.close()


@case("of sessions that load at once as many get their code as there is room for")
def _():
    with Configured("[daemon]\ncode-memory = 200M\n") as daemon:
        sessions = sessions_of(daemon, 2) + sessions_of(daemon, 2, more=IN_A_PROCESS)
        images = [image_of(60 * MIB, n) for n in range(len(sessions))]
        for number in range(1, 4):
            got = at_once(lambda session, n, number=number: loads(session, number, images[n]), sessions)
            require(sum(got) == 3, f"{got} got their code, of three for whom there is room")
            for session, mine in zip(sessions, got):
                if mine:
                    session.post("gpImageUnload", {"image": number})
                    session.ask("gpFence")
            images = [image_of(60 * MIB, 10 * number + n) for n in range(len(sessions))]
        for session in sessions:
            session.close()


@case("sessions that load the same code at once have it sent once, unless who is to send it does not")
def _():
    with Configured("[daemon]\ncode-memory = 100M\n") as daemon:
        def get(session, image, number):
            """Whether it had to send it."""
            result, reply = load(session, number, image, bulk=False)
            require(result == SUCCESS, f"asking for it: {result}")
            if reply["missing"]:
                require(loads(session, number, image), "there is no room for it")
            return reply["missing"]

        sessions = sessions_of(daemon, 4)
        image = image_of(20 * MIB, 1)
        sent = at_once(lambda session, _n: get(session, image, 1), sessions)
        require(sum(sent) == 1, f"{sent} have sent it")
        for session in sessions:
            session.post("gpImageUnload", {"image": 1})
            session.ask("gpFence")
        # Each that waits does so for two seconds, and in all for ten.
        image = image_of(5 * MIB, 2)
        result, reply = load(sessions[0], 2, image, bulk=False)
        require(result == SUCCESS and reply["missing"], f"{result}, {reply}")
        begin = time.monotonic()
        require(get(sessions[1], image, 2) == 1, "nobody has sent it")
        require(1.5 < time.monotonic() - begin < 20, f"that took {time.monotonic() - begin:.1f} s")
        require(get(sessions[0], image, 2) == 0, "it is not there for who said first that it would send it")
        # Who leaves sends nothing, and nobody waits for that.
        image = image_of(1 * MIB, 3)
        result, reply = load(sessions[2], 3, image, bulk=False)
        require(result == SUCCESS and reply["missing"], f"{result}, {reply}")
        sessions.pop(2).close()
        begin = time.monotonic()
        require(get(sessions[0], image, 3) == 1, "nobody has sent it")
        require(time.monotonic() - begin < 1.5, "it has waited for who is gone")
        for session in sessions:
            session.close()


if __name__ == "__main__":
    sys.exit(main())
