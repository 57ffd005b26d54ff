# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's nvidia-smi with our NVML: each of those that scripts/smi.sh has fetched, the machine's own, and those that
GP_NVIDIA_SMI names, with colons between them.  test_nvml.py asks the same without NVIDIA's program.
"""
import csv
import glob
import os
import re
import shutil
import sys
from xml.etree import ElementTree

from harness import Daemon, Program, Skip, case, main, require

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "nvml_program.py")
FETCHED = os.path.join(HERE, "../../.toolkit/smi/*/nvidia-smi")
ENVIRONMENT = {"LD_LIBRARY_PATH": f"{os.path.dirname(os.environ['GP_NVML'])}:{os.environ['GP_CLIENT']}:{os.environ.get('GP_LIBRARIES', '')}"}
TOTAL = 512
LIMITED = {**ENVIRONMENT, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": f"0={TOTAL}M"}
FOUND = [path for path in [*os.environ.get("GP_NVIDIA_SMI", "").split(":"), shutil.which("nvidia-smi"),
                           *sorted(glob.glob(FETCHED))] if path]
FIELD = re.compile(r'^"([a-z][a-z0-9_.]*)"', re.M)


class View:
    """One nvidia-smi, a daemon, and a program that uses its GPU and keeps it busy."""

    def __init__(self, path, daemon, user):
        self.path, self.daemon, self.pid = path, daemon, str(user.process.pid)

    def query(self, *arguments, status=0, env=LIMITED):
        return self.daemon.run("nvidia-smi", *arguments, path=self.path, env=env).expect(status=status, err="").out

    def find(self, pattern, text):
        found = re.search(pattern, text, re.M)
        require(found, f"{self.path}: no {pattern!r} in\n{text}")
        return found

    def plain(self):
        text = self.query(env=ENVIRONMENT)
        self.version = self.find(r"NVIDIA-SMI (\d[\d.]*)", text)[1]
        used, total = self.find(r"\| +(\d+)MiB / +(\d+)MiB \|", text).groups()
        require(64 <= int(used) <= int(total), text)
        # Of a quota of its own it uses nothing.
        self.find(rf"\| +0MiB / +{TOTAL}MiB \|", self.query())
        self.find(rf"^\| +0 +N/A +N/A +{self.pid} +C +\S*python\S* +\d+MiB \|$", text)

    def short(self):
        self.uuid = self.find(r"^GPU 0: \S.* \(UUID: (GPU-[0-9a-f-]{36})\)$", self.query("-L"))[1]

    def long(self):
        text = self.query("-q")
        self.find(rf"^ +GPU UUID +: {self.uuid}$", text)
        self.find(rf"^ +FB Memory Usage\n +Total +: {TOTAL} MiB$", text)
        self.find(rf"^ +Process ID +: {self.pid}$", text)
        self.find(r"^ +Total +: \d+ MiB$", self.query("-q", "-d", "MEMORY"))

    def xml(self):
        root = ElementTree.fromstring(self.query("-q", "-x"))
        gpu = root.find("gpu")
        require(int(root.findtext("attached_gpus")) == len(root.findall("gpu")), "attached_gpus")
        require(gpu.findtext("uuid") == self.uuid, gpu.findtext("uuid"))
        require(gpu.findtext("fb_memory_usage/total") == f"{TOTAL} MiB", "total")
        require(self.pid in [p.findtext("pid") for p in gpu.findall("processes/process_info")], "the process is missing")

    def table(self):
        """Every field that it knows, as exporters of metrics query them."""
        fields = FIELD.findall(self.query("--help-query-gpu"))
        require(len(fields) > 80, str(fields))
        rows = list(csv.reader(self.query("--query-gpu=" + ",".join(fields), "--format=csv").splitlines(), skipinitialspace=True))
        require(len(rows) >= 2 and all(len(row) == len(fields) for row in rows), str(rows))
        values = dict(zip(fields, rows[1]))
        require(values["uuid" if "uuid" in fields else "gpu_uuid"] == self.uuid, str(values))
        require(values["memory.total"] == f"{TOTAL} MiB", str(values))
        require(re.fullmatch(r"\d+ %", values["utilization.gpu"]) and values["temperature.gpu"].isdigit(), str(values))
        apps = self.query("--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits")
        require(int(dict(line.split(", ") for line in apps.splitlines())[self.pid]) >= 64, apps)

    def monitors(self):
        line = self.find(r"^ +0 +(\d+) +(\d+) ", self.query("dmon", "-c", "1"))
        require(int(line[1]) > 0 and int(line[2]) > 0, line[0])
        # A busy process may have waited for its turn for a while.
        text = self.query("pmon", "-c", "3")
        busy = re.findall(rf"^ +0 +{self.pid} +C +(\d+) .*python", text, re.M)
        require(len(busy) == 3 and 0 < max(map(int, busy)) <= 100, text)

    def others(self):
        self.find(r"^\S*GPU0\s+X\b", self.query("topo", "-m"))
        self.query("-q", "-d", "CLOCK,POWER,ECC,TEMPERATURE,UTILIZATION,PIDS,SUPPORTED_CLOCKS")
        # Newer ones end with 0.
        result = self.daemon.run("nvidia-smi", "mig", "-lgi", path=self.path, env=LIMITED)
        require(result.status in (0, 6) and "No MIG" in result.out, f"{self.path}: {result}")


@case("views of nvidia-smi have the pool's devices, the quota and the tenant's processes")
def _():
    if not FOUND:
        raise Skip("no nvidia-smi: scripts/smi.sh fetches some, or GP_NVIDIA_SMI names one")
    with Daemon() as daemon:
        user = Program("python", [PROGRAM, "works"], daemon.address, env=ENVIRONMENT, path=sys.executable, stdin=True)
        user.wait_for_output("ready")
        for path in FOUND:
            view = View(path, daemon, user)
            for look in (view.plain, view.short, view.long, view.xml, view.table, view.monitors, view.others):
                look()
            print("# nvidia-smi", view.version, flush=True)
        user.finish().expect(out="ready\n", err="")


@case("nvidia-smi shows the devices of two daemons, with the network between them")
def _():
    if not FOUND:
        raise Skip("no nvidia-smi")
    with Daemon() as one, Daemon() as other:
        for path in FOUND:
            def query(*arguments):
                program = Program("nvidia-smi", arguments, f"{one.address},{other.address}", env=ENVIRONMENT, path=path)
                return program.finish().expect(err="").out
            require(len(re.findall(r"^GPU \d: ", query("-L"), re.M)) >= 2, path)
            require(re.search(r"^GPU0\s+X\s.*\bSYS\b", query("topo", "-m"), re.M), path)


@case("nvidia-smi reports that there is no driver if there is no daemon")
def _():
    if not FOUND:
        raise Skip("no nvidia-smi")
    for path in FOUND:
        result = Program("nvidia-smi", [], "tcp://127.0.0.1:1", env=ENVIRONMENT, path=path).finish()
        require(result.status == 9 and "NVIDIA-SMI has failed" in result.out, str(result))


if __name__ == "__main__":
    sys.exit(main())
