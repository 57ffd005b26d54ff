# SPDX-License-Identifier: Apache-2.0
"""Emits the table of driver functions that the daemon uses, and the comparison of the description with cuda.h."""
import re

from model import emit_banner, emit_sets, is_forwarded
from words import CONSTANT

SOURCE = "codegen/api"


def get_functions(api):
    """Returns (name, True if the daemon requires it) of each driver function."""
    out = {f.name: f.required for f in api.driver}
    for call in api.wire_calls:
        if is_forwarded(call):
            out.setdefault(call.name, False)
    for kind in api.kinds:
        if kind.destroy:
            out.setdefault(kind.destroy, False)
    return list(out.items())


def functions_h(api):
    rows = "".join(f" \\\n\tX({name})" for name, _ in get_functions(api))
    return (emit_banner(SOURCE) + "#ifndef GPD_DRIVER_FUNCTIONS_H\n#define GPD_DRIVER_FUNCTIONS_H\n\n"
            "#include <cuda.h>\n#include <stdbool.h>\n#include <stdint.h>\n\n"
            f"#define GPD_DRIVER_FUNCTIONS(X){rows}\n\n{emit_sets(api, 'gpd_')}#endif /* GPD_DRIVER_FUNCTIONS_H */\n")


def functions_c(api):
    rows = "".join(f"\t{{ \"{name}\", offsetof(struct gpd_driver, {name}), {'true' if required else 'false'} }},\n"
                   for name, required in get_functions(api))
    return (emit_banner(SOURCE) + "#include \"server/worker/device/driver.h\"\n\n"
            "CUresult\ngpd_driver_unsupported(void)\n{\n\treturn CUDA_ERROR_NOT_SUPPORTED;\n}\n\n"
            "const struct gpd_driver_function gpd_driver_functions[] = {\n" + rows + "};\n\n"
            "const size_t gpd_driver_function_count = sizeof(gpd_driver_functions) / sizeof(gpd_driver_functions[0]);\n")


def get_constants(api):
    """Yields (call or type, line, constant) of each constant of cuda.h in the description."""
    for call in api.cuda_calls:
        texts = [(call.line, a) for a in call.options.values()] + [(p.line, a) for p in call.params for a in p.words.values()]
        yield from ((call, line, word) for line, text in texts for word in re.findall(rf"\b{CONSTANT}\b", text or ""))
    for t in api.types:
        names = [f[1] if isinstance(f, tuple) else f for f in t.fields]
        yield from ((t, t.line, name) for name in names if re.fullmatch(CONSTANT, name))


def emit_assertion(file, line, condition, message):
    return f"\n#line {line} \"codegen/{file}\"\n_Static_assert({condition},\n\"{message}\");\n"


def emit_type_comparison(one, other):
    return f"__builtin_types_compatible_p(__typeof__({one}), __typeof__({other}))"


def matches_c(api):
    """Returns C code that compiles if the description agrees with cuda.h: calls, aliases, enumerations and constants."""
    out = [emit_banner(SOURCE), "#define __CUDA_API_VERSION_INTERNAL\n#include <cuda.h>\n#include <cudaProfiler.h>\n\n"
           "#include \"codegen/api/vocabulary.h\"\n"]
    out += [f"#include \"codegen/{chapter}\"\n" for chapter in api.chapters]
    for call in api.cuda_calls:
        out += [emit_assertion(call.file, call.line, emit_type_comparison(name, call.name), f"ALIAS({name}): its signature differs from {call.name}")
                for name in call.names("ALIAS")]
    for t in api.types:
        if t.word == "ENUM":
            out.append(emit_assertion(t.file, t.line, f"sizeof({t.name}) == sizeof(int)", f"{t.name} is not an int"))
    out += [emit_assertion(of.file, line, f"sizeof(({name})) > 0", f"{name}") for of, line, name in get_constants(api)]
    return "".join(out)
