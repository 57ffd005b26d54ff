# SPDX-License-Identifier: Apache-2.0
"""wrongcalls_table.py OUTPUT CODEGEN API: for every function that the description has, one line of C: its name and
what each parameter takes, as a letter of wrongcalls.cc.  So a new call is tried without a change of the test."""
import sys
from pathlib import Path

# Handles, and what a right one is.
HANDLES = {
    "CUstream": "S", "CUevent": "E", "CUcontext": "C", "CUmodule": "M", "CUfunction": "F", "CUkernel": "K", "CUlibrary": "L",
    "CUgraph": "G", "CUgraphNode": "N", "CUgraphExec": "X", "CUarray": "A", "CUmipmappedArray": "Z", "CUmemoryPool": "P",
    "CUgreenCtx": "Z", "CUdevResourceDesc": "Z", "CUlinkState": "Z", "CUuserObject": "Z", "CUtexObject": "Z", "CUsurfObject": "Z",
    "CUmemGenericAllocationHandle": "Z", "CUgraphConditionalHandle": "Z", "CUtexref": "Z", "CUsurfref": "Z",
}
FUNCTIONS = {"CUhostFn", "CUstreamCallback", "CUlogsCallback", "CUoccupancyB2DSize", "CUasyncCallback"}
# No function of CUDA's; streams that wait for ever.
LEFT_OUT = ("cuGetExportTable", "cuStreamWaitValue")
# An address of these may be one of the host, and be read.
UNIFIED = {"cuMemcpy", "cuMemcpyAsync"}
ARGUMENTS_MAX = 16
# Passed in registers of their own, or in memory.
OTHER_ARGUMENTS = {"float", "double", "CUipcEventHandle", "CUipcMemHandle"}


def letter(param, counts):
    if param.depth == 0:
        if param.ctype in HANDLES:
            return HANDLES[param.ctype]
        if param.ctype in FUNCTIONS:
            return "f"
        if param.ctype == "CUdevice":
            return "D"
        if param.ctype == "CUdeviceptr":
            return "d"
        if param.name in counts:
            return "c"
        return "n" if param.ctype in ("size_t", "unsigned int", "int", "unsigned long long", "cuuint32_t", "cuuint64_t") else "e"
    if param.direction == "IN_STRING":
        return "s"
    return "O" if "OPT" in param.quals else "o"


def main():
    output, codegen, api = sys.argv[1:]
    sys.path.insert(0, codegen)
    from check import check
    from emit_client import map_implementations
    from parse import chapters, parse

    described = check(parse(chapters(Path(api))))
    calls = map_implementations(described)
    lines = []
    for symbol in described.symbols:
        call = calls.get(symbol.name)
        if not call or symbol.variant or symbol.name.startswith(LEFT_OUT):
            continue
        if any(p.depth == 0 and p.ctype in OTHER_ARGUMENTS for p in call.params):
            continue
        counts = {p.size for p in call.params if p.size}
        letters = "".join(letter(p, counts) for p in call.params)
        if symbol.name in UNIFIED:
            letters = letters.replace("d", "u")
        if len(letters) > ARGUMENTS_MAX:
            sys.exit(f"{symbol.name} takes more arguments than wrongcalls.cc passes")
        lines.append(f'\t{{ "{symbol.name}", "{letters}" }},\n')
    Path(output).write_text("/* Made by wrongcalls_table.py. */\n" + "".join(lines))


if __name__ == "__main__":
    main()
