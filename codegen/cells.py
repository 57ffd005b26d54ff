# SPDX-License-Identifier: Apache-2.0
"""Values as cells of 8 bytes, at both ends: what an element of an array becomes; and chains of options."""
from types_table import LOOKUPS, is_kernel, kind_of, wire_type


def is_float(ctype):
    return (wire_type(ctype) or ("", ""))[1] == "f32"


def client_id(ctype, value, out):
    """The statement that sets result and *out to the name of a handle, a kernel or a device on the wire; None: neither."""
    if ctype == "CUdevice":
        return f"result = gpc_device_to_wire(context, {value}, {out});"
    if is_kernel(ctype):
        return f"result = gpc_function_to_wire(context, {value}, {out});"
    kind = kind_of(ctype)
    if not kind:
        return None
    if kind.is_object:
        return f"result = gpc_object_to_wire(&context, GPC_KIND_{kind.constant}, {value}, {out});"
    return f"result = {LOOKUPS[kind.name].format(value=value, out=out)};"


def server_given(ctype, wire, out, works=False):
    """The expression that finds what a wire value names, checked; None: the value is what it is."""
    if ctype == "CUdevice":
        return f"gpd_arg_decode_device(session, (int32_t){wire}, {out})"
    if is_kernel(ctype):
        return f"gpd_function_get(session, {wire}, {out})"
    kind = kind_of(ctype)
    if not kind:
        return None
    if kind.is_object:
        return f"gpd_arg_decode_object(session, GPD_KIND_{kind.constant}, (uint32_t){wire}, (void **){out})"
    if kind.name == "stream":
        return f"gpd_arg_decode_stream(session, (uint32_t){wire}, {'true' if works else 'false'}, {out})"
    return f"gpd_arg_decode_{kind.name}(session, (uint32_t){wire}, {out})"


def id_type(ctype):
    return wire_type(ctype)[0]


def pack(ctype, value, cell, indent):
    """Client: statements that write a value into its cell and leave result."""
    t = "\t" * indent
    named = client_id(ctype, value, "&id")
    if named:
        return f"{t}{{\n{t}\t{id_type(ctype)} id = 0;\n\n{t}\t{named}\n{t}\t{cell} = (uint64_t)id;\n{t}}}\n"
    if is_float(ctype):
        return f"{t}memcpy(&{cell}, &{value}, sizeof({value}));\n"
    return f"{t}{cell} = (uint64_t){value};\n"


def given(ctype, cell, value, indent):
    """Server: statements that check a cell and make the driver's value of it, and leave result."""
    t = "\t" * indent
    named = server_given(ctype, cell, f"&{value}")
    if named:
        return f"{t}result = {named};\n"
    if is_float(ctype):
        return f"{t}memcpy(&{value}, &{cell}, sizeof({value}));\n"
    return f"{t}{value} = ({ctype}){cell};\n"


def told(ctype, value, cell, indent):
    """Server: statements that write what the driver gave."""
    t = "\t" * indent
    if kind_of(ctype):
        return f"{t}{cell} = gpd_object_id(session, GPD_KIND_{kind_of(ctype).constant}, {value});\n"
    if ctype == "CUdevice":
        return f"{t}{cell} = (uint64_t)gpd_device_to_wire({value});\n"
    if is_float(ctype):
        return f"{t}memcpy(&{cell}, &{value}, sizeof({value}));\n"
    return f"{t}{cell} = (uint64_t){value};\n"


def taken(ctype, cell, value, indent):
    """Client: the application's value of a cell."""
    t = "\t" * indent
    if kind_of(ctype):
        return f"{t}{value} = gpc_object_from_wire(GPC_KIND_{kind_of(ctype).constant}, (uint32_t){cell});\n"
    if ctype == "CUdevice":
        return f"{t}{value} = gpc_device_from_wire(context, (int){cell});\n"
    if is_float(ctype):
        return f"{t}memcpy(&{value}, &{cell}, sizeof({value}));\n"
    return f"{t}{value} = ({ctype}){cell};\n"


def cases(chain, how):
    return "".join(f"\t\tcase {name}:\n" for word, name in chain.fields if word == how)


def skipped(chain):
    return cases(chain, "HERE") + "\t\t\tcontinue;\n" if cases(chain, "HERE") else ""


def packs_options(chain):
    return (f"CUresult\ngpc_options_encode_{chain.name}(unsigned int count, const {chain.name} *options, void *const *values, "
            "struct gp_scratch *scratch, struct gp_bytes *bytes)")


def pack_options(chain):
    """Client: numbers of a chain to cells; what stays HERE is left out."""
    return (f"\n/* {chain.file}:{chain.line} */\n{packs_options(chain)}\n{{\n\tuint64_t *cells;\n\tsize_t at = 0;\n\n"
            "\t*bytes = (struct gp_bytes){ 0 };\n\tif (count == 0)\n\t\treturn CUDA_SUCCESS;\n"
            "\tif (!options || !values || count > 256)\n\t\treturn CUDA_ERROR_INVALID_VALUE;\n"
            "\tcells = gp_scratch_alloc_cells(scratch, count, 2);\n\tif (!cells)\n\t\treturn CUDA_ERROR_OUT_OF_MEMORY;\n"
            "\tfor (unsigned int i = 0; i < count; i++) {\n\t\tswitch ((int)options[i]) {\n" + skipped(chain) + cases(chain, "")
            + "\t\t\tbreak;\n\t\tdefault:\n\t\t\treturn CUDA_ERROR_NOT_SUPPORTED;\n\t\t}\n"
            "\t\tcells[at++] = (uint64_t)options[i];\n\t\tcells[at++] = (uint64_t)(uintptr_t)values[i];\n\t}\n"
            "\t*bytes = (struct gp_bytes){ cells, at * 8 };\n\treturn CUDA_SUCCESS;\n}\n")


def takes_options(chain):
    return (f"CUresult\ngpd_options_decode_{chain.name}(struct gp_bytes bytes, {chain.name} *options, void **values, unsigned int room, "
            "unsigned int *count_p)")


def take_options(chain):
    """Server: the same back, no more than there is room for."""
    return (f"\n/* {chain.file}:{chain.line} */\n{takes_options(chain)}\n{{\n\tunsigned int count = 0;\n\n"
            "\tif (bytes.size % 16)\n\t\treturn CUDA_ERROR_INVALID_VALUE;\n"
            "\tfor (size_t at = 0; at < bytes.size; at += 16) {\n\t\tuint64_t cells[2];\n\n"
            "\t\tmemcpy(cells, (const uint8_t *)bytes.data + at, sizeof(cells));\n\t\tswitch (cells[0]) {\n" + skipped(chain) + cases(chain, "")
            + "\t\t\tbreak;\n\t\tdefault:\n\t\t\treturn CUDA_ERROR_NOT_SUPPORTED;\n\t\t}\n"
            "\t\tif (count >= room)\n\t\t\treturn CUDA_ERROR_INVALID_VALUE;\n"
            f"\t\toptions[count] = ({chain.name})cells[0];\n\t\tvalues[count++] = (void *)(uintptr_t)cells[1];\n\t}}\n"
            "\t*count_p = count;\n\treturn CUDA_SUCCESS;\n}\n")
