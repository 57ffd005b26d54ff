# SPDX-License-Identifier: Apache-2.0
"""usage: exports.py NM LIBRARY CODEGEN: the library exports functions of CUDA and NVML and its extensions, nothing
else, and all that the daemon cannot do without"""
import re
import subprocess
import sys
from pathlib import Path

nm, library, codegen = sys.argv[1:]
extensions = {'gpSoftKernelUnsupported', 'gpSoftStreamCancel'}
api = Path(codegen) / 'api'
out = subprocess.run([nm, '-D', '--defined-only', library], check=True, capture_output=True, text=True).stdout
found = {line.split()[-1].split('@')[0] for line in out.splitlines()}
allowed = set(re.findall(r'^GP_SYMBOL\w*\((\w+)', (api / 'symbols.h').read_text(), re.M)) | extensions
allowed |= set(re.findall(r'^(nvml\w+)', (Path(codegen) / 'nvml/symbols.txt').read_text(), re.M))
required = set(re.findall(r'^GP_DRIVER\((\w+)', (api / 'driver.h').read_text(), re.M)) | extensions
for name in sorted(found - allowed):
    print(f'exported, but no symbol of CUDA or NVML: {name}')
for name in sorted(required - found):
    print(f'not exported: {name}')
sys.exit(not found <= allowed or not required <= found)
