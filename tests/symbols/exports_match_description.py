#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A library exports the symbols of its description and no other, under NVIDIA's name.

usage: exports_match_description.py LIBRARY SYMBOLS
"""

import pathlib
import re
import subprocess
import sys

LINE = re.compile(r"^(?:GP_SYMBOL\w*\((\w+),|(nvml\w+) )", re.M)


def run_for_output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(library):
    """Names to types; a version node is an absolute symbol and no export of ours."""
    names = {}
    for line in run_for_output("nm", "-D", "--defined-only", library).splitlines():
        kind, name = line.split()[-2:]
        if kind != "A":
            names[name.split("@")[0]] = kind
    return names


def main():
    library, symbols = sys.argv[1], pathlib.Path(sys.argv[2])
    described = {driver or nvml for driver, nvml in LINE.findall(symbols.read_text())}
    soname = "libnvidia-ml.so.1" if symbols.suffix == ".txt" else "libcuda.so.1"
    names = exported(library)
    complaints = [f"not exported: {name}" for name in sorted(described - names.keys())]
    complaints += [f"exported without need: {name}" for name in sorted(names.keys() - described)]
    complaints += [
        f"no function: {name} ({kind})"
        for name, kind in sorted(names.items())
        if name in described and kind != "T"
    ]
    if f"Library soname: [{soname}]" not in run_for_output("readelf", "-d", library):
        complaints.append(f"the soname is not {soname}")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    print(f"{len(described)} symbols described, {len(names)} exported")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
