#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""symbols.h matches the installed toolkit.

usage: symbols_match_toolkit.py SYMBOLS_H CUDA_HOME

Derives (base, class, version) of every function from the names of the types in cudaTypedefs.h and
the like headers of graphics APIs, and pairs them with the names that the toolkit's link-time
libcuda.so exports. It exports no functions of graphics APIs: their names are those of symbols.h.
Exits 77 without a toolkit, or when the toolkit is of another CUDA than symbols.h.
"""

import collections
import pathlib
import re
import subprocess
import sys

SKIPPED = 77
SUFFIXES = {"GP_SYMBOL": "", "GP_SYMBOL_PTDS": "_ptds", "GP_SYMBOL_PTSZ": "_ptsz"}
LINE = re.compile(r"(GP_SYMBOL\w*)\((cu\w+), (cu\w+), (\d+)\)")
TYPE = re.compile(r"\bPFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\b")
NAME = re.compile(r"(cu\w+?)(?:_v(\d+))?(_ptsz|_ptds)?")
# cuProfiler.h has no function pointer types; its functions came with CUDA 4.0.
WITHOUT_TYPE = {("cuProfilerInitialize", ""), ("cuProfilerStart", ""), ("cuProfilerStop", "")}
VERSION_WITHOUT_TYPE = 4000
GRAPHICS = ("cudaGLTypedefs.h", "cudaEGLTypedefs.h", "cudaVDPAUTypedefs.h")
# Of the drivers for Windows and Tegra.
OF_OTHER_SYSTEMS = {"cuWGLGetDevice", "cuEventCreateFromEGLSync"}


def described(path):
    """The lines of symbols.h as (exported, base, suffix, version); complaints are exceptions."""
    entries = []
    in_comment = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if in_comment or line.startswith("/*"):
            in_comment = "*/" not in line
            continue
        if not line:
            continue
        match = LINE.fullmatch(line)
        if not match or match[1] not in SUFFIXES:
            raise ValueError(f"{path}:{number}: not a GP_SYMBOL line: {line}")
        entries.append((match[2], match[3], SUFFIXES[match[1]], int(match[4])))
    return entries


def self_consistency(entries):
    """Conditions that do not depend on the installed toolkit."""
    for what, count in collections.Counter(e[0] for e in entries).items():
        if count > 1:
            yield f"{what} is listed {count} times"
    for what, count in collections.Counter(e[1:] for e in entries).items():
        if count > 1:
            yield f"{what} is listed {count} times"
    for exported, base, suffix, _ in entries:
        match = NAME.fullmatch(exported)
        if match[1] != base or (match[3] or "") != suffix:
            yield f"{exported} is not a name of base {base} and class '{suffix}'"


def group_versions(typedefs):
    groups = collections.defaultdict(set)
    for match in TYPE.finditer(typedefs):
        if match[1] not in OF_OTHER_SYSTEMS:
            groups[match[1], match[3] or ""].add(int(match[2]))
    return groups


def with_profiler(groups):
    for group in WITHOUT_TYPE:
        groups[group] = {VERSION_WITHOUT_TYPE}
    return {group: sorted(versions) for group, versions in groups.items()}


def exported_names(library):
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True
    )
    return {line.split()[-1].split("@")[0] for line in listing.stdout.splitlines()}


def paired(versions, names):
    """In each base and class the n-th exported name, by its number, is the n-th version's."""
    groups = collections.defaultdict(list)
    for name in names:
        match = NAME.fullmatch(name)
        groups[match[1], match[3] or ""].append((int(match[2] or 1), name))
    for (base, suffix), group in groups.items():
        yield from (
            (name, base, suffix, version)
            for (_, name), version in zip(sorted(group), versions.get((base, suffix), []))
        )


def differences(what, ours, theirs):
    for entry in sorted(ours - theirs):
        yield f"{what}: only in symbols.h: {entry}"
    for entry in sorted(theirs - ours):
        yield f"{what}: only in the toolkit: {entry}"


def main():
    symbols, cuda_home = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    entries = described(symbols)
    complaints = list(self_consistency(entries))
    typedefs = cuda_home / "include/cudaTypedefs.h"
    stub = cuda_home / "lib64/stubs/libcuda.so"
    compared = False
    cuda_h = cuda_home / "include/cuda.h"
    same_cuda = cuda_h.exists() and re.search(r"#define CUDA_VERSION 13000\b", cuda_h.read_text())

    if same_cuda and typedefs.exists():
        compared = True
        headers = [typedefs.parent / name for name in GRAPHICS]
        graphics = group_versions("".join(header.read_text() for header in headers if header.exists()))
        versions = with_profiler({**group_versions(typedefs.read_text()), **graphics})
        theirs = {(*group, version) for group in versions for version in versions[group]}
        complaints += differences("versions", {e[1:] for e in entries}, theirs)
        if stub.exists():
            names = exported_names(stub) | {e[0] for e in entries if e[1:3] in graphics}
            complaints += differences("names", {e[0] for e in entries}, names)
            complaints += differences("pairs", set(entries), set(paired(versions, names)))

    for complaint in complaints:
        print(complaint, file=sys.stderr)
    if complaints:
        return 1
    if not compared:
        print("no cudaTypedefs.h of CUDA 13.0 to compare with")
        return SKIPPED
    print(f"{len(entries)} symbols agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
