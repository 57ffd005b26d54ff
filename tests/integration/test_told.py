# SPDX-License-Identifier: Apache-2.0
"""Errors on a program's standard error: one line each, with the remedy."""
import os
import re
import signal
import sys
import tempfile
import time

from harness import Certificates, Configured, Daemon, Encrypted, Failed, PATIENCE, Program, Skip, case, main, read_file, require, run
from pool import Pool, ctl

# Copies without end, so that a stopped process is stopped in the middle of a message.
COPIER = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *args):
    result = getattr(cuda, name)(*args)
    if result:
        print(name, result, flush=True)
        raise SystemExit(1)
context, address, size = ctypes.c_void_p(), ctypes.c_uint64(), 256 << 20
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
memory = (ctypes.c_char * size)()
print("running", flush=True)
while True:
    call("cuMemcpyDtoH_v2", memory, address, ctypes.c_size_t(size))
"""
PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry poke(.param .u64 where)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [where];
    mov.u32 %r1, 42;
    st.global.u32 [%rd1], %r1;
    ret;
}
"""
# Writes to an address that is none; its arguments: the code, and whether it pins memory before.
POKER = """
import ctypes
import sys
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *args):
    print(name, getattr(cuda, name)(*args), flush=True)
context, module, function, memory = (ctypes.c_void_p() for _ in range(4))
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
if sys.argv[2] == "pins":
    call("cuMemHostAlloc", ctypes.byref(memory), ctypes.c_size_t(4096), 0)
call("cuModuleLoadData", ctypes.byref(module), sys.argv[1].encode())
call("cuModuleGetFunction", ctypes.byref(function), module, b"poke")
where = ctypes.c_uint64(0x10)
parameters = (ctypes.c_void_p * 1)(ctypes.addressof(where))
call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, parameters, None)
call("cuCtxSynchronize")
"""


@case("without REMOTE_GPU, or with a misspelt name, one line reports it, and GPUPOOL_LOG=quiet suppresses the line")
def _():
    if os.path.exists("/dev/nvidiactl"):
        raise Skip("this machine has a driver")
    result = run("vectoradd").expect(status=1)
    require(result.err == 'gpupool: no GPU: REMOTE_GPU is not set, and this machine has no CUDA driver; use "gpupool run", '
            "or set REMOTE_GPU=tls://HOST\n", str(result))
    for name in ("REMOTE_GPUS", "REMOTEGPU", "remote_gpu"):
        result = run("vectoradd", env={name: "tls://gpunode"}).expect(status=1)
        require(result.err == f"gpupool: no GPU: {name} is set; did you mean REMOTE_GPU?\n", str(result))
    run("vectoradd", env={"GPUPOOL_LOG": "quiet"}).expect(status=1, err="")


@case("a call that is not remoted is reported once, by the name that the program calls")
def _():
    script = ("import ctypes\ncuda = ctypes.CDLL('libcuda.so.1')\ncuda.cuInit(0)\nhandle = ctypes.c_uint64()\n"
              "for _ in range(3):\n    print(cuda.cuMulticastCreate(ctypes.byref(handle), None))\n")
    with Daemon() as daemon:
        result = Program("python3", ("-c", script), daemon.address, path=sys.executable).finish().expect(out="801\n" * 3)
        require(re.fullmatch(r"gpupool: cuMulticastCreate is not supported; instead: .* \(GPUPOOL_LOG=quiet hides this message\)\n",
                             result.err), str(result))


OLD = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuInit(0)
function, found, memory, total = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_uint(), ctypes.c_size_t()
for version, name in (3010, "cuMemAlloc"), (3020, "cuMemAlloc_v2"), (13000, "cuMemAlloc_v2"):
    cuda.cuGetProcAddress_v2(b"cuMemAlloc", ctypes.byref(function), version, ctypes.c_uint64(), ctypes.byref(found))
    print(found.value, function.value == ctypes.cast(getattr(cuda, name), ctypes.c_void_p).value)
for _ in range(2):
    print(cuda.cuMemAlloc(ctypes.byref(memory), 4), cuda.cuLaunchGrid(None, 1, 1))
print(cuda.cuDeviceTotalMem_v2(ctypes.byref(total), 0), cuda.cuDeviceTotalMem(ctypes.byref(memory), 0), memory.value == min(total.value, 2**32 - 1))
"""


@case("functions from before CUDA 3.2 and 4.0 are not supported, and cuGetProcAddress finds their successors")
def _():
    with Daemon() as daemon:
        result = Program("python3", ("-c", OLD), daemon.address, path=sys.executable).finish().expect(out="0 True\n" * 3 + "801 801\n" * 2 + "0 0 True\n")
        require(re.fullmatch(r"gpupool: cuMemAlloc is not supported; instead: the function with the suffix _v2, .*\n"
                             r"gpupool: cuLaunchGrid is not supported; instead: cuLaunchKernel .*\n", result.err), str(result))


# A core dump and a checkpoint, each of them twice, beside a graph with a kernel of each of two devices.
LACKING = """
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
class Node(ctypes.Structure):
    _fields_ = [("func", ctypes.c_void_p), ("shape", ctypes.c_uint * 7), ("params", ctypes.c_void_p), ("extra", ctypes.c_void_p),
                ("kern", ctypes.c_void_p), ("ctx", ctypes.c_void_p)]
graph, node, executable = (ctypes.c_void_p() for _ in range(3))
cuda.cuInit(0)
cuda.cuGraphCreate(ctypes.byref(graph), 0)
for device in range(2):
    context, module, function, where = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    cuda.cuCtxSetCurrent(context)
    cuda.cuModuleLoadData(ctypes.byref(module), sys.argv[1].encode())
    cuda.cuModuleGetFunction(ctypes.byref(function), module, b"poke")
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(where))
    given = Node(function, (ctypes.c_uint * 7)(1, 1, 1, 1, 1, 1, 0), ctypes.addressof(parameters), None, None, context)
    print(cuda.cuGraphAddKernelNode_v2(ctypes.byref(node), graph, None, ctypes.c_size_t(0), ctypes.byref(given)))
yes, size = ctypes.c_bool(True), ctypes.c_size_t(1)
for _ in range(2):
    print(cuda.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, ctypes.c_uint64(0)))
    print(cuda.cuCoredumpSetAttribute(1, ctypes.byref(yes), ctypes.byref(size)))
    print(cuda.cuCheckpointProcessLock(os.getpid(), None))
"""


@case("an unsupported variant of a supported call is reported once, with an alternative")
def _():
    with Daemon(env={"GPUPOOL_SOFT_DEVICES": "2"}) as daemon:
        for log, lines in (("", 2), ("quiet", 0)):
            result = Program("python3", ("-c", LACKING, PTX.decode()), daemon.address, path=sys.executable,
                             env={"GPUPOOL_LOG": log} if log else {}).finish().expect(out="0\n0\n" + "0\n801\n801\n" * 2)
            require(result.err.count("\n") == lines, str(result))
            for what in ("a core dump of the GPU", "cuCheckpointProcessLock")[:lines]:
                require(re.search(rf"^gpupool: {what}.* is not supported; instead: ", result.err, re.M)
                        or f"gpupool: {what} is not supported; instead: " in result.err, str(result))


MANY_NODES = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
graph, node = ctypes.c_void_p(), ctypes.c_void_p()
cuda.cuInit(0)
cuda.cuGraphCreate(ctypes.byref(graph), 0)
add, to, none = cuda.cuGraphAddEmptyNode, ctypes.byref(node), ctypes.c_size_t(0)
for made in range(1100000):
    result = add(to, graph, None, none)
    if result:
        break
print(result, made > 1000000, add(to, graph, None, none))
"""


@case("a program with too many graph nodes gets a message, in addition to the driver's code for out of memory")
def _():
    with Daemon() as daemon:
        result = Program("python3", ("-c", MANY_NODES), daemon.address, path=sys.executable).finish().expect(out="2 True 2\n")
        require(re.fullmatch(r"gpupool: a program with more than a million nodes .* is not supported; instead: .*\n", result.err), str(result))


@case("a word of GPUPOOL_LOG that is none is named, and the program runs with the others")
def _():
    known = "is not one of error, info, stats, tables, calls, quiet; ignored"
    with Daemon() as daemon:
        for words, bad in (("all", "all"), ("info,1", "1")):
            result = daemon.run("vectoradd", env={"GPUPOOL_LOG": words}).expect()
            require(result.err.count(f'gpupool: GPUPOOL_LOG={words}: "{bad}" {known}\n') == 1, str(result))
            require((": session " in result.err) == ("info" in words), str(result))


@case("a time of GPUPOOL_WAIT that makes no sense is refused, with those that do")
def _():
    with Daemon() as daemon:
        result = daemon.run("vectoradd", env={"GPUPOOL_WAIT": "soon"}).expect(status=1)
        require(result.err == "gpupool: GPUPOOL_WAIT=soon: invalid time: use 90, 90s, 10m or 2h, at most a week\n", str(result))


@case("a device that CUDA_VISIBLE_DEVICES names and the pool has not is spoken of, and none that is meant")
def _():
    with Daemon() as daemon:
        for value, sees, status in (("1", 0, 1), ("0,1", 1, 0), ("GPU-ffff", 0, 1)):
            result = daemon.run("vectoradd", env={"CUDA_VISIBLE_DEVICES": value}).expect(status=status)
            require(result.err == f"gpupool: CUDA_VISIBLE_DEVICES={value} (gpupool run --gpus sets it): the program sees "
                    f"{sees} device{'' if sees == 1 else 's'} of the pool's 1, counted from 0; the list ends at the first invalid entry\n", str(result))
        for value, status in (("0", 0), ("", 1), ("-1", 1), ("0,-1", 0), ("NoDevFiles", 1)):
            daemon.run("vectoradd", env={"CUDA_VISIBLE_DEVICES": value}).expect(status=status, err="")


@case("a daemon that stops notifies its programs; one that dies is noticed by its connections")
def _():
    with Daemon() as daemon:
        program = daemon.start("sleeper", "-endless")
        program.wait_for_output("running")
        daemon.process.terminate()
        result = program.finish()
        require(result.status == 1 and re.fullmatch(r"gpupool: tcp://\S+: the session ended with error 46: the daemon is stopping\n",
                                                    result.err), str(result))
        daemon.process.wait(PATIENCE)
    with Daemon() as daemon:
        program = daemon.start("sleeper", "-endless")
        program.wait_for_output("running")
        os.killpg(daemon.pid, signal.SIGKILL)
        daemon.process.wait()
        result = program.finish()
        require(result.status == 1 and re.fullmatch(r"gpupool: tcp://\S+: the session ended with error 46: \S.*\n", result.err),
                str(result))


@case("an illegal address names the kernel, and pinned memory where the program has some")
def _():
    hint = r"; the program has pinned host memory, which kernels reach at addresses of cuMemHostGetDevicePointer\(\) \(gpupool\(7\)\)"
    for pins in ("pins", "does not"):
        with Daemon() as daemon:
            result = Program("poker", ("-c", POKER, PTX.decode(), pins), daemon.address, path=sys.executable).finish().expect()
            require(result.out.endswith("cuLaunchKernel 0\ncuCtxSynchronize 700\n"), str(result))
            require(re.search(r"^gpupool: tcp://\S+: the session ended with error 700: CUDA_ERROR_ILLEGAL_ADDRESS \(700\), after "
                              r"work of session \d+ \(\S+ \d+ python\S*\), last kernel poke" + (hint if pins == "pins" else "") + "$",
                              result.err, re.M), str(result))


@case("a program that was suspended for too long gets that as the reason")
def _():
    with Daemon(env={"GPUPOOL_TIMEOUT": "1"}) as daemon:
        # One connection, so that it is in the middle of a message nearly always.
        program = Program("copier", ("-c", COPIER), daemon.address, path=sys.executable, env={"GPUPOOL_LANES": "1"})
        program.wait_for_output("running")
        for tries in range(10):
            time.sleep(0.3 + tries / 10)
            os.kill(program.process.pid, signal.SIGSTOP)
            begin = time.monotonic()
            try:
                daemon.wait_for_log(r"session \d+ .*: closed: ", 5)
                break
            except Failed:
                # It was stopped between two copies.
                os.kill(program.process.pid, signal.SIGCONT)
        time.sleep(max(0, 6.5 - (time.monotonic() - begin)))
        os.kill(program.process.pid, signal.SIGCONT)
        result = program.finish()
        require(result.status == 1 and re.fullmatch(
            r"gpupool: tcp://\S+: the session ended with error 46: .*; the program was suspended for \d+ s, and the daemon waits "
            r"for at most its GPUPOOL_TIMEOUT\n", result.err), str(result))


@case("if the pool's authority is unknown, the line names the two variables that set it")
def _():
    with Certificates() as certificates, Encrypted(certificates) as daemon:
        result = daemon.run("vectoradd", env={}).expect(status=1)
        require(re.fullmatch(r"gpupool: tls://\S+: the daemon's certificate is signed by an unknown authority: the pool's "
                             r"certificate is in the token's file \(GPUPOOL_TOKEN_FILE\), or in one that GPUPOOL_TLS_CA names\n",
                             result.err), str(result))


@case("the authority that follows a client's certificate is the pool's, and need not be named")
def _():
    with tempfile.TemporaryDirectory(prefix="gpupool-files-") as folder:
        ctl("cert", "init", "127.0.0.1", "-D", folder)
        ctl("cert", "client", "alice", "-D", folder)
        with Configured("[tenant alice]\n", "--listen", "tls://127.0.0.1:0", "--certificate", f"{folder}/server.pem",
                        "--key", f"{folder}/server.key", "--client-authority", f"{folder}/ca.pem") as daemon:
            url = re.search(r"^listening on (tls://127\.0\.0\.1:\d+)$", read_file(daemon.out_path), re.M)[1]
            run("vectoradd", remote=url, env={"GPUPOOL_TLS_CERT": f"{folder}/alice.pem", "GPUPOOL_TLS_KEY": f"{folder}/alice.key"}).expect(
                out="vectoradd: ok\n", err="")


@case("a host without a scheme is one of TLS where there is a token, and of tcp where there is none")
def _():
    with Certificates() as certificates, Encrypted(certificates) as daemon:
        run("vectoradd", remote=f"127.0.0.1:{daemon.port}", env=certificates.client()).expect(out="vectoradd: ok\n", err="")
        run("vectoradd", remote=f"127.0.0.1:{daemon.clear_port}").expect(out="vectoradd: ok\n", err="")


@case("a token that others can read is used, with a warning")
def _():
    with Pool(config="[tenant alice]\n") as pool:
        path, _name = pool.create("alice")
        os.chmod(path, 0o644)
        Program("vectoradd", (), pool.local, env={"GPUPOOL_TOKEN_FILE": path}).finish().expect(
            err=f"gpupool: GPUPOOL_TOKEN_FILE={path}: others can read this file, and any user who has the token can use the pool "
                "as you; run chmod 600\n")
        os.chmod(path, 0o640)
        Program("vectoradd", (), pool.local, env={"GPUPOOL_TOKEN_FILE": path}).finish().expect(err="")


if __name__ == "__main__":
    sys.exit(main())
