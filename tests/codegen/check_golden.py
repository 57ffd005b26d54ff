# SPDX-License-Identifier: Apache-2.0
"""check_golden.py GENERATOR GOLDEN_FOLDER [--write]: the sample's complete output, compared."""
import sys
from pathlib import Path

generator, folder = Path(sys.argv[1]), Path(sys.argv[2])
sys.path.insert(0, str(generator.resolve().parent))
from gpgen import make_outputs  # noqa: E402
from parse import parse  # noqa: E402

failed = 0
outputs = make_outputs(parse([generator.resolve().parent / "api" / "kinds.h", folder / "sample.h"]))
for number, (name, text) in enumerate(sorted(outputs.items()), 1):
    golden = folder / (name + ".golden")
    if "--write" in sys.argv:
        golden.write_text(text)
    same = golden.exists() and golden.read_text() == text
    failed += not same
    print(f"{'ok' if same else 'not ok'} {number} - {name} is as committed")
print(f"1..{len(outputs)}")
if failed:
    print(f"# look at the difference; if it is meant: {sys.argv[0]} {generator} {folder} --write", file=sys.stderr)
sys.exit(failed != 0)
