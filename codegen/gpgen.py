# SPDX-License-Identifier: Apache-2.0
"""gpgen.py NAME OUTPUT FILE...: writes the output NAME of the description FILE... to OUTPUT."""
import sys
from pathlib import Path

import emit_client
import emit_driver
import emit_local
import emit_protocol
import emit_server
import emit_tests
from check import check
from parse import SpecError, parse

OUTPUTS = {
    "gp_calls.h": emit_protocol.calls_h, "gp_calls.c": emit_protocol.calls_c, "abi.txt": emit_protocol.abi_txt,
    "gpc_kinds.h": emit_protocol.gpc_kinds_h, "gpd_kinds.h": emit_protocol.gpd_kinds_h,
    "gpc_calls.h": emit_client.calls_h, "gpc_calls.c": emit_client.calls_c, "gpc_stubs.c": emit_client.stubs_c,
    "gpc_local.c": emit_local.local_c,
    "gpc_entry.c": emit_client.entry_c, "gpc_proc.c": emit_client.proc_c, "libcuda.map": emit_client.libcuda_map,
    "gpd_calls.h": emit_server.calls_h, "gpd_dispatch.c": emit_server.dispatch_c,
    "gpd_call_handles.c": emit_server.call_handles_c, "gpd_options.c": emit_server.options_c, "gpc_kinds.c": emit_client.object_kinds,
    "gpd_driver_functions.h": emit_driver.functions_h, "gpd_driver_functions.c": emit_driver.functions_c,
    "api_matches_cuda_h.c": emit_driver.matches_c, "codec_gen.c": emit_tests.codec_c,
}


def make_outputs(api, names=OUTPUTS):
    """Returns the text of each of these outputs, by name."""
    check(api)
    return {name: OUTPUTS[name](api) for name in names}


def main(arguments):
    if len(arguments) < 3 or arguments[0] not in OUTPUTS:
        sys.exit(f"usage: gpgen.py {{{','.join(OUTPUTS)}}} OUTPUT FILE...")
    what, output, *files = arguments
    try:
        text = make_outputs(parse(files), [what])[what]
    except SpecError as error:
        sys.exit(str(error))
    path = Path(output)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
