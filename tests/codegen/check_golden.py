# SPDX-License-Identifier: Apache-2.0
"""check_golden.py GENERATOR GOLDEN_FOLDER [--write]: the sample's complete output, compared."""
import subprocess
import sys
import tempfile
from pathlib import Path

generator, folder = Path(sys.argv[1]), Path(sys.argv[2])
write = "--write" in sys.argv
outputs = ["abi.txt", "api_matches_cuda_h.c", "codec_gen.c", "gp_calls.c", "gp_calls.h", "gpc_calls.c", "gpc_calls.h", "gpc_entry.c", "gpc_kinds.c", "gpc_kinds.h", "gpc_proc.c",
           "gpc_stubs.c", "gpd_calls.h", "gpd_dispatch.c", "gpd_driver_functions.c", "gpd_driver_functions.h", "gpd_kinds.h", "gpd_names.c",
           "libcuda.map"]
kinds = generator.resolve().parent / "api" / "kinds.h"
failed = 0
with tempfile.TemporaryDirectory() as temporary:
    for number, name in enumerate(outputs, 1):
        out = Path(temporary) / name
        subprocess.run([sys.executable, generator, name, out, kinds, folder / "sample.h"], check=True)
        golden = folder / (name + ".golden")
        if write:
            golden.write_text(out.read_text())
        same = golden.exists() and golden.read_text() == out.read_text()
        failed += not same
        print(f"{'ok' if same else 'not ok'} {number} - {name} is as committed")
print(f"1..{len(outputs)}")
if failed:
    print(f"# look at the difference; if it is meant: {sys.argv[0]} {generator} {folder} --write", file=sys.stderr)
sys.exit(failed != 0)
