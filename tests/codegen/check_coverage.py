# SPDX-License-Identifier: Apache-2.0
"""check_coverage.py CODEGEN_FOLDER: every symbol of both libraries is in exactly one column, and the sums are right."""
import re
import subprocess
import sys
from pathlib import Path

codegen = Path(sys.argv[1])
lines = subprocess.run([sys.executable, codegen / "coverage.py"], check=True, capture_output=True, text=True).stdout.splitlines()
rows = [line.partition(";")[0].split() for line in lines[:-1]]
symbols = re.findall(r"^GP_SYMBOL\w*\((\w+)", (codegen / "api/symbols.h").read_text(), re.M)
count = {how: sum(1 for _, status in rows if status == how) for how in ("remoted", "local", "unsupported")}
wanted = f"{len(symbols)} symbols: {count['remoted']} remoted, {count['local']} local, {count['unsupported']} unsupported"
print(lines[-1])
if [name for name, _ in rows] != symbols:
    sys.exit("the table does not name each symbol once")
if sum(count.values()) != len(symbols) or lines[-1] != wanted:
    sys.exit(f"wanted: {wanted}")

lines = subprocess.run([sys.executable, codegen / "nvml/nvml.py", "coverage"], check=True, capture_output=True, text=True).stdout.splitlines()
symbols = re.findall(r"^nvml\w+", (codegen / "nvml/symbols.txt").read_text(), re.M)
answered = sum(1 for line in lines[:-1] if line.endswith(" answered"))
refused = sum(1 for line in lines[:-1] if ": " in line and line.split(": ")[1])
print(lines[-1])
if [line.split()[0] for line in lines[:-1]] != symbols:
    sys.exit("NVML's table does not name each symbol once")
if answered + refused != len(symbols) or lines[-1] != f"{len(symbols)} symbols: {answered} answered, {refused} not supported":
    sys.exit("NVML's sum is wrong")
