# SPDX-License-Identifier: Apache-2.0
"""One daemon with several devices: peer access, copies between devices, and a session's access to devices of others."""
import os
import sys

from harness import Daemon, Program, Skip, case, main, read_file, require, run, software_env
from hostile import SUCCESS, Host
from wire import Session, field

INVALID_VALUE, INVALID_DEVICE, NO_LINK = 1, 101, 217

TWO = {"GPUPOOL_SOFT_DEVICES": "2"}
THREE = {"GPUPOOL_SOFT_DEVICES": "3"}
APART = {"GPUPOOL_SOFT_DEVICES": "2", "GPUPOOL_SOFT_PEERS": "0"}
MANY = "each has its own variable and memory\ncopies between them\nmanydevices: ok\n"
GRAPHS = "captured\nbuilt\ngraphdevices: ok\n"
PEERS = read_file(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "apps", "expected", "peers.out"))


@case("kernels of a device reach the memory of its peer, and copies go between them")
def _():
    with Daemon(env=software_env(**TWO)) as daemon:
        for name in ("peers", "peers-shared"):
            result = run(name, remote=daemon.address)
            if result.status == 77:
                raise Skip("the daemon has one device only")
            result.expect(out=PEERS, err="")
        daemon.settle()


@case("a graph has nodes of two devices, also of two daemons, and where no link is")
def _():
    with Daemon(env=software_env(**TWO)) as daemon:
        for name in ("graphdevices", "graphdevices-shared"):
            result = run(name, remote=daemon.address)
            if result.status == 77:
                raise Skip("the daemon has one device only")
            result.expect(out=GRAPHS, err="")
        daemon.settle()
    with Daemon(env=software_env(**APART)) as daemon, Daemon(env=software_env()) as other:
        run("graphdevices", remote=daemon.address).expect(out=GRAPHS, err="")
        run("graphdevices", remote=f"{daemon.address}/1,{other.address}").expect(out=GRAPHS, err="")


@case("where no link is, copies go between devices all the same")
def _():
    with Daemon(env=APART) as daemon:
        run("peers", "apart", remote=daemon.address).expect(out="copies\napart\npeers: ok\n", err="")
        run("manydevices", "2", remote=daemon.address).expect(out=MANY, err="")
        daemon.settle()


@case("each device has its own variables and memory, whichever of them a program sees")
def _():
    with Daemon(env=THREE) as daemon:
        for name in ("manydevices", "manydevices-shared"):
            run(name, "3", remote=daemon.address).expect(out=MANY, err="")
        run("peers", remote=f"{daemon.address}/2,{daemon.address}/0").expect(out=PEERS, err="")
        run("peers", remote=daemon.address, env={"CUDA_VISIBLE_DEVICES": "2,1"}).expect(out=PEERS, err="")
        run("peers", remote=f"{daemon.address}/1").expect(status=77)
        daemon.settle()


@case("devices of two daemons are no peers")
def _():
    with Daemon(env=TWO) as one, Daemon() as other:
        run("peers", "apart", remote=f"{one.address}/1,{other.address}").expect(out="copies\napart\npeers: ok\n", err="")


@case("programs with peers run side by side on one worker")
def _():
    with Daemon(env=TWO) as daemon:
        for program in [Program("peers", (), daemon.address) for _ in range(3)]:
            program.finish().expect(out=PEERS, err="")
        daemon.settle()


def reach(session, device, peer):
    return session.ask("gpPeerAccess", {"device": device, "peer": peer})[0]


def prepare(session):
    """A context and memory of each device; where the memory is."""
    for device in range(2):
        require(session.create_context(1 + device, 1 + device, device=device) == SUCCESS, "context")
        require(session.map(device * session.granularity, session.granularity, device) == SUCCESS, "map")
    return [session.base + device * session.granularity for device in range(2)]


def expect_refused(session, post):
    before = len(session.errors())
    post(session)
    require(session.ask("gpFence")[0] == SUCCESS, "fence")
    errors = session.errors()[before:]
    require(len(errors) == 1 and errors[0][0] == INVALID_VALUE, f"{errors}")


@case("devices that are none, or none of the session's, are no peers")
def _():
    with Host(env=THREE) as daemon:
        with Session(daemon.port) as session:
            prepare(session)
            for device, peer in ((0, 3), (3, 0), (0, -1), (-1, 0), (31, 0), (0, 32), (0, 1 << 30), (-(1 << 31), 1)):
                require(reach(session, device, peer) == INVALID_DEVICE, f"device {device}, peer {peer}")
            for device in range(3):
                require(reach(session, device, device) == NO_LINK, f"device {device} as its own peer")
            for _ in range(3):
                require(reach(session, 0, 1) == SUCCESS, "peers")
        with Session(daemon.port, more=field(10, 1)) as session:
            require(session.devices == 1 and session.create_context(device=1) == SUCCESS, "device 1 alone")
            for device, peer in ((0, 1), (1, 0), (1, 2), (2, 0)):
                require(reach(session, device, peer) == INVALID_DEVICE, f"device {device}, peer {peer} of another")
        daemon.check_unharmed()
    with Host(env=APART) as daemon:
        with Session(daemon.port) as session:
            prepare(session)
            require(reach(session, 0, 1) == NO_LINK, "there is no link")
        daemon.check_unharmed()


@case("peer access opens no other session's memory")
def _():
    with Host(env=TWO) as daemon:
        with Session(daemon.port) as first, Session(daemon.port) as second:
            mine, other = prepare(first), prepare(second)
            for session in (first, second):
                require(reach(session, 0, 1) == SUCCESS and reach(session, 1, 0) == SUCCESS, "peers")
            first.copy_in(mine[1], b"secret" * 10, stream=2)
            require(first.ask("gpFence")[0] == SUCCESS, "fence")
            for stream in (1, 2):
                result, data = second.copy_out(mine[1], 60, stream)
                require(result == INVALID_VALUE and data == b"", f"a foreign address was read: {result} {data!r}")
                for dst, src in ((other[0], mine[1]), (mine[1], other[0]), (mine[1], mine[0])):
                    expect_refused(second, lambda s, stream=stream, dst=dst, src=src: s.post("gpCopyDevice", {
                        "stream": stream, "dst": dst, "src": src, "width": 60, "height": 1, "depth": 1}))
                expect_refused(second, lambda s, stream=stream: s.copy_in(mine[1], b"x" * 60, stream=stream))
            require(first.copy_out(mine[1], 60, 1) == (SUCCESS, b"secret" * 10), "a foreign address was written")
        daemon.check_unharmed()


@case("memory of another device is worked on by streams of either, with access and without")
def _():
    with Host(env=TWO) as daemon:
        with Session(daemon.port) as session:
            at = prepare(session)
            for given in (False, True):
                require(not given or (reach(session, 0, 1) == SUCCESS and reach(session, 1, 0) == SUCCESS), "peers")
                for stream, address in ((1, at[1]), (2, at[0])):
                    session.copy_in(address, bytes(range(200)), stream=stream)
                    session.post("gpFill", {"stream": stream, "dst": address + 100, "element_size": 1, "value": 9, "width": 50, "height": 2, "pitch": 50})
                    require(session.copy_out(address, 200, stream) == (SUCCESS, bytes(range(100)) + b"\t" * 100), f"stream {stream}")
                    session.post("gpCopyDevice", {"stream": stream, "dst": address + 1000, "src": at[0] + at[1] - address, "width": 20, "height": 3,
                                                  "depth": 1, "dst_pitch": 30, "src_pitch": 20})
                    require(session.ask("gpFence")[0] == SUCCESS and session.errors() == [], f"{session.errors()}")
        daemon.check_unharmed()


if __name__ == "__main__":
    sys.exit(main())
