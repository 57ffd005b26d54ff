# SPDX-License-Identifier: Apache-2.0
"""The driver's functions that the daemon uses, and the comparison of the description with cuda.h."""
from model import generated, travels_as_it_is

SOURCE = "codegen/api"


def functions(api):
    """(name, whether the daemon refuses a driver without it)."""
    out = {f.name: f.required for f in api.driver}
    for call in api.wire_calls:
        if travels_as_it_is(call):
            out.setdefault(call.name, False)
    for kind in api.kinds:
        if kind.destroy:
            out.setdefault(kind.destroy, False)
    return list(out.items())


def functions_h(api):
    rows = "".join(f" \\\n\tX({name})" for name, _ in functions(api))
    return (generated(SOURCE) + "#ifndef GPD_DRIVER_FUNCTIONS_H\n#define GPD_DRIVER_FUNCTIONS_H\n\n"
            f"#define GPD_DRIVER_FUNCTIONS(X){rows}\n\n#endif /* GPD_DRIVER_FUNCTIONS_H */\n")


def functions_c(api):
    rows = "".join(f"\t{{ \"{name}\", offsetof(struct gpd_driver, {name}), {'true' if required else 'false'} }},\n"
                   for name, required in functions(api))
    return (generated(SOURCE) + "#include \"server/worker/device/driver.h\"\n\n"
            "CUresult\ngpd_driver_lacks(void)\n{\n\treturn CUDA_ERROR_NOT_SUPPORTED;\n}\n\n"
            "const struct gpd_driver_function gpd_driver_functions[] = {\n" + rows + "};\n\n"
            "const size_t gpd_driver_function_count = sizeof(gpd_driver_functions) / sizeof(gpd_driver_functions[0]);\n")


def matches_c(api):
    """Compiles if the toolkit's cuda.h says the same of every call, and of each of its other names."""
    out = [generated(SOURCE), "#define __CUDA_API_VERSION_INTERNAL\n#include <cuda.h>\n#include <cudaProfiler.h>\n\n"
           "#include \"codegen/api/vocabulary.h\"\n"]
    out += [f"#include \"codegen/{chapter}\"\n" for chapter in api.chapters]
    for call in api.cuda_calls:
        for name in call.names("ALIAS"):
            out.append(f"\n#line {call.line} \"codegen/{call.file}\"\n_Static_assert(__builtin_types_compatible_p(__typeof__({name}), "
                       f"__typeof__({call.name})),\n\"ALIAS({name}): its signature is not that of {call.name}\");\n")
    return "".join(out)
