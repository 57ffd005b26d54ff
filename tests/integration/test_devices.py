# SPDX-License-Identifier: Apache-2.0
"""One daemon with several devices: peers, copies between them, and what a session may ask of others'."""
import sys

from harness import Daemon, Program, case, main, run

TWO = {"GPUPOOL_SOFT_DEVICES": "2"}
THREE = {"GPUPOOL_SOFT_DEVICES": "3"}
APART = {"GPUPOOL_SOFT_DEVICES": "2", "GPUPOOL_SOFT_PEERS": "0"}
MANY = "each has its own variable and memory\ncopies between them\nmanydevices: ok\n"
PEERS = "copies\ncodes\nkernels\npools\nphysical memory\ncopies with access\npeers: ok\n"


@case("kernels of a device reach the memory of its peer, and copies go between them")
def _():
    with Daemon(env=TWO) as daemon:
        for name in ("peers", "peers-shared"):
            run(name, remote=daemon.address).expect(out=PEERS, err="")
        daemon.settle()


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


if __name__ == "__main__":
    sys.exit(main())
