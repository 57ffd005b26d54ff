# SPDX-License-Identifier: Apache-2.0
"""Daemon for peers that violate protocol/wire.md. Their session ends with a reason in the log, or the call fails if
the protocol says so. The daemon, its worker and a running neighbor program are not affected."""
import re
import socket

from harness import Daemon, require, wait_until
from wire import Closed, Session

SUCCESS = 0


class Neighbour:
    """A program that runs while a peer is hostile, and must not notice."""

    def __init__(self, daemon):
        self.daemon, self.name = daemon, "threads"

    def __enter__(self):
        self.workers = self.daemon.workers()
        self.program = self.daemon.start(self.name)
        return self

    def __exit__(self, kind, error, trace):
        result = self.program.finish()
        if kind is None:
            result.expect(out=f"{self.name}: ok\n", err="")
            require(self.daemon.workers() == self.workers, "the worker was replaced")
            self.daemon.settle()


def expect_closed(conn, seconds=60):
    conn.socket.settimeout(seconds)
    try:
        conn.wait_closed()
    except socket.timeout:
        require(False, "the daemon keeps the connection open")


class Host(Daemon):
    """A daemon that is to serve on, whoever comes."""

    def neighbour(self):
        return Neighbour(self)

    def expect_ended(self, session, reason):
        """The session's lane is closed, and the log says why."""
        expect_closed(session.lane)
        wait_until(f"the log says {reason!r} of session {session.id}",
                   lambda: re.search(rf"session {session.id} \(.*: {reason}", self.log()), 10)
        session.close()

    def violate(self, send, reason, prepare=True):
        """A session that does this on its lane ends for this reason."""
        session = Session(self.port)
        if prepare:
            session.create_context()
            require(session.map(0, session.granularity) == SUCCESS, "no memory could be mapped")
        try:
            send(session)
        except Closed:
            pass
        self.expect_ended(session, reason)

    def check_unharmed(self, ended=0):
        """It serves, has not lost its worker, and has said of so many sessions at least how they ended."""
        self.check_works()
        require("lost its GPU" not in self.log() and "killed" not in self.log(), "a worker was lost")
        lines = re.findall(r"gpupoold\[\d+\]: \w+: session \d+ \(.*\): closed: .*$", self.log(), re.M)
        require(len(lines) >= ended, f"the log says of {len(lines)} sessions how they ended")
