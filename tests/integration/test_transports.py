# SPDX-License-Identifier: Apache-2.0
"""test_transports.py: one program, with data lanes, over each transport.

rdma is tested where this machine has an RDMA device with an IPv4 address; test_rdma.py tests it in a
virtual machine.
"""
import fcntl
import glob
import os
import re
import socket
import struct
import sys
import tempfile

from harness import Daemon, Program, Skip, case, main, read_file, require
from pool import Pool, ctl

SIOCGIFADDR = 0x8915


def rdma_address():
    """The IPv4 address of an RDMA device's network interface, or None."""
    names = [os.path.basename(path) for path in glob.glob("/sys/class/infiniband/*/device/net/*")]
    # Soft-RoCE has no device of its own, but names its interface.
    names += [read_file(path).strip() for path in glob.glob("/sys/class/infiniband/*/parent")]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as query:
        for name in sorted(names):
            try:
                answer = fcntl.ioctl(query, SIOCGIFADDR, struct.pack("256s", name.encode()))
            except OSError:
                continue
            return socket.inet_ntoa(answer[20:24])
    return None


def check_lanes(remote, scheme, *args, **env):
    """The program's copies are right, and its data lanes are of this transport."""
    result = Program("lanes", args, remote, env={"GPUPOOL_LANES": "4", "GPUPOOL_LOG": "info", **env}).finish().expect()
    require(re.search(rf"{scheme}://\S+: 3 data lanes", result.err), f"no data lanes over {scheme}: {result}")


def check_secured(scheme, host):
    """The same with a certificate of the daemon and a token of the client."""
    with tempfile.TemporaryDirectory(prefix="gpupool-pool-") as folder:
        ctl("cert", "init", host, "-D", folder)
        ctl("token", "create", "default", "-D", folder, "-o", f"{folder}/token")
        with Daemon("--listen", f"{scheme}://{host}:0", "--certificate", f"{folder}/server.pem",
                    "--key", f"{folder}/server.key", "--tokens", f"{folder}/tokens") as daemon:
            address = re.search(rf"^listening on ({scheme}://{re.escape(host)}:\d+)$", read_file(daemon.out_path), re.M)
            require(address, f"no address of {scheme}: {read_file(daemon.out_path)}")
            check_lanes(address[1], scheme, "short", GPUPOOL_TLS_CA=f"{folder}/ca.pem", GPUPOOL_TOKEN_FILE=f"{folder}/token")


@case("a program runs over tcp")
def _():
    with Daemon() as daemon:
        check_lanes(daemon.address, "tcp", "short")


@case("a program runs over tls")
def _():
    check_secured("tls", "127.0.0.1")


@case("a program runs over a local socket")
def _():
    with Pool(tokens=False) as pool:
        check_lanes(pool.local, "unix", "short", GPUPOOL_SHM="0")


@case("a program runs over shared memory")
def _():
    with Pool(tokens=False) as pool:
        check_lanes(pool.local, "shm")


@case("a program runs over rdma")
def _():
    host = rdma_address()
    if not host or not os.path.exists("/dev/infiniband/rdma_cm"):
        raise Skip("no RDMA device with an IPv4 address")
    check_secured("rdma", host)


if __name__ == "__main__":
    sys.exit(main(at_once=3))
