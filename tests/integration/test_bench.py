# SPDX-License-Identifier: Apache-2.0
"""The benchmark command: its results on the software device have every field, and two files of results are compared
and plotted. The values are not tested."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

from harness import DRIVER, PATIENCE, SANITIZED, SANITIZER, SOFTWARE, Skip, case, main, require, sanitizer_library

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench")
BUILD = os.path.dirname(os.path.dirname(os.environ["GP_DAEMON"]))
sys.path.insert(0, FOLDER)
import bench_sides  # noqa: E402
import bench_starts  # noqa: E402
import bench_torch  # noqa: E402
import torch_steps  # noqa: E402

FIELDS = {"name", "transport", "rtt_ms", "rate_gbit", "unit", "native", "remote", "ratio", "limit"}


def environment():
    """Pools of this machine and its user are none of a benchmark's."""
    env = {**os.environ, "CONFIGURATION_DIRECTORY": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent"}
    if SANITIZED:
        env.update(LD_PRELOAD=sanitizer_library(), ASAN_OPTIONS="detect_leaks=0")
    return env


def bench(*args, script="bench.py", status=0):
    """Its standard output, or its standard error if it fails as expected."""
    env = environment()
    result = subprocess.run([sys.executable, os.path.join(FOLDER, script), *args], env=env, capture_output=True, text=True, timeout=2 * PATIENCE, check=False)
    require(result.returncode == status, f"{args}: status {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stderr if status else result.stdout


def row(name, **more):
    return {"name": name, "transport": "tcp", "rtt_ms": 1.01, "rate_gbit": 0, "unit": "ms", "native": 2.0, "remote": 3.0, "ratio": 1.5,
            "limit": None, **more}


def write(folder, name, rows):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(rows, file)
    return path


@case("a run measures natively, over tcp, over a network and over a local socket")
def _():
    if not SOFTWARE or SANITIZER == "thread":
        raise Skip("needs the software device, and programs that can be run with no more than a library preloaded")
    with tempfile.TemporaryDirectory(prefix="gpupool-results-") as folder:
        path = os.path.join(folder, "results.json")
        said = bench("run", BUILD, "--driver", DRIVER, "--group", "local,clients", "--turns", "1", "--small", "--rtt", "0,1",
                     "--row", "sync_idle,dtoh_pinned_64k,clients_1", "--transport", "tcp,unix", "--json", path)
        with open(path, encoding="utf-8") as file:
            rows = [row for row in json.load(file) if row["name"] != "clients_1_cpu"]
    names = {"sync_idle", "dtoh_pinned_64k", "clients_1"}
    seen = sorted((row["name"], row["transport"], row["rtt_ms"] > 0) for row in rows)
    wanted = sorted((name, *side) for name in names for side in (("tcp", False), ("tcp", True), ("unix", False)))
    require(seen == wanted, f"expected {wanted}: {seen}")
    for found in rows:
        require(set(found) == FIELDS and found["native"] > 0 and found["remote"] > 0, f"{found}")
        require(found["rtt_ms"] == 0 or found["rtt_ms"] >= 1, f"{found}")
        require(found["name"] in said, f"{found['name']} is not in the table:\n{said}")
        limited = found["name"] == "dtoh_pinned_64k" and found["transport"] == "tcp"
        require((found["limit"] is not None) == limited, f"{found}")


@case("the cost of one tenant's attack for another tenant is measured, even above the limit")
def _():
    if not SOFTWARE or SANITIZER == "thread":
        raise Skip("needs the software device, and programs that can be run with no more than a library preloaded")
    env = environment()
    command = [sys.executable, os.path.join(FOLDER, "attack.py"), BUILD, "--driver", DRIVER, "--seconds", "2", "--turns", "1"]
    result = subprocess.run(command, env=env, capture_output=True, text=True, timeout=2 * PATIENCE, check=False)
    # Before the table there may be a line about the number of processors.
    lines = result.stdout.partition("beside ")[2].splitlines()[1:]
    rows = {words[0]: words for words in map(str.split, lines)}
    floods = {"connections", "hello", "images", "all"}
    require(result.returncode in (0, 1) and not result.stderr and floods <= rows.keys() and len(rows) == 9, f"{result}")
    for name, (_, _, opened, failed, _, _, calls, _, _, *attempts) in rows.items():
        require(int(opened) > 0 and failed == "0" and int(calls) > 0, f"{name}: {result.stdout}")
        require(int(attempts[0]) > 0 if name in floods else not attempts, f"{name}: {result.stdout}")


@case("programs are run over every transport, and a failure is named")
def _():
    if not SOFTWARE or SANITIZER == "thread":
        raise Skip("needs the software device, and programs that can be run with no more than a library preloaded")
    found = bench(BUILD, "--driver", DRIVER, "--no-native", "--runs", "2", "vectoradd", script="programs.py")
    require(found.splitlines() == [f"{side} vectoradd: 2 of 2" for side in ("tcp", "tls", "unix")], found)
    command = [sys.executable, os.path.join(FOLDER, "programs.py"), BUILD, "--driver", DRIVER, "--no-native", "--runs", "1", "--transport", "tcp", "/bin/false"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE, check=False)
    require((result.returncode, result.stdout) == (1, "tcp /bin/false: 0 of 1\n    1x status 1: no output\n"), f"{result}")


@case("the cost of idle sessions and of many clients that start together is measured")
def _():
    if not SOFTWARE or SANITIZER == "thread":
        raise Skip("needs the software device, and programs that can be run with no more than a library preloaded")
    names = {"idle_host_mib", "idle_device_mib", "idle_cpu", "idle_client_cpu", "clients_8"}
    with tempfile.TemporaryDirectory(prefix="gpupool-results-") as folder:
        path = os.path.join(folder, "results.json")
        bench("run", BUILD, "--driver", DRIVER, "--group", "clients", "--turns", "1", "--small", "--row", ",".join(names), "--json", path)
        with open(path, encoding="utf-8") as file:
            rows = {row["name"]: row for row in json.load(file)}
    require(rows.keys() == names | {"clients_8_cpu"}, f"other rows: {rows}")
    require(rows["clients_8"]["remote"] > 0 and rows["clients_8"]["native"] > 0, f"{rows['clients_8']}")
    require(0 < rows["idle_host_mib"]["remote"] < 64 and 0 < rows["idle_device_mib"]["remote"] < 64, f"memory of a session: {rows}")
    # A client looks after its connection now and then.
    require(rows["idle_cpu"]["remote"] < 20 and rows["idle_client_cpu"]["remote"] < 20, f"idle sessions are busy: {rows}")


@case("the first programs of a daemon, and those with isolation = process with a reserve, are measured")
def _():
    if not SOFTWARE or SANITIZER == "thread":
        raise Skip("needs the software device, and programs that can be run with no more than a library preloaded")
    with tempfile.TemporaryDirectory(prefix="gpupool-results-") as folder:
        path = os.path.join(folder, "results.json")
        bench("run", BUILD, "--driver", DRIVER, "--group", "starts", "--turns", "1", "--json", path)
        with open(path, encoding="utf-8") as file:
            rows = {row["name"]: row["remote"] for row in json.load(file)}
    require(rows.keys() == set(bench_starts.ROWS) and min(rows.values()) > 0, f"{rows}")


class Programs:
    """The interface that bench_torch.py needs, with programs that print the lines of PyTorch programs."""

    def __init__(self, work):
        self.work = work

    def environment(self, side):
        return {**os.environ, "SIDE": str(side)}


def make_program(text):
    """A program that prints "ready" and runs this statement for each input line, number n; SIDE is its side."""
    return [sys.executable, "-uc", f"import os, sys, time\nprint('ready')\nside = os.environ['SIDE']\n"
                                   f"for n, line in enumerate(sys.stdin):\n    {text}"]


@case("one program of PyTorch runs through all turns of its side, and a failure is reported")
def _():
    commands = {
        "torch_conv_step": make_program("print('torch_conv_step', 10 + n + (side == 'far'), 'ms')"),
        "torch_bf16_step": make_program("sys.exit('no GPU' if side == 'far' else None) if n else print('torch_bf16_step 5 ms')"),
        "generate_token": make_program("time.sleep(60)"),
    }
    bench_torch.command = lambda name, what: commands[name]
    with tempfile.TemporaryDirectory(prefix="gpupool-results-") as folder:
        for name in commands:
            # One of them never answers; a busy machine may be slow to answer for the others.
            bench_torch.ANSWER_SECONDS = 1 if name == "generate_token" else 60
            servers = bench_torch.serve(Programs(folder), ["near", "far"], name)
            require(set(servers) == {None, "near", "far"}, f"{servers}")
            try:
                if name == "torch_conv_step":
                    for turn in range(2):
                        found = [servers[side].measure()[name] for side in (None, "near", "far")]
                        require(found == [(10 + turn, "ms"), (10 + turn, "ms"), (11 + turn, "ms")], f"turn {turn}: {found}")
                elif name == "torch_bf16_step":
                    servers["far"].measure()
                    fails(servers["far"], "no GPU")
                else:
                    fails(servers["near"], "no answer within 1 s")
            finally:
                begin = time.monotonic()
                for server in servers.values():
                    server.close()
                require(time.monotonic() - begin < 30, f"{name} does not end")


def fails(server, text):
    try:
        figures = server.measure()
    except bench_sides.Failed as failed:
        require(text in str(failed), f"expected {text!r}: {failed}")
        return
    require(False, f"no failure: {figures}")


@case("a measurement has as many steps as fit, none of them the first")
def _():
    done = []
    times = torch_steps.steps_in(lambda: done.append(time.sleep(0.001)), 0)
    require(len(times) == torch_steps.STEPS_MIN and len(done) == len(times) + torch_steps.WARM_AGAIN, f"{len(done)} steps, {times}")
    times = torch_steps.steps_in(lambda: None, 60)
    require(len(times) == torch_steps.STEPS_MAX, f"{len(times)} steps of no time")
    tokens = torch_steps.tokens_in(lambda count: count * 0.25, 0)
    require(tokens == [250.0], f"tokens of 0.25 s: {tokens}")


@case("two files of results are compared row by row")
def _():
    with tempfile.TemporaryDirectory(prefix="gpupool-results-") as folder:
        before = write(folder, "before.json", [row("a_step"), row("gone")])
        after = write(folder, "after.json", [row("a_step", remote=1.5, rtt_ms=1.04), row("new")])
        said = bench("compare", before, after)
    line = next((line.split() for line in said.splitlines() if line.startswith("a_step")), None)
    require(line and line[5:8] == ["3", "1.5", "0.5"], said)
    require("only before: ('gone'" in said and "only after: ('new'" in said, said)


@case("files and arguments that make no sense are named, in one line")
def _():
    with tempfile.TemporaryDirectory(prefix="gpupool-results-") as folder:
        good, kept = write(folder, "good.json", [row("a_step")]), write(folder, "kept.json", [row("a_step")])
        bad = [(os.path.join(folder, "none.json"), "No such file"), (write(folder, "empty.json", []), "no row"),
               (write(folder, "other.json", {"rows": []}), "no name"), (write(folder, "numbers.json", [1]), "no file of bench.py"),
               (write(folder, "half.json", [{"name": "a_step"}]), "no transport")]
        for path, text in bad:
            for args in ("compare", path, good), ("draw", path, folder):
                said = bench(*args, status=1)
                require(path in said and text in said and said.count("\n") == 1, f"{args}: {said}")
        run = ["run", BUILD, "--driver", DRIVER] if SOFTWARE else ["run", BUILD]
        for args, status, text in ((["--turns", "0"], 2, "0: a number from 1 on"), (["--rtt", "-1"], 2, "-1: numbers from 0 on"),
                                   (["--rtt", "nan"], 2, "nan: numbers"), (["--json", f"{folder}/none/x.json"], 1, "none/x.json: No such"),
                                   (["--transport", "unix", "--rtt", "5", "--json", kept], 1, "add tcp to --transport"),
                                   (["--group", "local", "--turns", "1", "--row", "sync_idle,sync_idel"], 1, "not measured: sync_idel;")):
            said = bench(*run, *args, status=status)
            require(text in said and "Traceback" not in said, f"{args}: {said}")
        require(len(json.load(open(kept, encoding="utf-8"))) == 1, "results are gone before anything was measured")


@case("results are drawn: latency by round trip, bandwidth by size, speed by number of clients")
def _():
    rows = [row("a_step", rtt_ms=rtt, remote=rtt + 2) for rtt in (0.0, 0.2, 1.0, 10.0)]
    rows += [row(f"htod_pinned_{size}", unit="GB/s", remote=speed) for size, speed in (("64k", 1.0), ("1m", 5.0), ("256m", 10.0))]
    rows += [row(f"clients_{count}", unit="launches/s", remote=100000.0 * count, native=None) for count in (1, 8)]
    with tempfile.TemporaryDirectory(prefix="gpupool-results-") as folder:
        said = bench("draw", write(folder, "results.json", rows), folder).split()
        require([os.path.basename(path) for path in said] == ["latency.svg", "bandwidth.svg", "clients.svg"], f"{said}")
        for path, circles in zip(said, (8, 6, 2)):
            tree = xml.etree.ElementTree.parse(path)
            found = tree.findall(".//{http://www.w3.org/2000/svg}circle")
            require(len(found) == circles, f"{path}: {len(found)} points, not {circles}")


@case("the cost of host memory is measured over a network and a local socket, each as a line and as JSON")
def _():
    if not SOFTWARE or SANITIZER == "thread":
        raise Skip("needs the software device, and more address space than the sanitizer leaves")
    said = bench(BUILD, "--driver", DRIVER, "--small", "--turns", "1", "--rtt", "1", script="host_memory.py")
    rows = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    sides = {row["side"] for row in rows}
    require(len(sides) == 2 and "unix" in sides, f"other sides: {said}")
    for name in "cold_copy_in", "cold_copy_out", "managed_there", "managed_back", "kernel_answered", "polled_page", "neighbour_p99":
        found = [row for row in rows if row["name"] == name]
        require({row["side"] for row in found} == sides, f"{name} is not measured everywhere: {said}")
        require(all(row["remote"] >= 0 and {"unit", "native", "wanted", "met"} <= set(row) for row in found), f"{name}: {said}")
        require(all(f"{name} ({side}): " in said for side in sides), f"no line for {name}: {said}")


@case("the longest launch after each of a neighbor's calls is reported for each size of pieces")
def _():
    if not SOFTWARE or SANITIZER == "thread":
        raise Skip("needs the software device, and more address space than the sanitizer leaves")
    said = bench(BUILD, "--driver", DRIVER, "--small", "--row", "steps", "--transport", "unix", "--piece", "1,8", script="host_memory.py")
    require(re.findall(r"^pieces of (\d+) MiB:$", said, re.M) == ["1", "8"], f"other pieces: {said}")
    for call in "allocate", "register", "launch", "unregister", "free":
        found = re.findall(rf"^longest_launch_behind_{call}_4k \(unix\): remote [\d.e+]+ us$", said, re.M)
        require(len(found) == 2, f"{call}: {said}")


if __name__ == "__main__":
    sys.exit(main(at_once=3))
