# SPDX-License-Identifier: Apache-2.0
"""Data lanes that reach the daemon in another order than they were opened, late, or not at all."""
import os
import re
import socket
import struct
import sys
import threading
import time

import wire
from harness import Daemon, case, main, require, wait_until
from wire import Session, message

MIB = 1 << 20
SUCCESS = 0
# As the daemon's: how long lane 0 may take.
LANE_SECONDS = 10
# The daemon's limit of data lanes with one number that wait for lane 0.
EARLY = 4


class Path(wire.Listener):
    """Passes connections on to a daemon; lane 0 only after lane_after seconds (None: never). mute: passes on
    neither the daemon's messages after its Welcome on the control connection, nor its closing. Listens on
    this machine alone."""

    def __init__(self, daemon, lane_after, mute=False):
        self.port, self.lane_after, self.mute = daemon.port, lane_after, mute
        self.lanes = []
        super().__init__()

    def begin(self, near):
        """A client may give up a connection that it has made ahead, and make another."""
        first = near.recv(64, socket.MSG_WAITALL)
        if len(first) < 64:
            return
        kind, lane = struct.unpack_from("<HH", first, 12)
        if kind == wire.LANE and lane == 0:
            if self.lane_after is None:
                return
            time.sleep(self.lane_after)
        if kind == wire.LANE:
            self.lanes.append(lane)
        far = socket.create_connection(("127.0.0.1", self.port))
        self.sockets.append(far)
        far.sendall(first)
        threading.Thread(target=self.carry, args=(near, far), daemon=True).start()
        if kind == wire.CONTROL and self.mute:
            self.welcome(far, near)
        else:
            self.carry(far, near)

    @staticmethod
    def welcome(far, near):
        near.sendall(far.recv(64, socket.MSG_WAITALL))
        head = far.recv(8, socket.MSG_WAITALL)
        near.sendall(head + far.recv(sum(struct.unpack("<II", head)), socket.MSG_WAITALL))

    @staticmethod
    def carry(source, target):
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def open_early(daemon):
    """A session whose lane 0 has not come."""
    return Session(daemon.port, lane=False, lanes=4)


def begin(session):
    session.lane = session.connect_lane()
    session.create_context()
    require(session.map(0, 4 * MIB) == SUCCESS, "map")


def copy(session, lane, data):
    session.post("gpCopyInLanes", {"stream": 1, "dst": session.base, "size": len(data), "flags": 0, "copy": 1})
    lane.send(message(struct.pack("<IIQ", 1, 0, 0), data))
    require(session.copy_out(session.base, len(data)) == (SUCCESS, data), "the copy")


def is_open(conn):
    conn.socket.settimeout(0.3)
    try:
        return conn.socket.recv(1) != b""
    except TimeoutError:
        return True
    except OSError:
        return False


@case("a program whose first action is a large copy, over a path on which lane 0 is slow")
def _():
    with Daemon() as daemon, Path(daemon, 1.5) as path:
        result = daemon.run("lanes", "short", env={"REMOTE_GPU": path.address, "GPUPOOL_LANES": "4"})
        result.expect(out="lanes: ok\n", err="")
        require(sorted(path.lanes) == [0, 1, 2, 3], f"lanes: {path.lanes}")


@case("by hand: data lanes that come before lane 0 are the session's, each once")
def _():
    with Daemon() as daemon:
        session = open_early(daemon)
        lanes = [session.connect_lane(n) for n in (2, 1, 3)]
        beyond = session.connect_lane(4)
        beyond.wait_closed()
        daemon.wait_for_log(re.escape("a lane (4) beyond the session's limit: closed"))
        again = session.connect_lane(2)
        begin(session)
        daemon.wait_for_log(re.escape("a lane (2) that the session already has: closed"))
        (lanes[0],), (again,) = wire.find_closed([lanes[0], again])
        for number, lane in enumerate(lanes):
            require(is_open(lane), f"the {number}. data lane was closed")
        copy(session, lanes[0], os.urandom(MIB))
        for lane in (*lanes, again):
            lane.close()
        session.close()


@case("lanes of sessions without a lane 0 are bounded in number and time, and block no other session")
def _():
    with Daemon() as daemon:
        gone, late = open_early(daemon), open_early(daemon)
        lanes = [gone.connect_lane(1) for _ in range(20)]
        wait_until("the oldest give way", lambda: sum(map(is_open, lanes)) <= EARLY, 30)
        waiting = [late.connect_lane(n) for n in (1, 2, 3)]
        begun = time.monotonic()
        # Others are served meanwhile.
        daemon.run("vectoradd").expect()
        gone.close()
        for lane in lanes:
            lane.wait_closed()
        for lane in waiting:
            lane.wait_closed()
        require(time.monotonic() - begun < LANE_SECONDS + 20, "they were kept for too long")
        daemon.wait_for_log("no lane within the timeout")
        # The ticket is not valid any more.
        with late.connect_lane(1) as lane:
            lane.wait_closed()
        late.close()
        daemon.settle()
        daemon.check_works()


@case("a client whose lane 0 is not passed on gets the reason from the daemon when its session ends")
def _():
    with Daemon() as daemon, Path(daemon, None) as path:
        result = daemon.run("vectoradd", env={"REMOTE_GPU": path.address})
        require(result.status != 0 and "no lane within the timeout" in result.err, str(result))
        require(result.seconds < LANE_SECONDS + 30, f"it waited for {result.seconds:.1f} s")


@case("a client whose lane 0 is not passed on, and that gets no messages, gives up in time")
def _():
    with Daemon() as daemon, Path(daemon, None, mute=True) as path:
        result = daemon.run("vectoradd", env={"REMOTE_GPU": path.address, "GPUPOOL_TIMEOUT": "1"})
        require(result.status != 0 and "no first reply within 10 s" in result.err, str(result))


@case("a client whose lane 0 takes longer than a moment waits for it")
def _():
    with Daemon() as daemon, Path(daemon, 4) as path:
        daemon.run("vectoradd", env={"REMOTE_GPU": path.address}).expect(err="")


if __name__ == "__main__":
    sys.exit(main(at_once=4))
