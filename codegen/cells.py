# SPDX-License-Identifier: Apache-2.0
"""Values as cells of 8 bytes, at both ends: what an element of an array or a field of a struct becomes."""
from types_table import LOOKUPS, cells, is_address, is_kernel, kind_of, opaque_size, struct_of, structs_in, types_named, wire_type


def ident(ctype):
    return ctype.replace(" ", "_")


def is_float(ctype):
    return (wire_type(ctype) or ("", ""))[1] == "f32"


def client_id(ctype, value, out):
    """The statement that sets result and *out to the name of a handle, a kernel or a device on the wire; None: neither."""
    if ctype == "CUdevice":
        return f"result = gpc_device_name(context, {value}, {out});"
    if is_kernel(ctype):
        return f"result = gpc_function_kernel(context, {value}, {out});"
    kind = kind_of(ctype)
    if not kind:
        return None
    if kind.is_object:
        return f"result = gpc_object_id(&context, GPC_KIND_{kind.constant}, {value}, {out});"
    return f"result = {LOOKUPS[kind.name].format(value=value, out=out)};"


def server_given(ctype, wire, out, span="1", works=False):
    """The expression that finds what a wire value names, checked; None: the value is what it is."""
    if ctype == "CUdevice":
        return f"gpd_given_device(session, (int32_t){wire}, {out})"
    if is_address(ctype):
        return f"gpd_given_address(session, {wire}, {span}, {out})"
    if is_kernel(ctype):
        return f"gpd_function_get(session, {wire}, {out})"
    kind = kind_of(ctype)
    if not kind:
        return None
    if kind.is_object:
        return f"gpd_given_object(session, GPD_KIND_{kind.constant}, (uint32_t){wire}, (void **){out})"
    if kind.name == "stream":
        return f"gpd_given_stream(session, (uint32_t){wire}, {'true' if works else 'false'}, {out})"
    return f"gpd_given_{kind.name}(session, (uint32_t){wire}, {out})"


def span_of(words, of):
    """How many bytes of device memory are given: SPAN's words, of these arguments or members."""
    sizes = [w if w.isdigit() else f"{of}{w}" for w in words]
    return sizes[0] if len(sizes) == 1 else f"gpd_span({', '.join(sizes + ['0', '1'][len(sizes) - 2:])})"


def id_type(ctype):
    return wire_type(ctype)[0]


def pack(ctype, value, cell, indent):
    """Client: statements that write a value into its cells and leave result."""
    t = "\t" * indent
    if struct_of(ctype):
        return f"{t}result = pack_{ident(ctype)}(&context, &{value}, &{cell});\n"
    if opaque_size(ctype):
        return f"{t}memcpy(&{cell}, &{value}, {opaque_size(ctype)});\n"
    named = client_id(ctype, value, "&id")
    if named:
        return f"{t}{{\n{t}\t{id_type(ctype)} id = 0;\n\n{t}\t{named}\n{t}\t{cell} = (uint64_t)id;\n{t}}}\n"
    if is_float(ctype):
        return f"{t}memcpy(&{cell}, &{value}, sizeof({value}));\n"
    return f"{t}{cell} = (uint64_t){value};\n"


def given(ctype, cell, value, indent, span="1"):
    """Server: statements that check cells and make the driver's value of them, and leave result."""
    t = "\t" * indent
    if struct_of(ctype):
        return f"{t}result = given_{ident(ctype)}(session, &{cell}, &{value});\n"
    if opaque_size(ctype):
        return f"{t}memcpy(&{value}, &{cell}, {opaque_size(ctype)});\n"
    named = server_given(ctype, cell, f"&{value}", span)
    if named:
        return f"{t}result = {named};\n"
    if is_float(ctype):
        return f"{t}memcpy(&{value}, &{cell}, sizeof({value}));\n"
    return f"{t}{value} = ({ctype}){cell};\n"


def told(ctype, value, cell, indent):
    """Server: statements that write what the driver gave."""
    t = "\t" * indent
    if struct_of(ctype):
        return f"{t}told_{ident(ctype)}(session, &{value}, &{cell});\n"
    if opaque_size(ctype):
        return f"{t}memcpy(&{cell}, &{value}, {opaque_size(ctype)});\n"
    if kind_of(ctype):
        return f"{t}{cell} = gpd_object_id(session, GPD_KIND_{kind_of(ctype).constant}, {value});\n"
    if ctype == "CUdevice":
        return f"{t}{cell} = (uint64_t)gpd_told_device({value});\n"
    if is_float(ctype):
        return f"{t}memcpy(&{cell}, &{value}, sizeof({value}));\n"
    return f"{t}{cell} = (uint64_t){value};\n"


def taken(ctype, cell, value, indent):
    """Client: the application's value of cells."""
    t = "\t" * indent
    if struct_of(ctype):
        return f"{t}take_{ident(ctype)}(context, &{cell}, &{value});\n"
    if opaque_size(ctype):
        return f"{t}memcpy(&{value}, &{cell}, {opaque_size(ctype)});\n"
    if kind_of(ctype):
        return f"{t}{value} = gpc_object_token(GPC_KIND_{kind_of(ctype).constant}, (uint32_t){cell});\n"
    if ctype == "CUdevice":
        return f"{t}{value} = gpc_device_ordinal(context, (int){cell});\n"
    if is_float(ctype):
        return f"{t}memcpy(&{value}, &{cell}, sizeof({value}));\n"
    return f"{t}{value} = ({ctype}){cell};\n"


def both(*tests):
    """All of these tests that there are, as one; "": there are none."""
    tests = [test for test in tests if test]
    return " && ".join(f"({test})" if len(tests) > 1 and " || " in test else test for test in tests)


def condition(struct, field, of):
    """When a member of a union is one: WHEN(tag, value, ...), and its tag is one; "": always."""
    when = field.checks.get("WHEN")
    if not when:
        return ""
    tag = next(f for f in struct.fields if f.name == when[0])
    return both(condition(struct, tag, of), " || ".join(f"{of}->{tag.name} == {value}" for value in when[1:]))


def members(struct, one, of, guard="", only=lambda f: True):
    """The statements of each member: one(member, path, first cell, indent)."""
    out, at, indent = [], 0, 1
    for f in struct.fields:
        width = cells(f.ctype)
        if not only(f):
            at += width * (f.count or 1)
            continue
        test = both(guard, condition(struct, f, of))
        t = "\t" * indent
        if test:
            out.append(f"{t}if ({test}) {{\n")
        inner = indent + bool(test)
        t = "\t" * inner
        if f.count:
            loop = "result == CUDA_SUCCESS && " if guard else ""
            out.append(f"{t}for (size_t i = 0; {loop}i < {f.count}; i++) {{\n"
                       + one(f, f"{f.name}[i]", f"cells[{at} + i * {width}]", inner + 1) + f"{t}}}\n")
        else:
            out.append(one(f, f.name, f"cells[{at}]", inner))
        if test:
            out.append("\t" * indent + "}\n")
        at += width * (f.count or 1)
    return "".join(out)


def checks(struct):
    """Statements that refuse what the description does not allow; the same at both ends."""
    out, tags = [], {}
    for f in struct.fields:
        if "ONE_OF" in f.checks:
            out.append((f, " && ".join(f"value->{f.name} != {v}" for v in f.checks["ONE_OF"])))
        if "UP_TO" in f.checks:
            out.append((f, f"value->{f.name} > {f.checks['UP_TO'][0]}"))
        if "WHEN" in f.checks:
            tag = tags.setdefault(f.checks["WHEN"][0], [])
            tag += [v for v in f.checks["WHEN"][1:] if v not in tag]
    for f in struct.fields:
        if f.name in tags and "ONE_OF" not in f.checks:
            out.append((f, " && ".join(f"value->{f.name} != {v}" for v in tags[f.name])))
    return "".join(f"\tif ({both(condition(struct, f, 'value'), test)})\n\t\treturn CUDA_ERROR_INVALID_VALUE;\n" for f, test in out)


def fits(struct):
    """Whether a struct is one that the description allows."""
    body = checks(struct) or "\t(void)value;\n"
    return (f"\n/* {struct.file}:{struct.line} */\nstatic CUresult\nfits_{ident(struct.name)}(const {struct.name} *value)\n{{\n"
            f"{body}\treturn CUDA_SUCCESS;\n}}\n")


def pack_struct(struct):
    name = ident(struct.name)
    body = members(struct, lambda f, path, cell, i: pack(f.ctype, f"value->{path}", cell, i), "value", "result == CUDA_SUCCESS")
    return fits(struct) + (
        f"\nstatic CUresult\npack_{name}(struct gpc_context **context_p, const {struct.name} *value, uint64_t *cells)\n{{\n"
        f"\tstruct gpc_context *context = *context_p;\n\tCUresult result = fits_{name}(value);\n\n{body}"
        "\t*context_p = context;\n\treturn result;\n}\n")


def given_struct(struct):
    name = ident(struct.name)
    # Device pointers come last: how far one reaches, other members say.
    one = lambda f, path, cell, i: given(f.ctype, cell, f"value->{path}", i, span_of(f.checks.get("SPAN", ["1"]), "value->"))  # noqa: E731
    body = "".join(members(struct, one, "value", "result == CUDA_SUCCESS", lambda f: is_address(f.ctype) == last) for last in (False, True))
    return fits(struct) + (
        f"\nstatic CUresult\ngiven_{name}(struct gpd_session *session, const uint64_t *cells, {struct.name} *value)\n{{\n"
        f"\tCUresult result = CUDA_SUCCESS;\n\n\tmemset(value, 0, sizeof(*value));\n{body}"
        f"\treturn result == CUDA_SUCCESS ? fits_{name}(value) : result;\n}}\n")


def told_struct(struct):
    name = ident(struct.name)
    body = members(struct, lambda f, path, cell, i: told(f.ctype, f"value->{path}", cell, i), "value")
    return (f"\nstatic void\ntold_{name}(struct gpd_session *session, const {struct.name} *value, uint64_t *cells)\n{{\n"
            f"\t(void)session;\n{body}}}\n")


def take_struct(struct):
    name = ident(struct.name)
    body = members(struct, lambda f, path, cell, i: taken(f.ctype, cell, f"value->{path}", i), "value")
    return (f"\nstatic void\ntake_{name}(struct gpc_context *context, const uint64_t *cells, {struct.name} *value)\n{{\n"
            f"\t(void)context;\n\tmemset(value, 0, sizeof(*value));\n{body}}}\n")


def structs_used(calls, directions):
    """Structs that these calls pass in one of the directions, each behind those that it is made of."""
    out = []
    for call in calls:
        for p in call.params:
            if p.direction in directions:
                out += [s for s in structs_in(p.ctype) if s not in out]
    return out


def tables_used(calls):
    return [t for t in types_named("ATTRIBUTES") if any(p.direction in ("IN_ATTRIBUTE", "OUT_ATTRIBUTE") and q.name == p.size
            and q.ctype == t.name for c in calls for p in c.params for q in c.params)]


def attribute_sizes(tables):
    """How many bytes the value of an attribute has; 0: it is none."""
    out = []
    for table in tables:
        cases = "".join(f"\tcase {name}:\n\t\treturn sizeof({ctype});\n" for ctype, name in table.fields)
        out.append(f"\n/* {table.file}:{table.line} */\nstatic size_t\nsize_of_{table.name}(int attribute)\n{{\n\tswitch (attribute) {{\n"
                   f"{cases}\tdefault:\n\t\treturn 0;\n\t}}\n}}\n")
    return "".join(out)


def cases(chain, how):
    return "".join(f"\t\tcase {name}:\n" for word, name in chain.fields if word == how)


def skipped(chain):
    return cases(chain, "HERE") + "\t\t\tcontinue;\n" if cases(chain, "HERE") else ""


def packs_options(chain):
    return (f"CUresult\ngpc_pack_{chain.name}(unsigned int count, const {chain.name} *options, void *const *values, "
            "struct gp_scratch *scratch, struct gp_bytes *bytes)")


def pack_options(chain):
    """Client: numbers of a chain to cells; what stays HERE is left out."""
    return (f"\n/* {chain.file}:{chain.line} */\n{packs_options(chain)}\n{{\n\tuint64_t *cells;\n\tsize_t at = 0;\n\n"
            "\t*bytes = (struct gp_bytes){ 0 };\n\tif (count == 0)\n\t\treturn CUDA_SUCCESS;\n"
            "\tif (!options || !values || count > 256)\n\t\treturn CUDA_ERROR_INVALID_VALUE;\n"
            "\tcells = gp_scratch_cells(scratch, count, 2);\n\tif (!cells)\n\t\treturn CUDA_ERROR_OUT_OF_MEMORY;\n"
            "\tfor (unsigned int i = 0; i < count; i++) {\n\t\tswitch ((int)options[i]) {\n" + skipped(chain) + cases(chain, "")
            + "\t\t\tbreak;\n\t\tdefault:\n\t\t\treturn CUDA_ERROR_NOT_SUPPORTED;\n\t\t}\n"
            "\t\tcells[at++] = (uint64_t)options[i];\n\t\tcells[at++] = (uint64_t)(uintptr_t)values[i];\n\t}\n"
            "\t*bytes = (struct gp_bytes){ cells, at * 8 };\n\treturn CUDA_SUCCESS;\n}\n")


def takes_options(chain):
    return (f"CUresult\ngpd_take_{chain.name}(struct gp_bytes bytes, {chain.name} *options, void **values, unsigned int room, "
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
