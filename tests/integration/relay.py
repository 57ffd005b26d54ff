# SPDX-License-Identifier: Apache-2.0
"""relay.py PORT DIRECTION BYTES: forwards connections to a daemon at 127.0.0.1:PORT. After BYTES bytes in one
direction ("up" to the daemon, "down" to the client), summed over all connections, it stops itself by SIGSTOP, while
its kernel continues to acknowledge. After SIGCONT it forwards everything. Prints its own port."""
import os
import selectors
import signal
import socket
import sys

port, direction, left = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
PIECE = 1 << 16


def main():
    global left
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    watched = selectors.DefaultSelector()
    watched.register(listener, selectors.EVENT_READ)
    other, ways = {}, {}
    print(listener.getsockname()[1], flush=True)
    while True:
        for key, _ in watched.select():
            if key.fileobj is listener:
                near, far = listener.accept()[0], socket.create_connection(("127.0.0.1", port))
                other[near], other[far], ways[near], ways[far] = far, near, "up", "down"
                for one in (near, far):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    watched.register(one, selectors.EVENT_READ)
                continue
            one = key.fileobj
            if one not in other:
                continue
            counts = ways[one] == direction and left > 0
            try:
                data = one.recv(min(PIECE, left) if counts else PIECE)
                other[one].sendall(data)
            except OSError:
                data = b""
            if not data:
                peer = other.pop(one)
                other.pop(peer, None)
                for end in (one, peer):
                    if ways.pop(end, None):
                        watched.unregister(end)
                        end.close()
            elif counts:
                left -= len(data)
                if left <= 0:
                    os.kill(os.getpid(), signal.SIGSTOP)


main()
