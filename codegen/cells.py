# SPDX-License-Identifier: Apache-2.0
"""C code of both ends that encodes and decodes cells, the 8-byte elements of lists and of options."""
from types_table import LOOKUPS, get_kind, get_wire_type, is_kernel


def is_float(ctype):
    return (get_wire_type(ctype) or ("", ""))[1] == "f32"


def emit_client_id(ctype, value, out):
    """Returns the statement that sets result, and *out to the wire value of a handle, kernel or device; None for all other types."""
    if ctype == "CUdevice":
        return f"result = gpc_device_to_wire(context, {value}, {out});"
    if is_kernel(ctype):
        return f"result = gpc_function_to_wire(context, {value}, {out});"
    kind = get_kind(ctype)
    if not kind:
        return None
    if kind.is_object:
        return f"result = gpc_object_to_wire(&context, GPC_KIND_{kind.constant}, {value}, {out});"
    return f"result = {LOOKUPS[kind.name].format(value=value, out=out)};"


def emit_arg_decode(ctype, wire, out, works=False):
    """Returns the expression that checks a wire value and decodes it to *out; None if the value is used unchanged."""
    if ctype == "CUdevice":
        return f"gpd_arg_decode_device(session, (int32_t){wire}, {out})"
    if is_kernel(ctype):
        return f"gpd_function_get(session, {wire}, {out})"
    kind = get_kind(ctype)
    if not kind:
        return None
    if kind.is_object:
        return f"gpd_arg_decode_object(session, GPD_KIND_{kind.constant}, (uint32_t){wire}, (void **){out})"
    if kind.name == "stream":
        return f"gpd_arg_decode_stream(session, (uint32_t){wire}, {'true' if works else 'false'}, {out})"
    return f"gpd_arg_decode_{kind.name}(session, (uint32_t){wire}, {out})"


def emit_number_encode(ctype, value, cell, indent):
    """Encodes a number, which both ends have unchanged, into its cell."""
    return "\t" * indent + (f"memcpy(&{cell}, &{value}, sizeof({value}));\n" if is_float(ctype) else f"{cell} = (uint64_t){value};\n")


def emit_number_decode(ctype, cell, value, indent):
    return "\t" * indent + (f"memcpy(&{value}, &{cell}, sizeof({value}));\n" if is_float(ctype) else f"{value} = ({ctype}){cell};\n")


def emit_cell_encode(ctype, value, cell, indent):
    """Client: encodes an argument into its cell, and sets result."""
    t = "\t" * indent
    named = emit_client_id(ctype, value, "&id")
    if named:
        return f"{t}{{\n{t}\t{get_wire_type(ctype)[0]} id = 0;\n\n{t}\t{named}\n{t}\t{cell} = (uint64_t)id;\n{t}}}\n"
    return emit_number_encode(ctype, value, cell, indent)


def emit_cell_decode(ctype, cell, value, indent):
    """Server: statements that check a cell and make the driver's value of it, and leave result."""
    named = emit_arg_decode(ctype, cell, f"&{value}")
    if named:
        return "\t" * indent + f"result = {named};\n"
    return emit_number_decode(ctype, cell, value, indent)


def emit_reply_cell_encode(ctype, value, cell, indent):
    """Server: encodes a value of the driver into its cell."""
    t = "\t" * indent
    if get_kind(ctype):
        return f"{t}{cell} = gpd_object_id(session, GPD_KIND_{get_kind(ctype).constant}, {value});\n"
    if ctype == "CUdevice":
        return f"{t}{cell} = (uint64_t)gpd_device_to_wire({value});\n"
    return emit_number_encode(ctype, value, cell, indent)


def emit_reply_cell_decode(ctype, cell, value, indent):
    """Client: decodes a cell of the reply for the application."""
    t = "\t" * indent
    if get_kind(ctype):
        return f"{t}{value} = gpc_object_from_wire(GPC_KIND_{get_kind(ctype).constant}, (uint32_t){cell});\n"
    if ctype == "CUdevice":
        return f"{t}{value} = gpc_device_from_wire(context, (int){cell});\n"
    return emit_number_decode(ctype, cell, value, indent)


def emit_cases(chain, how):
    return "".join(f"\t\tcase {name}:\n" for word, name in chain.fields if word == how)


def emit_skipped_cases(chain):
    return emit_cases(chain, "CLIENT_ONLY") + "\t\t\tcontinue;\n" if emit_cases(chain, "CLIENT_ONLY") else ""


def format_options_encode(chain):
    return (f"CUresult\ngpc_options_encode_{chain.name}(unsigned int count, const {chain.name} *options, void *const *values, "
            "struct gp_scratch *scratch, struct gp_bytes *bytes)")


def emit_options_encode(chain):
    """Client: encodes options into cells, without the options that are CLIENT_ONLY."""
    return (f"\n/* {chain.file}:{chain.line} */\n{format_options_encode(chain)}\n{{\n\tuint64_t *cells;\n\tsize_t at = 0;\n\n"
            "\t*bytes = (struct gp_bytes){ 0 };\n\tif (count == 0)\n\t\treturn CUDA_SUCCESS;\n"
            "\tif (!options || !values || count > 256)\n\t\treturn CUDA_ERROR_INVALID_VALUE;\n"
            "\tcells = gp_scratch_alloc_cells(scratch, count, 2);\n\tif (!cells)\n\t\treturn CUDA_ERROR_OUT_OF_MEMORY;\n"
            "\tfor (unsigned int i = 0; i < count; i++) {\n\t\tswitch ((int)options[i]) {\n" + emit_skipped_cases(chain) + emit_cases(chain, "")
            + "\t\t\tbreak;\n\t\tdefault:\n\t\t\treturn CUDA_ERROR_NOT_SUPPORTED;\n\t\t}\n"
            "\t\tcells[at++] = (uint64_t)options[i];\n\t\tcells[at++] = (uint64_t)(uintptr_t)values[i];\n\t}\n"
            "\t*bytes = (struct gp_bytes){ cells, at * 8 };\n\treturn CUDA_SUCCESS;\n}\n")


def format_options_decode(chain):
    return (f"CUresult\ngpd_options_decode_{chain.name}(struct gp_bytes bytes, {chain.name} *options, void **values, unsigned int capacity, "
            "unsigned int *count_p)")


def emit_options_decode(chain):
    """Server: decodes cells into options, and fails if the arrays have no room."""
    return (f"\n/* {chain.file}:{chain.line} */\n{format_options_decode(chain)}\n{{\n\tunsigned int count = 0;\n\n"
            "\tif (bytes.size % 16)\n\t\treturn CUDA_ERROR_INVALID_VALUE;\n"
            "\tfor (size_t at = 0; at < bytes.size; at += 16) {\n\t\tuint64_t cells[2];\n\n"
            "\t\tmemcpy(cells, (const uint8_t *)bytes.data + at, sizeof(cells));\n\t\tswitch (cells[0]) {\n" + emit_skipped_cases(chain) + emit_cases(chain, "")
            + "\t\t\tbreak;\n\t\tdefault:\n\t\t\treturn CUDA_ERROR_NOT_SUPPORTED;\n\t\t}\n"
            "\t\tif (count >= capacity)\n\t\t\treturn CUDA_ERROR_INVALID_VALUE;\n"
            f"\t\toptions[count] = ({chain.name})cells[0];\n\t\tvalues[count++] = (void *)(uintptr_t)cells[1];\n\t}}\n"
            "\t*count_p = count;\n\treturn CUDA_SUCCESS;\n}\n")
