# SPDX-License-Identifier: Apache-2.0
"""test_nvml.py RUNTIMES CC ROOT LIBRARY: our NVML beside NVIDIA's header and NVIDIA's Python."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

from harness import SOFTWARE, Daemon, Skip, case, main, require

runtimes, compiler, root, library = [os.path.abspath(path) if os.sep in path else path for path in sys.argv[1:5]]
HEADER = os.path.join(runtimes, "nvml.h")
PYNVML = os.path.join(runtimes, "pynvml")

PROGRAM = """
import os
from pynvml import *

def refused(code, function, *arguments):
    try:
        function(*arguments)
    except NVMLError as error:
        assert error.value == code, (function.__name__, error.value)
    else:
        raise AssertionError(function.__name__)

refused(NVML_ERROR_UNINITIALIZED, nvmlDeviceGetCount)
nvmlInit()
devices = [nvmlDeviceGetHandleByIndex(i) for i in range(nvmlDeviceGetCount())]
for index, device in enumerate(devices):
    assert nvmlDeviceGetIndex(device) == index
    uuid, pci = nvmlDeviceGetUUID(device), nvmlDeviceGetPciInfo(device)
    assert nvmlDeviceGetIndex(nvmlDeviceGetHandleByUUID(uuid)) == index
    assert nvmlDeviceGetIndex(nvmlDeviceGetHandleByPciBusId(pci.busId)) == index
    memory, newer = nvmlDeviceGetMemoryInfo(device), nvmlDeviceGetMemoryInfo(device, version=nvmlMemory_v2)
    assert memory.total == newer.total and memory.used + memory.free == memory.total
    assert nvmlDeviceGetComputeRunningProcesses(device) == []
    assert nvmlDeviceGetGraphicsRunningProcesses(device) == []
    assert nvmlDeviceGetCudaComputeCapability(device)[0] >= 1
    rates = nvmlDeviceGetUtilizationRates(device)
    assert 0 <= rates.gpu <= 100 and 0 <= rates.memory <= 100
    celsius = nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_GPU)
    assert nvmlDeviceGetTemperatureV(device, NVML_TEMPERATURE_GPU) in range(celsius - 5, celsius + 6)
    assert nvmlDeviceGetPowerUsage(device) <= nvmlDeviceGetEnforcedPowerLimit(device) * 2
    assert nvmlDeviceGetClock(device, NVML_CLOCK_SM, NVML_CLOCK_ID_CURRENT) > 0
    fields = nvmlDeviceGetFieldValues(device, [NVML_FI_DEV_POWER_INSTANT, 9999])
    assert fields[0].nvmlReturn == 0 and fields[0].value.uiVal > 0 and fields[1].nvmlReturn == NVML_ERROR_NOT_SUPPORTED
    assert nvmlDeviceGetP2PStatus(device, device, 0) == NVML_P2P_STATUS_OK
    refused(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetP2PStatus, device, device, 99)
    # No process uses it.
    refused(NVML_ERROR_NOT_FOUND, nvmlDeviceGetProcessUtilization, device, 0)
    refused(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceSetPersistenceMode, device, 1)
refused(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetHandleByIndex, len(devices))
refused(NVML_ERROR_NOT_FOUND, nvmlDeviceGetHandleByUUID, b"GPU-00000000")
events = nvmlEventSetCreate()
refused(NVML_ERROR_TIMEOUT, nvmlEventSetWait_v2, events, 1)
nvmlEventSetFree(events)
print(len(devices), nvmlSystemGetCudaDriverVersion() // 1000, nvmlDeviceGetName(devices[0]))
nvmlShutdown()
refused(NVML_ERROR_UNINITIALIZED, nvmlShutdown)
"""


def need(path):
    if not os.path.exists(path):
        raise Skip("scripts/runtimes.sh fetches NVML's header and Python")


@case("every function of NVML's header is one of our symbols")
def _():
    need(HEADER)
    with open(os.path.join(HEADER, "nvml.h"), encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    with open(os.path.join(root, "codegen/nvml/symbols.txt"), encoding="utf-8") as file:
        ours = set(re.findall(r"^nvml\w+", file.read(), re.M))
    theirs = set(re.findall(r"\bDECLDIR\b[^;(]*?\b(nvml\w+)\s*\(", text))
    require(len(theirs) > 400, f"only {len(theirs)} functions in the header")
    require(not theirs - ours, f"not described: {sorted(theirs - ours)}")


@case("structs and numbers are those of NVML's header")
def _():
    need(HEADER)
    here = os.path.dirname(os.path.abspath(__file__))
    made = subprocess.run([compiler, "-std=gnu11", "-fsyntax-only", "-I", root, "-isystem", HEADER, os.path.join(here, "nvml_layouts.c")],
                          capture_output=True, text=True)
    require(made.returncode == 0, made.stderr)


@case("NVIDIA's Python for NVML is answered")
def _():
    need(PYNVML)
    with Daemon() as daemon:
        paths = f"{os.path.dirname(library)}:{os.environ['GP_CLIENT']}"
        result = daemon.run("python", "-c", PROGRAM, path=sys.executable, env={"LD_LIBRARY_PATH": paths, "PYTHONPATH": PYNVML})
        result.expect(err="")
        require(re.fullmatch(r"1 13 gpupool software device\n" if SOFTWARE else r"\d+ \d+ \S.*\n", result.out), result.out)


if __name__ == "__main__":
    sys.argv[1:] = []
    sys.exit(main())
