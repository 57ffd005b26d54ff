# SPDX-License-Identifier: Apache-2.0
"""usage: exports.py NM LIBRARY LIST: the library exports exactly the symbols of the list"""
import subprocess
import sys

nm, library, wanted = sys.argv[1:]
out = subprocess.run([nm, '-D', '--defined-only', library], check=True, capture_output=True,
                     text=True).stdout
found = {line.split()[-1].split('@')[0] for line in out.splitlines()}
with open(wanted, encoding='utf-8') as file:
    intended = {line.strip() for line in file if line.strip() and not line.startswith('#')}
for name in sorted(found - intended):
    print(f'exported but not intended: {name}')
for name in sorted(intended - found):
    print(f'not exported: {name}')
sys.exit(found != intended)
