# SPDX-License-Identifier: Apache-2.0
"""few_functions.py DRIVER_H OUTPUT: a driver library with just the functions that the daemon cannot do without."""
import re
import sys
from pathlib import Path

names = re.findall(r"^GP_DRIVER\((\w+)\)", Path(sys.argv[1]).read_text(), re.M)
Path(sys.argv[2]).write_text("".join(f"int {name}(void);\nint\n{name}(void)\n{{\n\treturn 0;\n}}\n" for name in names))
