# SPDX-License-Identifier: Apache-2.0
"""libnvidia-ml.so.1: the pool's devices, memory within the quota, processes, invalid calls."""
import os
import re
import sys

from harness import SOFTWARE, Daemon, Program, case, main, require

NVML = os.path.dirname(os.environ["GP_NVML"])
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nvml_program.py")
LIMIT = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"


def environment(**more):
    return {"LD_LIBRARY_PATH": f"{NVML}:{os.environ['GP_CLIENT']}:{os.environ.get('GP_LIBRARIES', '')}", **more}


def run_program(daemon, *args, **more):
    return daemon.run("python", PROGRAM, *args, path=sys.executable, env=environment(**more)).expect(err="")


@case("device properties are available without a context, and total memory is the quota")
def _():
    with Daemon() as daemon:
        out = run_program(daemon, "facts", **{LIMIT: "0=256M"}).out
        require(re.search(r"^devices [1-9]", out), out)
        # With a context it would be one of the processes.
        require("total 256\n" in out and "processes 0\n" in out, out)
        require(re.search(r"^uuid GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", out, re.M), out)
        require(re.search(r"^bus ([0-9A-F]{4})([0-9A-F]{4}:..:..\.0) \2$", out, re.M), out)
        require(re.search(r"^driver \d+\.\d+", out, re.M), out)
        if SOFTWARE:
            require("driver 580.00\nbranch r580_00\n" in out, out)
            require("celsius 35\n" in out and "milliwatts 50000\n" in out, out)


@case("wrong calls get NVML's codes")
def _():
    with Daemon() as daemon:
        run_program(daemon, "wrong")


@case("a program sees its memory and itself, and so do others of its tenant on this machine")
def _():
    with Daemon() as daemon:
        user = Program("python", [PROGRAM, "uses"], daemon.address, env=environment(), path=sys.executable, stdin=True)
        user.wait_for_output("ready")
        seen = run_program(daemon, "watches", str(user.process.pid)).out
        user.finish().expect(out="ready\n", err="")
        mib = int(re.fullmatch(r"sees (\d+) MiB of \d+\n", seen)[1])
        require(mib >= 64, seen)


@case("nvidia-smi's private functions report the users of a GPU and their shares, and the others are not supported")
def _():
    with Daemon() as daemon:
        users = [Program("python", [PROGRAM, what], daemon.address, env=environment(), path=sys.executable, stdin=True)
                 for what in ("works", "works", "uses")]
        for user in users:
            user.wait_for_output("ready")
        seen = sorted(line.split() for line in run_program(daemon, "monitors").out.splitlines())
        for user in users:
            user.finish().expect(out="ready\n", err="")
        require([line[:2] for line in seen] == sorted([str(user.process.pid), how] for user, how in zip(users, ("busy", "busy", "idle"))),
                str(seen))
        require(all(line[2].startswith("python") for line in seen), str(seen))


@case("GPUPOOL_LOG=tables names each private function that is asked in vain")
def _():
    with Daemon() as daemon:
        result = daemon.run("python", PROGRAM, "monitors", path=sys.executable, env=environment(GPUPOOL_LOG="tables")).expect()
        named = re.findall(r"^gpupool: NVML's private function (\d+)\(0(?:, 0){4}\) is not supported$", result.err, re.M)
        require(len(named) > 500 and "211" in named and "212" not in named and "599" in named, result.err[:2000])


@case("two devices have the network between them")
def _():
    with Daemon() as one, Daemon() as other:
        program = Program("python", [PROGRAM, "pairs"], f"{one.address},{other.address}", env=environment(), path=sys.executable)
        program.finish().expect(out="level 50 of pairs 4 4 0\n", err="")


@case("a fork of a program that has only asked NVML has CUDA and NVML")
def _():
    with Daemon() as daemon:
        run_program(daemon, "forks")


@case("devices that CUDA_VISIBLE_DEVICES hides are NVML's still")
def _():
    with Daemon() as daemon:
        out = run_program(daemon, "hidden", CUDA_VISIBLE_DEVICES="").out
        require(re.fullmatch(r"devices [1-9]\d* total [1-9]\d*\ncuInit 100\n", out), out)


@case("peers are reported, and their links where a switch joins all devices of the program")
def _():
    told = {"peers": "field 0 1\nremote 0 FFFF:FF:1F.0\nlink 1 2 1\n", "none": "field 3 0\nremote 3 \n"}
    with Daemon(env={"GPUPOOL_SOFT_DEVICES": "2"}) as daemon, Daemon() as other:
        both = "status 0 0\n" + told["peers"]
        require(run_program(daemon, "links").out == both + both, "two devices")
        alone = Program("python", [PROGRAM, "links"], f"{daemon.address}/0", env=environment(), path=sys.executable).finish()
        require(alone.out == "status 0\n" + told["none"], str(alone))
        apart = Program("python", [PROGRAM, "links"], f"{daemon.address},{other.address}", env=environment(), path=sys.executable).finish()
        require(apart.out == "".join(f"status {status}\n{told['none']}" for status in ("0 0 5", "0 0 5", "5 5 0")), str(apart))
    with Daemon(env={"GPUPOOL_SOFT_DEVICES": "2", "GPUPOOL_SOFT_PEERS": "0"}) as daemon:
        require(run_program(daemon, "links").out == "".join(f"status {status}\n{told['none']}" for status in ("0 5", "5 0")), "no peers")


@case("without a daemon there is no driver, and a program that needs none gets zero devices")
def _():
    program = Program("python", [PROGRAM, "absent"], "tcp://127.0.0.1:1", env=environment(), path=sys.executable)
    result = program.finish()
    require(result.out == "init 9 without GPUs 0 devices 0\n", str(result))


if __name__ == "__main__":
    sys.exit(main())
