# SPDX-License-Identifier: Apache-2.0
"""check_matches.py GENERATOR CC CUDA_INCLUDE FOLDER: FOLDER/x.h differs from cuda.h, and the compiler reports
it with the line of x.err."""
import subprocess
import sys
import tempfile
from pathlib import Path

generator, cc, include, folder = sys.argv[1:]
root = Path(generator).resolve().parent.parent
cases = sorted(Path(folder).glob("*.h"))
failed = 0
for number, case in enumerate(cases, 1):
    with tempfile.TemporaryDirectory() as temporary:
        (Path(temporary) / "codegen" / "mismatch").mkdir(parents=True)
        (Path(temporary) / "codegen" / "mismatch" / case.name).write_text(case.read_text())
        made = Path(temporary) / "matches.c"
        subprocess.run([sys.executable, generator, "api_matches_cuda_h.c", made, case], check=True)
        run = subprocess.run([cc, "-fsyntax-only", "-I", temporary, "-I", root, "-I", include, made],
                             capture_output=True, text=True)
    wanted = case.with_suffix(".err").read_text().strip().split(": ", 1)
    good = run.returncode != 0 and any(line.split("mismatch/")[-1].startswith(wanted[0].split("mismatch/")[-1] + ":")
                                       and wanted[1] in line for line in run.stderr.splitlines())
    failed += not good
    print(f"{'ok' if good else 'not ok'} {number} - {case.stem}")
    if not good:
        print("".join(f"# {line}\n" for line in run.stderr.splitlines()), end="")
print(f"1..{len(cases)}")
sys.exit(failed != 0 or not cases)
