# SPDX-License-Identifier: Apache-2.0
"""The protocol spoken by hand, well or badly (protocol/wire.md): for peers that a client library
would never be."""
import hashlib
import mmap
import os
import re
import select
import socket
import struct
import threading
import time

MAGIC = b"GPUPOOL1"
CONTROL, LANE, CONTROL_TLS, LANE_TLS, LANE_SHM = 0, 1, 2, 3, 4
BULK, REPLY = 1, 2
NOTE_DATA, NOTE_ERROR, NOTE_PRINT, NOTE_FUNCTION = 0xff01, 0xff02, 0xff03, 0xff05


class Closed(Exception):
    """The daemon has closed the connection; the text describes the operation that found it."""


# Protobuf, as far as control.proto needs it.

def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, value):
    """A varint, or bytes of any kind."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def parse_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields_of(data):
    """Field number -> list of values."""
    found, at = {}, 0
    while at < len(data):
        key, at = parse_varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = parse_varint(data, at)
        elif kind == 2:
            size, at = parse_varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            raise ValueError(f"wire type {kind}")
        found.setdefault(key >> 3, []).append(value)
    return found


def varints(data):
    """Of a packed repeated field."""
    found, at = [], 0
    while at < len(data):
        value, at = parse_varint(data, at)
        found.append(value)
    return found


def hello(minor=0, program="test", pid=None, lanes=1, more=b""):
    body = field(1, minor) + field(2, "0.1.0") + field(3, "test") + field(4, "test")
    body += field(5, os.getpid() if pid is None else pid) + field(6, program) + field(11, lanes) + more
    return field(1, body)


def preamble(kind=CONTROL, lane=0, ticket=bytes(32), magic=MAGIC, major=1, minor=0, tail=bytes(16)):
    return magic + struct.pack("<HHHH", major, minor, kind, lane) + ticket + tail


def message(data, bulk=b""):
    return struct.pack("<II", len(data), len(bulk)) + data + bulk


# Records, from the signatures in protocol/abi.lock.

def load_calls(path):
    calls = {}
    with open(path, encoding="ascii") as file:
        for line in file:
            number, name, _, rest = (line.rstrip("\n") + " ").split(" ", 3)
            args, _, reply = rest.partition("-> ")
            pick = [re.fullmatch(r"(\w+)(?:\[\d+\])?:(\w+)", word) for word in args.split()]
            back = [re.fullmatch(r"(\w+)(?:\[\d+\])?:(\w+)", word) for word in reply.split()]
            calls[name] = (int(number, 16), [(m[1], m[2]) for m in pick if m], [(m[1], m[2]) for m in back if m])
    return calls


ABI = os.path.join(os.path.dirname(__file__), "..", "..", "protocol", "abi.lock")
CALLS = load_calls(ABI)
with open(ABI, encoding="ascii") as lock:
    WAITS = {words[1] for words in map(str.split, lock) if words[2] == "wait"}


def pad(data):
    return data + bytes(-len(data) % 8)


def encode_fields(kinds, values):
    out = b""
    for kind, name in kinds:
        value = values.get(name, b"" if kind in ("bytes", "string") else 0)
        if kind in ("u32", "i32"):
            out += struct.pack("<I", value & 0xffffffff)
        elif kind == "f32":
            out += struct.pack("<f", value)
        elif kind == "u64":
            out += bytes(-len(out) % 8) + struct.pack("<Q", value & (1 << 64) - 1)
        else:
            value = value.encode() if isinstance(value, str) else value
            out = pad(out + struct.pack("<I", len(value)))
            out = pad(out + value)
    return pad(out)


def decode_fields(kinds, data):
    values, at = {}, 0
    for kind, name in kinds:
        if kind in ("u32", "i32", "f32"):
            values[name], = struct.unpack_from({"u32": "<I", "i32": "<i", "f32": "<f"}[kind], data, at)
            at += 4
        elif kind == "u64":
            at += -at % 8
            values[name], = struct.unpack_from("<Q", data, at)
            at += 8
        else:
            size, = struct.unpack_from("<I", data, at)
            at += 4
            at += -at % 8
            values[name] = data[at:at + size]
            at += size
            at += -at % 8
    return values


def header(size, call, flags=0, request=0, context=0):
    return struct.pack("<IHHII", size & 0xffffffff, call, flags, request, context)


def record(name, values, request=0, acting=0, flags=0):
    """A record with these fields; acting is the context in its header."""
    number, args, _ = CALLS[name]
    body = encode_fields(args, values)
    return header(16 + len(body), number, flags, request, acting) + body


def flat_image(fatbin):
    """A bare fatbin as it travels (gp_image_flatten)."""
    length = struct.unpack_from("<H", fatbin, 6)[0] + struct.unpack_from("<Q", fatbin, 8)[0]
    return flat(2, fatbin[:length])


def flat_text(ptx):
    """PTX as it travels, with its NUL."""
    return flat(4, ptx + b"\0")


def flat(kind, data):
    body = data + bytes(-len(data) % 16)
    return struct.pack("<IHHIIQQ", 0x4d495047, 1, kind, 1, 0, 48 + len(body), 0) + struct.pack("<QQ", len(data), 0) + body


def take(connection, size):
    """Receives size bytes of a socket, with or without TLS; Closed if it ends before."""
    data = b""
    while len(data) < size:
        try:
            part = connection.recv(min(size - len(data), 1 << 20))
        except ConnectionResetError:
            part = b""
        if not part:
            raise Closed(f"after {len(data)} of {size} bytes")
        data += part
    return data


class Conn:
    """To a port of this machine, or to a local socket by its path; source: the address that it comes from."""

    def __init__(self, port, seconds=20, source=None):
        if isinstance(port, str):
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.socket.settimeout(seconds)
            self.socket.connect(port)
            return
        self.socket = socket.create_connection(("127.0.0.1", port), seconds, source and (source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data):
        """A peer that has closed without having read all is seen by its end of the stream alone."""
        view, poller = memoryview(data), select.poll()
        poller.register(self.socket, select.POLLOUT | select.POLLRDHUP)
        while view:
            events = poller.poll(20000)
            if not events:
                raise TimeoutError("the peer does not read")
            if events[0][1] & (select.POLLRDHUP | select.POLLHUP | select.POLLERR):
                raise Closed("while sending")
            try:
                view = view[self.socket.send(view, socket.MSG_DONTWAIT):]
            except BlockingIOError:
                pass
            except (BrokenPipeError, ConnectionResetError):
                raise Closed("while sending") from None

    def take(self, size):
        return take(self.socket, size)

    def take_message(self):
        size, bulk = struct.unpack("<II", self.take(8))
        return self.take(size), self.take(bulk)

    def wait_closed(self):
        """Reads until the daemon closes; a TimeoutError where it does not."""
        try:
            while self.socket.recv(1 << 20):
                pass
        except ConnectionResetError:
            pass

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def find_closed(conns, seconds=60):
    """Waits until the daemon has closed one of the connections, and returns (open ones, closed ones). Each connection
    has a thread of its own in the daemon, so of two lanes with one number the later one may be the first."""
    poller = select.poll()
    for conn in conns:
        poller.register(conn.socket, select.POLLRDHUP)
    gone = [fd for fd, _ in poller.poll(seconds * 1000)]
    if not gone:
        raise TimeoutError("the daemon closes none")
    return ([conn for conn in conns if conn.socket.fileno() not in gone],
            [conn for conn in conns if conn.socket.fileno() in gone])


class Shm(str):
    """The path of a local socket, for sessions whose lanes go through shared memory."""


class RingConn(Conn):
    """A lane through shared memory (protocol/wire.md, section 10).  Words are read and written
    whole, as the daemon looks at any time: struct does it byte by byte, and clears them before it writes."""
    TAIL, HEAD, WAITS, WORDS, PAGE = 0, 128, 192, 256, 4096

    def __init__(self, path, opening):
        super().__init__(path)
        super().send(opening)
        self.file = -1
        try:
            greeting, files, _, _ = socket.recv_fds(self.socket, 64, 1)
        except ConnectionResetError:
            files = []
        if not files:
            return  # It is refused, which wait_closed() and is_over() report.
        self.file = files[0]
        if greeting != b"gpupool shm 1\0":
            raise Closed(f"instead of memory {greeting!r}")
        self.memory = mmap.mmap(self.file, os.fstat(self.file).st_size)
        self.words = memoryview(self.memory).cast("I")
        self.ring = (len(self.memory) - self.PAGE) // 2
        self.tail = self.head = 0

    def word(self, ring, at):
        return self.words[(ring * self.WORDS + at) // 4]

    def set_word(self, ring, at, value):
        self.words[(ring * self.WORDS + at) // 4] = value & 0xffffffff

    def wake(self):
        """Sends a wake-up, also if the peer does not sleep."""
        try:
            self.socket.send(b"\0", socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except BlockingIOError:
            pass
        except (BrokenPipeError, ConnectionResetError):
            raise Closed("while sending") from None

    def is_over(self):
        poller = select.poll()
        poller.register(self.socket, select.POLLRDHUP)
        return bool(poller.poll(0))

    def send(self, data):
        view, end = memoryview(data), time.monotonic() + 20
        while view:
            if self.is_over():
                raise Closed("while sending")
            if time.monotonic() > end:
                raise TimeoutError("the peer does not read")
            start = self.tail % self.ring
            size = min(len(view), self.ring - (self.tail - self.word(0, self.HEAD) & 0xffffffff), self.ring - start)
            if size <= 0:
                time.sleep(0.001)
                continue
            self.memory[self.PAGE + start:self.PAGE + start + size] = bytes(view[:size])
            self.tail += size
            self.set_word(0, self.TAIL, self.tail)
            self.wake()
            view = view[size:]

    def take(self, size):
        data, end = b"", time.monotonic() + self.socket.gettimeout()
        while len(data) < size:
            over = self.is_over()
            there = self.word(1, self.TAIL) - self.head & 0xffffffff
            start = self.head % self.ring
            part = min(size - len(data), there, self.ring - start)
            if not part:
                if over:
                    raise Closed(f"after {len(data)} of {size} bytes")
                if time.monotonic() > end:
                    raise TimeoutError("nothing comes")
                time.sleep(0.0005)
                continue
            at = self.PAGE + self.ring + start
            data += self.memory[at:at + part]
            self.head += part
            self.set_word(1, self.HEAD, self.head)
        return data

    def take_descriptor(self):
        """One that the daemon has passed, among its wake-ups."""
        while True:
            data, files, _, _ = socket.recv_fds(self.socket, 64, 1)
            if files:
                return files[0]
            if not data:
                raise Closed("instead of a descriptor")

    def close(self):
        self.socket.close()
        if self.file >= 0:
            self.words.release()
            self.memory.close()
            os.close(self.file)
            self.file = -1


class Session:
    """A session with its control connection and lane 0."""

    def __init__(self, port, program="test", lane=True, more=b"", lanes=1, source=None):
        self.port, self.source = port, source
        self.requests = 0
        self.notes = []
        self.lane = None
        self.control = Conn(port, source=source)
        if isinstance(port, Shm):
            more += field(7, 4)
        self.control.send(preamble() + message(hello(program=program, lanes=lanes, more=more)))
        self.answer = self.control.take(64)
        data, _ = self.control.take_message()
        kinds = fields_of(data)
        if 2 not in kinds:
            raise Closed(f"no Welcome but message {sorted(kinds)}")
        welcome = fields_of(kinds[2][0])
        window, limits = fields_of(welcome[8][0]), fields_of(welcome[9][0])
        self.id = welcome[3][0]
        self.ticket = welcome[4][0]
        self.base, self.size = window[1][0], window[2][0]
        self.granularity = limits[6][0]
        self.max_held = limits[10][0]
        self.devices = len(welcome[7])
        self.granted = varints(welcome[18][0]) if 18 in welcome else []
        if lane:
            self.lane = self.connect_lane()

    def connect_lane(self, lane=0, ticket=None):
        if isinstance(self.port, Shm):
            return RingConn(self.port, preamble(LANE_SHM, lane, ticket or self.ticket))
        conn = Conn(self.port, source=self.source)
        conn.send(preamble(LANE, lane, ticket or self.ticket))
        return conn

    def send(self, records, bulk=b""):
        self.lane.send(message(records, bulk))

    def post(self, name, values=None, bulk=None, acting=1):
        flags = 0 if bulk is None else BULK
        self.send(record(name, values or {}, 0, acting, flags), bulk or b"")

    def ask(self, name, values=None, bulk=None, acting=1):
        """The result and the fields of the reply; notes before it gather in self.notes."""
        self.requests += 1
        flags = 0 if bulk is None else BULK
        self.send(record(name, values or {}, self.requests, acting, flags), bulk or b"")
        return self.reply(name, self.requests)

    def reply(self, name, request):
        number, _, back = CALLS[name]
        while True:
            data, bulk = self.lane.take_message()
            at = 0
            while at < len(data):
                size, call, flags, told, result = struct.unpack_from("<IHHII", data, at)
                body = data[at + 16:at + size]
                at += size
                if not flags & REPLY:
                    self.notes.append((call, told, body, bulk if flags & BULK else b""))
                elif told == request and call == number:
                    if flags & BULK:  # of gpCopyOut: all its data
                        self.notes.append((NOTE_DATA, told, body, bulk))
                    return result, decode_fields(back, body) if body and result == 0 else {}

    def wait_turn(self):
        """The next host function whose turn comes, and its result; replies before it are lost."""
        seen = 0
        while True:
            for call, _, body, _ in self.notes[seen:]:
                if call == NOTE_FUNCTION:
                    del self.notes[seen]
                    return struct.unpack("<II", body)
                seen += 1
            data, bulk = self.lane.take_message()
            at = 0
            while at < len(data):
                size, call, flags, told, _ = struct.unpack_from("<IHHII", data, at)
                if not flags & REPLY:
                    self.notes.append((call, told, data[at + 16:at + size], bulk if flags & BULK else b""))
                at += size

    def errors(self):
        """(result, sticky, call) of the error notes so far."""
        return [struct.unpack_from("<III", body) for call, _, body, _ in self.notes if call == NOTE_ERROR]

    def create_context(self, context=1, legacy=1, heap_size=0, device=0):
        """Its result."""
        return self.ask("gpContextCreate", {"context": context, "device": device, "legacy": legacy,
                                            "heap": self.base if heap_size else 0, "heap_size": heap_size}, acting=0)[0]

    def map(self, offset, size, device=0):
        """The result of mapping memory at this offset of the window."""
        return self.ask("gpMemoryMap", {"address": self.base + offset, "size": size, "device": device})[0]

    def copy_in(self, address, data, flags=1, stream=1):
        self.post("gpCopyIn", {"stream": stream, "dst": address, "pitch": len(data), "width": len(data),
                               "height": 1, "flags": flags}, data)

    def copy_out(self, address, size, stream=1):
        """The result and the bytes."""
        before = len(self.notes)
        result, _ = self.ask("gpCopyOut", {"stream": stream, "src": address, "pitch": size, "width": size,
                                           "height": 1})
        return result, b"".join(bulk for call, _, _, bulk in self.notes[before:] if call == NOTE_DATA)

    def close(self):
        for conn in (self.lane, self.control):
            if conn:
                conn.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def load(session, image, data, sha=None, size=None, bulk=True, options=b""):
    values = {"context": 1, "image": image, "sha256": sha or hashlib.sha256(data).digest(),
              "size": len(data) if size is None else size, "options": options}
    return session.ask("gpImageLoad", values, data if bulk else None)


def saxpy():
    """An image as it travels, with the kernel saxpy(int, float, const float *, float *)."""
    with open(os.path.join(os.environ["GP_APPS"], "saxpy.fatbin"), "rb") as file:
        return flat_image(file.read())


def launch_values(**changed):
    values = {"kernel": 40 << 32, "grid_x": 1, "grid_y": 1, "grid_z": 1, "block_x": 1, "block_y": 1, "block_z": 1, "stream": 1}
    return {**values, **changed}


class Listener:
    """A TCP listener on this machine; begin(socket) serves each connection in a thread. The end of the context closes the
    listener and all sockets in self.sockets."""

    def __init__(self):
        self.sockets = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in [self.listener, *self.sockets]:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()

    def accept(self):
        try:
            while True:
                near, _ = self.listener.accept()
                self.sockets.append(near)
                threading.Thread(target=self.begin, args=(near,), daemon=True).start()
        except OSError:
            pass


def recv_reply(conn):
    """After preamble and Hello: (the kind of the daemon's message, its fields)."""
    conn.take(64)
    (kind, (data,)), = fields_of(conn.take_message()[0]).items()
    return kind, fields_of(data)


def recv_refusal(conn):
    kind, fields = recv_reply(conn)
    if kind != 3:
        raise AssertionError(f"not refused: {kind}")
    return fields[2][0].decode()
