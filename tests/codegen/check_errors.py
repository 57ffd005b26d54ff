# SPDX-License-Identifier: Apache-2.0
"""check_errors.py GENERATOR FOLDER: each FOLDER/x.h is refused with exactly the text of x.err."""
import sys
from pathlib import Path

generator, folder = Path(sys.argv[1]), Path(sys.argv[2])
sys.path.insert(0, str(generator.resolve().parent))
from gpgen import make_outputs  # noqa: E402
from parse import SpecError, parse  # noqa: E402


def refusal(case):
    """The generator's error for all outputs."""
    try:
        make_outputs(parse([kinds, case]))
    except SpecError as error:
        return f"{error}\n"
    return "all of it is made\n"


cases = sorted(folder.glob("*.h"))
kinds = generator.resolve().parent / "api" / "kinds.h"
failed = 0
for number, case in enumerate(cases, 1):
    text = refusal(case)
    wanted = case.with_suffix(".err").read_text()
    good = text == wanted
    failed += not good
    print(f"{'ok' if good else 'not ok'} {number} - {case.stem}")
    if not good:
        print(f"# wanted: {wanted.strip()}\n# got: {text.strip()}")
print(f"1..{len(cases)}")
sys.exit(failed != 0 or not cases)
