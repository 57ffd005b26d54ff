# SPDX-License-Identifier: Apache-2.0
"""check_errors.py GENERATOR FOLDER: each FOLDER/x.h is refused with exactly the text of x.err."""
import subprocess
import sys
from pathlib import Path

generator, folder = Path(sys.argv[1]), Path(sys.argv[2])
cases = sorted(folder.glob("*.h"))
kinds = generator.resolve().parent / "api" / "kinds.h"
failed = 0
for number, case in enumerate(cases, 1):
    run = subprocess.run([sys.executable, generator, "abi.txt", "/dev/null", kinds, case], capture_output=True, text=True)
    wanted = case.with_suffix(".err").read_text()
    good = run.returncode == 1 and run.stderr == wanted
    failed += not good
    print(f"{'ok' if good else 'not ok'} {number} - {case.stem}")
    if not good:
        print(f"# wanted: {wanted.strip()}\n# got ({run.returncode}): {run.stderr.strip()}")
print(f"1..{len(cases)}")
sys.exit(failed != 0 or not cases)
