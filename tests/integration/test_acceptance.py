# SPDX-License-Identifier: Apache-2.0
"""bench/acceptance.py: its parts are selected, run, ended by their timeout and recorded, and each of them can be
executed. The results of the parts need a GPU."""
import contextlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile

from harness import case, main, require

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench")
sys.path.insert(0, os.path.abspath(BENCH))
import acceptance
import suites


def run_all(parts, limit, folder):
    """Outcomes, and the text on standard output."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        outcomes = acceptance.run_parts(parts, limit, folder)
    return outcomes, said.getvalue()


def shell(text, seconds=60):
    return acceptance.Part(["sh", "-c", text], seconds)


@case("a part is well, fails, or is ended by its time, and what it printed is kept")
def _():
    with tempfile.TemporaryDirectory(prefix="gpupool-parts-") as folder:
        outcomes, said = run_all({"good": shell("echo fine"), "bad": shell("echo worse; exit 3"),
                                  "endless": shell("exec sleep 600", seconds=1), "last": shell("echo $OUT > $OUT/result")},
                                 3600, folder)
        whats = {name: outcome.what for name, outcome in outcomes.items()}
        require(whats == {"good": "ok", "bad": "FAILED with 3", "endless": "ENDED by its time of 1 s", "last": "ok"}, f"{whats}")
        require(all(word in said for word in ("    fine", "    worse", "bad: FAILED with 3")), said)
        acceptance.write_tar(os.path.join(folder, "..", os.path.basename(folder) + ".tar.gz"), folder)
        path = folder + ".tar.gz"
        with tarfile.open(path) as tar:
            names = tar.getnames()
        os.unlink(path)
        require(names == ["bad.log", "endless.log", "good.log", "last.log", "result"], f"{names}")


@case("parts for which no time is left are not run, and do not count as passed")
def _():
    with tempfile.TemporaryDirectory(prefix="gpupool-parts-") as folder:
        outcomes, _ = run_all({"first": shell("true"), "second": shell("true")}, 5, folder)
        require(all(outcome.what.startswith("NOT RUN") for outcome in outcomes.values()), f"{outcomes}")


@case("parts are chosen by pattern, in their order, and unknown names are refused")
def _():
    parts = acceptance.all_parts("folder", "out")
    chosen = list(acceptance.choose(parts, ["tenants_*", "killed"]))
    require(chosen[0] == "killed" and len(chosen) > 3 and all(name.startswith("tenants_") for name in chosen[1:]), f"{chosen}")
    result = subprocess.run([sys.executable, os.path.join(BENCH, "acceptance.py"), "folder", "--part", "nothing"], capture_output=True,
                            text=True, check=False)
    require(result.returncode == 1 and "no part is called nothing" in result.stderr, f"{result}")


@case("every part calls a program that is there with suites, rows and figures that are known")
def _():
    sys.path.insert(0, os.path.join(os.path.abspath(BENCH), "tenants"))
    import rows
    import tenants
    import bench_torch
    known_rows = {number for number, _, _ in rows.ROWS}
    seen, seen_rows = set(), set()
    for name, part in acceptance.all_parts("folder", "out").items():
        script = part.command[1]
        require(os.access(script, os.R_OK), f"{name}: no {script}")
        require(part.seconds > 0, f"{name} has no time")
        if script.endswith("suites.py"):
            named = [word for word in part.command[3:] if word in suites.HOSTILE + suites.OTHERS + suites.ALONE]
            at_once = int(part.command[part.command.index("--jobs") + 1])
            require(named and at_once <= 4, f"{name}: {part.command}")
            seen.update(named)
        if "--rows" in part.command:
            asked = tenants.chosen(part.command[part.command.index("--rows") + 1])
            require(asked <= known_rows, f"{name}: no rows {asked - known_rows}")
            seen_rows |= asked
        if "--row" in part.command and "torch" in part.command:
            require(part.command[part.command.index("--row") + 1] in [*bench_torch.READS, "startup_torch"], f"{name}: {part.command}")
    require(seen == set(suites.HOSTILE + suites.OTHERS + suites.ALONE), "not all suites are in a part")
    there = {name[len("test_"):-len(".py")] for name in os.listdir(os.path.dirname(os.path.abspath(__file__))) if name.startswith("test_")}
    known = {name for name in seen if not name.startswith("apps_")} | set(suites.ELSEWHERE)
    require(there == known, f"not in bench/suites.py: {there - known}; only there: {known - there}")
    # tenants.py takes a row's variant b with the row.
    require(seen_rows == {number.rstrip("b") for number in known_rows}, f"rows in no part: {known_rows - seen_rows}")


if __name__ == "__main__":
    sys.exit(main())
