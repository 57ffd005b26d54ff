# SPDX-License-Identifier: Apache-2.0
"""The worker's end of its channel, as code has it that has taken over the worker. Needs root and Linux 5.6."""
import ctypes
import os
import re
import socket
import struct

from harness import Skip, read_arguments, read_file

LIBC = ctypes.CDLL(None, use_errno=True)
PIDFD_GETFD = 438
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "server", "common", "ledger", "channel.h")


def read_types():
    """The message types of channel.h by their names, without the prefix."""
    body = re.search(r"enum gpd_channel_type \{(.*?)\n\};", read_file(SOURCE), re.S)[1]
    names = re.findall(r"^\s*GPD_CHANNEL_(\w+)(?: = (\d+))?,", body, re.M)
    types, number = {}, 0
    for name, value in names:
        number = int(value) if value else number + 1
        types[name] = number
    return types


TYPES = read_types()


class Channel:
    def __init__(self, pid):
        words = read_arguments(pid)
        fd = int(words[words.index("--worker-fd") + 1])
        if not hasattr(os, "pidfd_open"):
            raise Skip("no pidfd_open()")
        process = os.pidfd_open(pid)
        copy = LIBC.syscall(PIDFD_GETFD, process, fd, 0)
        os.close(process)
        if copy < 0:
            raise Skip(f"no pidfd_getfd(): {os.strerror(ctypes.get_errno())}")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, fileno=copy)

    def send(self, name, result=0, session=0, data=b"", fds=()):
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack(f"{len(fds)}i", *fds))] if fds else []
        self.socket.sendmsg([struct.pack("<IiQ", TYPES[name], result, session) + data], ancillary)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
