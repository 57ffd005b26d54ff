# SPDX-License-Identifier: Apache-2.0
"""A daemon, or a proxy before it, that lies about kernel parameters or about the sizes of variables. A launch
copies the parameters from the program's memory by their sizes, and programs copy variables by theirs."""
import os
import re
import socket
import struct
import tempfile
import threading

import wire
from harness import SOFTWARE, Daemon, case, main, require, run

LOAD = wire.CALLS["gpImageLoad"][0]
VARIABLE = wire.CALLS["gpImageGlobal"][0]
LAUNCHES = {wire.CALLS[name][0] for name in ("gpLaunch", "gpLaunchChecked")}
ATTRIBUTES = 16
SECRET = "sk-live-0123456789abcdef"


def decode_kernels(info):
    """[name, the bytes between name and parameters, [[offset, size] ...]] of each kernel."""
    count, = struct.unpack_from("<I", info)
    kernels, at = [], 4
    for _ in range(count):
        length, = struct.unpack_from("<I", info, at)
        at += 4 + -(at + 4) % 8
        name = info[at:at + length]
        at += length + -(at + length) % 8
        rest = info[at:at + 4 + 4 * ATTRIBUTES]
        at += len(rest)
        params, = struct.unpack_from("<I", info, at)
        at += 4
        kernels.append([name, rest, [list(struct.unpack_from("<II", info, at + 8 * i)) for i in range(params)]])
        at += 8 * params
    return kernels


def encode_kernels(kernels):
    out = struct.pack("<I", len(kernels))
    for name, rest, params in kernels:
        out = wire.pad(wire.pad(out + struct.pack("<I", len(name))) + name)
        out += rest + struct.pack("<I", len(params)) + b"".join(struct.pack("<II", *param) for param in params)
    return wire.pad(out)


class Liar(wire.Listener):
    """Passes all on between programs and a daemon, but for what lie() makes of lists of kernels, and
    change_size() and change_address() of the size and the address of a variable. It listens on this machine alone. launches: records that came
    through; heard: all that programs sent; variables: how many were asked for."""

    def __init__(self, daemon, lie, change_size=lambda size: size, change_address=lambda address: address):
        self.daemon, self.lie, self.change_size, self.change_address = daemon, lie, change_size, change_address
        self.heard, self.launches, self.lists, self.variables = b"", [], 0, 0
        super().__init__()

    def begin(self, near_socket):
        """A client may give up a connection that it has made ahead, and make another."""
        near = wire.Conn.__new__(wire.Conn)
        near.socket = near_socket
        far = wire.Conn(self.daemon.port, 120)
        self.sockets.append(far.socket)
        try:
            first = near.take(64)
            kind, lane = struct.unpack_from("<HH", first, 12)
            far.send(first)
        except (OSError, wire.Closed):
            far.socket.close()
            return
        calls = kind == wire.LANE and lane == 0
        threading.Thread(target=self.to_daemon, args=(near, far, calls), daemon=True).start()
        self.to_program(far, near, kind == wire.CONTROL, calls)

    @staticmethod
    def records(data):
        at = 0
        while at < len(data):
            size, call, flags = struct.unpack_from("<IHH", data, at)
            yield call, flags, data[at:at + size]
            at += size

    def carry(self, source, target, change):
        try:
            while True:
                data, bulk = source.take_message()
                target.send(wire.message(change(data, bulk), bulk))
        except (OSError, wire.Closed):
            pass
        for conn in (source, target):
            try:
                conn.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def to_daemon(self, near, far, calls):
        def listen(data, bulk):
            self.heard += data + bulk
            if calls:
                self.launches += [record for call, _, record in self.records(data) if call in LAUNCHES]
            return data
        self.carry(near, far, listen)

    def to_program(self, far, near, answers, calls):
        if answers:
            near.send(far.take(64))
        self.carry(far, near, lambda data, _: b"".join(self.twist(*one) for one in self.records(data)) if calls else data)

    def twist(self, call, flags, record):
        if call == VARIABLE and flags & wire.REPLY and len(record) > 16:
            self.variables += 1
            values = wire.decode_fields(wire.CALLS["gpImageGlobal"][2], record[16:])
            told = {"size": self.change_size(values["size"]), "address": self.change_address(values["address"])}
            return record[:16] + wire.encode_fields(wire.CALLS["gpImageGlobal"][2], {**values, **told})
        if call != LOAD or not flags & wire.REPLY or len(record) == 16:
            return record
        values = wire.decode_fields(wire.CALLS["gpImageLoad"][2], record[16:])
        if not values["info"]:
            return record
        kernels = decode_kernels(values["info"])
        require(encode_kernels(kernels) == values["info"], "the list of kernels is not understood here")
        self.lists += 1
        self.lie(kernels)
        body = wire.encode_fields(wire.CALLS["gpImageLoad"][2], {**values, "info": encode_kernels(kernels)})
        return struct.pack("<I", 16 + len(body)) + record[4:16] + body


def expect_caught(lie, *texts, secret=SECRET):
    """A program that detects this lie reports it in one line, and nothing is launched."""
    with Daemon() as daemon, Liar(daemon, lie) as liar:
        result = daemon.run("vectoradd", env={"REMOTE_GPU": liar.address, "MY_SECRET_API_KEY": secret})
        require(liar.lists > 0, "nothing was loaded")
        require(result.status > 0 and "ok" not in result.out, f"the program has not failed: {result}")
        for text in texts:
            require(result.err.count(text) == 1, f"{text!r} is not in its errors once: {result}")
        require(not liar.launches, f"{len(liar.launches)} launches were sent")
        require(secret.encode() not in liar.heard, "the program's memory was sent")
        daemon.settle()


def of_launched(change):
    def lie(kernels):
        for kernel in kernels:
            change(kernel[2])
    return lie


@case("a proxy that changes nothing is not noticed")
def _():
    with Daemon() as daemon, Liar(daemon, lambda kernels: None) as liar:
        for name in ("vectoradd", "driverapi", "multifile", "symbols", "bigglobal"):
            result = daemon.run(name, env={"REMOTE_GPU": liar.address}).expect(err="")
            require(result.out.endswith(": ok\n"), f"{result}")
        require(liar.lists >= 3 and liar.launches and liar.variables >= 4, "the programs went another way")
        daemon.settle()


@case("a parameter that is too large")
def _():
    def lie(params):
        params[-1][1] = 12000
    expect_caught(of_launched(lie), "an image is not used: parameter ", " of kernel ", "12000 as the daemon reports")


@case("a parameter that is a little larger, or smaller")
def _():
    for step in (1, -1):
        def lie(params):
            params[-1][1] += step
        expect_caught(of_launched(lie), f"4 bytes in the image, and {4 + step} as the daemon reports")


@case("too many parameters: pointers after the program's own would be followed")
def _():
    def lie(params):
        params += [[params[-1][0] + 8 * i, 8] for i in range(1, 100)]
    expect_caught(of_launched(lie), "4 parameters in the image, and 103 as the daemon reports")


@case("parameters that are too few")
def _():
    expect_caught(of_launched(lambda params: params.pop()), "4 parameters in the image, and 3 as the daemon reports")
    expect_caught(of_launched(lambda params: params.clear()), "4 parameters in the image, and 0 as the daemon reports")


@case("layouts that cannot be end the session")
def _():
    def overlap(params):
        params[1][0] = 4
    def beyond(params):
        params[-1][1] = 1 << 31
    def wrap(params):
        params[-1] = [0xfffffffc, 8]
    for lie in (overlap, beyond, wrap):
        with Daemon() as daemon, Liar(daemon, of_launched(lie)) as liar:
            result = daemon.run("vectoradd", env={"REMOTE_GPU": liar.address, "GPUPOOL_LOG": "error"})
            require(result.status > 0 and "the daemon's list of kernels is malformed" in result.err, f"{result}")
            require(not liar.launches, "launches were sent")


@case("a kernel by another name is not there")
def _():
    def lie(kernels):
        for kernel in kernels:
            kernel[0] = b"x" + kernel[0][1:]
    expect_caught(lie)


@case("a variable that is larger, or smaller")
def _():
    for step in (1, -1, 5000, 1 << 40):
        with Daemon() as daemon, Liar(daemon, lambda kernels: None, lambda size: size + step) as liar:
            result = daemon.run("symbols", env={"REMOTE_GPU": liar.address, "MY_SECRET_API_KEY": SECRET})
            require(liar.variables > 0, "no variable was asked for")
            require(result.status > 0 and "ok" not in result.out, f"the program has not failed: {result}")
            require(result.err.count(f"has 400 bytes in the image, and {400 + step} as the daemon reports") == 1, f"{result}")
            require(SECRET.encode() not in liar.heard, "the program's memory was sent")
            daemon.settle()


def expect_misplaced(change_address):
    with Daemon() as daemon, Liar(daemon, lambda kernels: None, change_address=change_address) as liar:
        result = daemon.run("symbols", env={"REMOTE_GPU": liar.address})
        require(liar.variables > 1, "not all variables were asked for at once")
        require(result.status > 0 and "ok" not in result.out, f"the program has not failed: {result}")
        told = re.findall(r"a variable is not used: (\S+) lies at (0x[0-9a-f]+) as the daemon reports, where other memory is", result.err)
        require(len(told) == 1, f"{result}")
        daemon.settle()
        return int(told[0][1], 16)


@case("a variable that lies half in another one, which is then not known: a copy of it would be one of the program's memory")
def _():
    seen = []

    def change_address(address):
        seen.append(address)
        return address if len(seen) == 1 else seen[0] + 32
    address = expect_misplaced(change_address)
    require(address == seen[0] + 32, f"{address} of {seen}")


@case("a variable that lies in the window, or nowhere")
def _():
    # The whole window is reserved; the second address would make it end after the last address.
    expect_misplaced(lambda address: 0x110000000000 + 4096)
    expect_misplaced(lambda address: (1 << 64) - 8)


def query_variable(address, version):
    """The output of a program that queries a variable of 100 bytes, of a PTX image of this version."""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(f".version {version}\n.target sm_52\n.address_size 64\n.visible .global .align 4 .b8 t[100];\n"
                   ".visible .entry k(.param .u64 a)\n{\n\tret;\n}\n")
        file.flush()
        return run("probe", "variable", file.name, "t", path=os.environ["GP_PROBE"], remote=address)


@case("where a variable lies the program gets no memory, as long as its module is there")
def _():
    with Daemon() as daemon:
        query_variable(daemon.address, "7.0").expect(
            out="t: 0, 100 bytes, there: File exists\nunloaded: free\nprobe: ok\n")


@case("a variable without bytes, of an image that cannot be read, is not believed to lie anywhere")
def _():
    with Daemon() as daemon:
        # NVIDIA's driver may refuse PTX of that age.
        for version, word in (("7.0", "has 100 bytes in the image, and 0 as the daemon reports"),
                              ("1.4", "t has no bytes as the daemon reports, and the format of the image is not supported"))[:1 + SOFTWARE]:
            with Liar(daemon, lambda kernels: None, change_size=lambda _: 0) as liar:
                result = query_variable(liar.address, version)
                require(result.out.startswith("t: 200, 0 bytes") and result.err.count(word) == 1, f"{result}")


if __name__ == "__main__":
    main()
