# SPDX-License-Identifier: Apache-2.0
"""nvml_program.py WHAT: a program that calls NVML and prints the results, for test_nvml.py."""
import ctypes
import os
import select
import struct
import sys
import time
import warnings

UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NOT_FOUND, INSUFFICIENT_SIZE, VERSION_MISMATCH = 1, 2, 3, 6, 7, 25
MIB = 1 << 20
nvml = ctypes.CDLL("libnvidia-ml.so.1")


class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class MemoryV2(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint)] + [(name, ctypes.c_ulonglong) for name in ("total", "reserved", "free", "used")]


class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("memory", ctypes.c_ulonglong), ("gpu", ctypes.c_uint), ("compute", ctypes.c_uint)]


class Named(ctypes.Structure):
    """Of nvidia-smi's private functions."""
    _fields_ = [("process", Process), ("protected", ctypes.c_ulonglong), ("name", ctypes.c_char * 4096)]


class Pci(ctypes.Structure):
    _fields_ = [("legacy", ctypes.c_char * 16)] + [(name, ctypes.c_uint) for name in ("domain", "bus", "device", "id", "sub")] + [
        ("bus_id", ctypes.c_char * 32)]


class Branch(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("text", ctypes.c_char * 80)]


class Field(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint), ("scope", ctypes.c_uint), ("time", ctypes.c_longlong), ("latency", ctypes.c_longlong),
                ("type", ctypes.c_int), ("result", ctypes.c_int), ("value", ctypes.c_ulonglong)]


def call(name, *arguments):
    return getattr(nvml, name)(*arguments)


def good(name, *arguments):
    result = call(name, *arguments)
    assert result == 0, f"{name}: {result}"


def expect(wanted, name, *arguments):
    result = call(name, *arguments)
    assert result == wanted, f"{name}: {result}, not {wanted}"


def number(name, device, *arguments):
    value = ctypes.c_uint()
    good(name, device, *arguments, ctypes.byref(value))
    return value.value


def text(name, *arguments):
    value = ctypes.create_string_buffer(96)
    good(name, *arguments, value, 96)
    return value.value.decode()


def count():
    value = ctypes.c_uint()
    good("nvmlDeviceGetCount_v2", ctypes.byref(value))
    return value.value


def device_at(index):
    device = ctypes.c_void_p()
    good("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(device))
    return device


def used_memory(device):
    memory = Memory()
    good("nvmlDeviceGetMemoryInfo", device, ctypes.byref(memory))
    assert memory.used + memory.free == memory.total
    return memory


def list_processes(device):
    """Asked as programs do: how many, then all."""
    found = ctypes.c_uint(0)
    result = call("nvmlDeviceGetComputeRunningProcesses_v3", device, ctypes.byref(found), None)
    if found.value == 0:
        assert result == 0, result
        return {}
    assert result == INSUFFICIENT_SIZE, result
    room = (Process * (found.value + 8))()
    found.value += 8
    good("nvmlDeviceGetComputeRunningProcesses_v3", device, ctypes.byref(found), room)
    return {p.pid: p.memory for p in room[:found.value]}


class Sample(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("time", ctypes.c_ulonglong)] + [
        (name, ctypes.c_uint) for name in ("sm", "memory", "encoder", "decoder")]


class SampleV1(ctypes.Structure):
    _fields_ = [("time", ctypes.c_ulonglong)] + [
        (name, ctypes.c_uint) for name in ("pid", "sm", "memory", "encoder", "decoder", "jpeg", "optical")]


class SamplesV1(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("count", ctypes.c_uint), ("since", ctypes.c_ulonglong), ("list", ctypes.c_void_p)]


def list_shares(device):
    """How busy each process keeps the GPU, in per cent; asked as programs do."""
    found, since = ctypes.c_uint(0), ctypes.c_ulonglong(0)
    result = call("nvmlDeviceGetProcessUtilization", device, None, ctypes.byref(found), since)
    assert result == (INSUFFICIENT_SIZE if found.value else NOT_FOUND), result
    if result == NOT_FOUND:
        return {}
    room = (Sample * found.value)()
    good("nvmlDeviceGetProcessUtilization", device, room, ctypes.byref(found), since)
    newer = (SampleV1 * found.value)()
    listed = SamplesV1(ctypes.sizeof(SamplesV1) | 1 << 24, found.value, 0, ctypes.addressof(newer))
    good("nvmlDeviceGetProcessesUtilizationInfo", device, ctypes.byref(listed))
    assert [s.pid for s in newer] == [s.pid for s in room]
    expect(NOT_FOUND, "nvmlDeviceGetProcessUtilization", device, room, ctypes.byref(found),
           ctypes.c_ulonglong(max(s.time for s in room) + 10**9))
    listed.version = 1
    expect(VERSION_MISMATCH, "nvmlDeviceGetProcessesUtilizationInfo", device, ctypes.byref(listed))
    return {sample.pid: sample.sm for sample in room[:found.value]}


def private_functions():
    """nvidia-smi's, by their places in the table."""
    table = ctypes.POINTER(ctypes.c_void_p)()
    identity = bytes.fromhex("c4fe3e6cc98f6c4ea327ee696e12f7c4")
    expect(NOT_FOUND, "nvmlInternalGetExportTable", ctypes.byref(table), bytes(16))
    expect(INVALID_ARGUMENT, "nvmlInternalGetExportTable", None, identity)
    good("nvmlInternalGetExportTable", ctypes.byref(table), identity)
    return [ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 5)(entry) for entry in table[1:table[0] // 8]]


def list_private_processes(functions, device):
    """As nvidia-smi asks."""
    found, room = ctypes.c_uint(500), (Named * 500)()
    assert functions[212](device, ctypes.addressof(found), ctypes.addressof(room), None, None) == 0
    for place in (213, 214):
        none = ctypes.c_uint(500)
        assert functions[place](device, ctypes.addressof(none), ctypes.addressof(room), None, None) == 0 and none.value == 0
    return {named.process.pid: named.name.decode() for named in room[:found.value]}


def list_private_shares(functions, device, engines):
    """The mean of all samples, queried like pmon of an nvidia-smi that knows this number of engines."""
    size = 8 + engines * 80
    room, count, shares = ctypes.create_string_buffer(b"\xaa" * 100 * size, 100 * size), ctypes.c_uint(100), {}
    unknown = ctypes.c_uint(0)
    assert functions[144](device, 1, ctypes.addressof(unknown), ctypes.addressof(count), ctypes.addressof(room)) == 0
    assert 0 < count.value <= 100
    for sample in range(count.value):
        for engine in range(engines):
            percent, _, pid = struct.unpack_from("<3I", room, sample * size + 8 + engine * 80)
            if pid:
                assert engine == 0, f"engine {engine} is used by {pid}"
                shares[pid] = shares.get(pid, 0) + percent
    return {pid: share / count.value for pid, share in shares.items()}


def monitors():
    """What nvidia-smi asks for its views, of a table of which most places are not supported."""
    functions = private_functions()
    assert functions[144](None, 0, None, None, None) == UNINITIALIZED
    good("nvmlInit_v2")
    device = device_at(0)
    monitored = ctypes.c_uint(0)
    assert functions[71](device, ctypes.addressof(monitored), None, None, None) == 0 and monitored.value == 1
    assert functions[71](device, None, None, None, None) == INVALID_ARGUMENT
    assert functions[71](None, ctypes.addressof(monitored), None, None, None) == INVALID_ARGUMENT
    assert functions[144](device, 0, None, None, None) == INVALID_ARGUMENT
    known = {22, 25, 71, 144, 212, 213, 214}
    for place, function in enumerate(functions):
        assert place in known or function(None, None, None, None, None) == NOT_SUPPORTED, place
    names = list_private_processes(functions, device)
    shares = list_shares(device)
    assert set(shares) == set(names) == set(list_processes(device)), (shares, names)
    # A busy process may have waited for its turn for a while.
    for engines in (4, 6) * 3:
        seen = list_private_shares(functions, device, engines)
        assert set(seen) == set(names), (seen, names)
        shares = {pid: max(share, shares[pid]) for pid, share in seen.items()}
        time.sleep(0.25)
    for pid, name in names.items():
        print(pid, "busy" if shares[pid] else "idle", name.split("/")[-1])


def pairs():
    """The level of the connection between two devices."""
    good("nvmlInit_v2")
    functions, places, level = private_functions(), [], ctypes.c_int()
    for index in range(2):
        pci = Pci()
        good("nvmlDeviceGetPciInfo_v3", device_at(index), ctypes.byref(pci))
        places.append(ctypes.create_string_buffer(pci.bus_id))
    one, other = map(ctypes.addressof, places)
    good("nvmlDeviceGetTopologyCommonAncestor", device_at(0), device_at(1), ctypes.byref(level))
    print("level", level.value, "of pairs", end="")
    for pair in ((one, other), (other, one), (one, one)):
        assert functions[22](*pair, ctypes.addressof(level), None, None) == 0
        print("", level.value, end="")
    assert functions[22](one, None, ctypes.addressof(level), None, None) == INVALID_ARGUMENT
    assert functions[22](one, other, None, None, None) == INVALID_ARGUMENT
    print()


def facts():
    good("nvmlInit_v2")
    device = device_at(0)
    pci = Pci()
    good("nvmlDeviceGetPciInfo_v3", device, ctypes.byref(pci))
    print("devices", count())
    print("name", text("nvmlDeviceGetName", device))
    print("uuid", text("nvmlDeviceGetUUID", device))
    print("driver", text("nvmlSystemGetDriverVersion"))
    branch = Branch(version=ctypes.sizeof(Branch) | 1 << 24)
    good("nvmlSystemGetDriverBranch", ctypes.byref(branch), 80)
    print("branch", branch.text.decode())
    print("celsius", number("nvmlDeviceGetTemperature", device, 0))
    print("milliwatts", number("nvmlDeviceGetPowerUsage", device))
    print("bus", pci.bus_id.decode(), pci.legacy.decode())
    print("total", used_memory(device).total // MIB)
    same = ctypes.c_void_p()
    keys = [("nvmlDeviceGetHandleByUUID", text("nvmlDeviceGetUUID", device)),
            ("nvmlDeviceGetHandleByPciBusId_v2", pci.bus_id.decode()),
            ("nvmlDeviceGetHandleByPciBusId_v2", pci.legacy.decode())]
    # Not every GPU has one.
    if call("nvmlDeviceGetSerial", device, ctypes.create_string_buffer(96), 96) != NOT_SUPPORTED:
        keys.append(("nvmlDeviceGetHandleBySerial", text("nvmlDeviceGetSerial", device)))
    for name, key in keys:
        good(name, key.encode(), ctypes.byref(same))
        assert same.value == device.value, name
    print("processes", len(list_processes(device)))


def wrong():
    """Wrong calls, and what each returns."""
    device, out, memory, small = ctypes.c_void_p(), ctypes.c_uint(), MemoryV2(), ctypes.create_string_buffer(4)
    expect(UNINITIALIZED, "nvmlDeviceGetCount_v2", ctypes.byref(out))
    expect(UNINITIALIZED, "nvmlDeviceGetCount_v2", None)
    expect(UNINITIALIZED, "nvmlDeviceGetName", None, None, 0)
    expect(UNINITIALIZED, "nvmlDeviceSetEccMode", None, 1)
    expect(UNINITIALIZED, "nvmlShutdown")
    expect(INVALID_ARGUMENT, "nvmlInitWithFlags", 1 << 30)
    good("nvmlInit_v2")
    good("nvmlInit")
    good("nvmlShutdown")
    device = device_at(0)
    expect(INVALID_ARGUMENT, "nvmlDeviceGetCount_v2", None)
    expect(INVALID_ARGUMENT, "nvmlDeviceGetHandleByIndex_v2", 99, ctypes.byref(ctypes.c_void_p()))
    expect(INVALID_ARGUMENT, "nvmlDeviceGetHandleByIndex_v2", 0, None)
    expect(NOT_FOUND, "nvmlDeviceGetHandleByUUID", b"GPU-none", ctypes.byref(ctypes.c_void_p()))
    expect(NOT_FOUND, "nvmlDeviceGetHandleBySerial", b"none", ctypes.byref(ctypes.c_void_p()))
    expect(NOT_FOUND, "nvmlDeviceGetHandleByPciBusId_v2", b"00000fff:7e:1f.0", ctypes.byref(ctypes.c_void_p()))
    expect(INVALID_ARGUMENT, "nvmlDeviceGetHandleByPciBusId_v2", b"nothing", ctypes.byref(ctypes.c_void_p()))
    for handle in (None, ctypes.c_void_p(8), ctypes.c_void_p(device.value + 8)):
        expect(INVALID_ARGUMENT, "nvmlDeviceGetPowerUsage", handle, ctypes.byref(out))
        expect(INVALID_ARGUMENT, "nvmlDeviceGetMemoryInfo", handle, ctypes.byref(Memory()))
    expect(INVALID_ARGUMENT, "nvmlDeviceGetPowerUsage", device, None)
    expect(INVALID_ARGUMENT, "nvmlDeviceGetUtilizationRates", device, None)
    expect(INVALID_ARGUMENT, "nvmlDeviceGetName", device, None, 96)
    expect(INSUFFICIENT_SIZE, "nvmlDeviceGetName", device, small, 4)
    expect(INSUFFICIENT_SIZE, "nvmlSystemGetDriverVersion", small, 4)
    expect(INVALID_ARGUMENT, "nvmlSystemGetDriverBranch", None, 80)
    branch = Branch()
    expect(VERSION_MISMATCH, "nvmlSystemGetDriverBranch", ctypes.byref(branch), 80)
    branch.version = ctypes.sizeof(branch) | 1 << 24
    expect(INSUFFICIENT_SIZE, "nvmlSystemGetDriverBranch", ctypes.byref(branch), 4)
    good("nvmlSystemGetDriverBranch", ctypes.byref(branch), 2000)
    expect(VERSION_MISMATCH, "nvmlDeviceGetMemoryInfo_v2", device, ctypes.byref(memory))
    memory.version = ctypes.sizeof(memory) | 2 << 24
    good("nvmlDeviceGetMemoryInfo_v2", device, ctypes.byref(memory))
    expect(INVALID_ARGUMENT, "nvmlDeviceGetTemperature", device, 7, ctypes.byref(out))
    expect(INVALID_ARGUMENT, "nvmlDeviceGetClockInfo", device, 4, ctypes.byref(out))
    expect(INVALID_ARGUMENT, "nvmlDeviceGetComputeRunningProcesses_v3", device, None, None)
    expect(NOT_FOUND, "nvmlSystemGetProcessName", 0x7fffffff, small, 4)
    # Of no pool.
    expect(NOT_SUPPORTED, "nvmlDeviceGetMinorNumber", device, ctypes.byref(out))
    expect(NOT_SUPPORTED, "nvmlDeviceGetNvLinkState", device, 0, ctypes.byref(out))
    expect(NOT_SUPPORTED, "nvmlDeviceSetEccMode", device, 1)
    good("nvmlShutdown")
    expect(UNINITIALIZED, "nvmlDeviceGetPowerUsage", device, ctypes.byref(out))
    good("nvmlInit_v2")
    assert device_at(0).value == device.value


def cuda_calls(*calls):
    cuda = ctypes.CDLL("libcuda.so.1")
    for name, *arguments in calls:
        result = getattr(cuda, name)(*arguments)
        assert result == 0, f"{name}: {result}"


def cuda_allocates(mib):
    context, address = ctypes.c_void_p(), ctypes.c_ulonglong()
    cuda_calls(("cuInit", 0), ("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0))
    cuda_calls(("cuCtxSetCurrent", context), ("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(mib * MIB)))


# Counts down from a number of the program's; the clock keeps a compiler from leaving that out.
SPIN = b""".version 7.0
.target sm_75
.address_size 64
.visible .entry spin(.param .u32 turns)
{
    .reg .u32 %r<3>;
    .reg .pred %p;
    ld.param.u32 %r1, [turns];
again:
    mov.u32 %r2, %clock;
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p, %r1, 0;
    @%p bra again;
    ret;
}
"""


def launches(turns):
    """A function that runs the kernel once and waits for it."""
    module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    cuda_calls(("cuModuleLoadData", ctypes.byref(module), SPIN))
    cuda_calls(("cuModuleGetFunction", ctypes.byref(kernel), module, b"spin"))
    number = ctypes.c_uint(turns)

    def launch():
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(number))
        cuda_calls(("cuLaunchKernel", kernel, 1, 1, 1, 1, 1, 1, 0, None, parameters, None), ("cuCtxSynchronize",))
    return launch


def uses():
    """The program's own memory, then its child's, which has only this process's handle."""
    good("nvmlInit_v2")
    device = device_at(0)
    assert os.getpid() not in list_processes(device)
    before = used_memory(device).used
    cuda_allocates(64)
    assert used_memory(device).used >= before + 64 * MIB
    assert list_processes(device)[os.getpid()] >= 64 * MIB
    assert "python" in text("nvmlSystemGetProcessName", os.getpid())
    assert "python" in list_private_processes(private_functions(), device)[os.getpid()]
    print("ready", flush=True)
    sys.stdin.readline()


def works():
    """Memory, and a GPU that is busy for as long as there is input."""
    cuda_allocates(64)
    launch = launches(10000)
    launch()
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        launch()


def watches(pid):
    good("nvmlInit_v2")
    device = device_at(0)
    print("sees", list_processes(device).get(pid, 0) // MIB, "MiB of", used_memory(device).used // MIB)


def forks():
    """A process that has only asked NVML leaves CUDA and NVML to its child."""
    good("nvmlInit_v2")
    device, here = device_at(0), count()
    # Python warns of any fork beside a thread.
    warnings.simplefilter("ignore", DeprecationWarning)
    child = os.fork()
    if child == 0:
        assert count() == here and used_memory(device).total > 0
        cuda_allocates(8)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert used_memory(device).total > 0


def links():
    """As NCCL asks: may two devices be peers, and what is at the ends of their links."""
    good("nvmlInit_v2")
    devices = [device_at(index) for index in range(count())]
    status = ctypes.c_int()
    for one in devices:
        told = []
        for other in devices:
            good("nvmlDeviceGetP2PStatus", one, other, 0, ctypes.byref(status))
            told.append(status.value)
        print("status", *told)
        expect(INVALID_ARGUMENT, "nvmlDeviceGetNvLinkState", one, 18, ctypes.byref(status))
        expect(INVALID_ARGUMENT, "nvmlDeviceGetNvLinkState", one, 0, None)
        field, pci = Field(id=165, scope=3), Pci()
        good("nvmlDeviceGetFieldValues", one, 1, ctypes.byref(field))
        print("field", field.result, field.value)
        result = call("nvmlDeviceGetNvLinkRemotePciInfo", one, 17, ctypes.byref(pci))
        print("remote", result, pci.legacy.decode())
        if result == 0:
            print("link", *(number(name, one, 0, *more) for name, *more in (
                ("nvmlDeviceGetNvLinkState",), ("nvmlDeviceGetNvLinkRemoteDeviceType",), ("nvmlDeviceGetNvLinkCapability", 0))))


def hidden():
    """NVML knows of no CUDA_VISIBLE_DEVICES."""
    good("nvmlInit_v2")
    print("devices", count(), "total", used_memory(device_at(0)).total // MIB)
    print("cuInit", ctypes.CDLL("libcuda.so.1").cuInit(0))


def absent():
    print("init", call("nvmlInit_v2"), "without GPUs", call("nvmlInitWithFlags", 1), "devices", count())


if __name__ == "__main__":
    {"facts": facts, "wrong": wrong, "uses": uses, "forks": forks, "hidden": hidden, "links": links, "absent": absent, "works": works, "monitors": monitors, "pairs": pairs,
     "watches": lambda: watches(int(sys.argv[2]))}[sys.argv[1]]()
