# SPDX-License-Identifier: Apache-2.0
"""readme_example.py README OUTPUT: the example of codegen/README.md, each line at its number on the page."""
import sys
from pathlib import Path

out, inside = [], False
for line in Path(sys.argv[1]).read_text().splitlines():
    if line.startswith("```"):
        inside = line == "```c"
        line = "```"
    out.append(line if inside and line != "```" else "")
Path(sys.argv[2]).write_text("\n".join(out) + "\n")
