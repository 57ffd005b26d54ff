# SPDX-License-Identifier: Apache-2.0
"""check_abi_lock.py ABI_TXT LOCK: the lock is append-only, and contains the whole description."""
import sys
from pathlib import Path

now = Path(sys.argv[1]).read_text().splitlines()
lock = Path(sys.argv[2]).read_text().splitlines()
changed = [line for line in lock if line not in now]
missing = [line for line in now if line not in lock]
for line in changed:
    print(f"changed or removed on the wire (a changed signature is a new number): {line}")
for line in missing:
    print(f"append this line to protocol/abi.lock: {line}")
sys.exit(bool(changed or missing))
