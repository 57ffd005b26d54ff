#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""wheel.py STAGE VERSION MACHINE LICENCE OUTDIR: a wheel of the portable client. Its files lie below the
environment's folder as they lie below /usr elsewhere (bin, lib/gpupool, share), so `gpupool` finds the
library as it does there, and no Python is in between."""
import base64
import hashlib
import os
import stat
import sys
import time
import zipfile

TEXT = """Metadata-Version: 2.1
Name: gpupool-client
Version: {version}
Summary: Runs CUDA programs on GPUs of another machine
License: Apache-2.0
Requires-Python: >=3.6
Description-Content-Type: text/markdown

    pip install gpupool-client
    REMOTE_GPU=gpunode gpupool run python3 train.py

`libcuda.so.1` lies in `lib/gpupool` of the environment. It needs glibc 2.27 or later. For
addresses of the scheme tls it opens the OpenSSL 3 of the system, or the copy beside it.
"""


def main():
    stage, version, machine, licence, out = sys.argv[1:]
    tag = f"py3-none-manylinux_2_27_{machine}"
    date = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())))[:6]
    name, records = f"gpupool_client-{version}", []
    info = f"{name}.dist-info"
    path = os.path.join(out, f"{name}-{tag}.whl")

    def add(archive, place, data, executable=False):
        entry = zipfile.ZipInfo(place, date)
        entry.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        records.append(f"{place},sha256={digest},{len(data)}\n")

    with zipfile.ZipFile(path, "w") as archive:
        for folder, below, files in os.walk(stage):
            below.sort()
            for file in sorted(files):
                source = os.path.join(folder, file)
                inside = os.path.relpath(source, stage)
                # What pip is to make executable is a script to it.
                kind = "scripts" if inside.startswith("bin/") else "data"
                inside = inside.removeprefix("bin/")
                with open(source, "rb") as opened:
                    add(archive, f"{name}.data/{kind}/{inside}", opened.read(), os.access(source, os.X_OK))
        with open(licence, "rb") as opened:
            add(archive, f"{info}/LICENSE", opened.read())
        add(archive, f"{info}/METADATA", TEXT.format(version=version).encode())
        add(archive, f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: gpupool\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
        records.append(f"{info}/RECORD,,\n")
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD", date), "".join(records))


main()
