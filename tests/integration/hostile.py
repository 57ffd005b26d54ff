# SPDX-License-Identifier: Apache-2.0
"""Daemon for peers that violate protocol/wire.md. Their session ends with a reason in the log, or the call fails if
the protocol requires that. The daemon, its worker and a running neighbor program are not affected."""
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
    """A daemon that must remain in service."""

    def neighbour(self):
        return Neighbour(self)

    def expect_ended(self, session, reason):
        """The session's lane is closed, and the log has the reason."""
        expect_closed(session.lane)
        wait_until(f"the log has {reason!r} for session {session.id}",
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
        """It serves, has not lost its worker, and has logged the end of at least this number of sessions."""
        self.check_works()
        require("lost its GPU" not in self.log() and "killed" not in self.log(), "a worker was lost")
        lines = re.findall(r"gpupoold\[\d+\]: \w+: session \d+ \(.*\): closed: .*$", self.log(), re.M)
        require(len(lines) >= ended, f"the log has the end of {len(lines)} sessions only")
