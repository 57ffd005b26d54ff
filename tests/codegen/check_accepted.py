# SPDX-License-Identifier: Apache-2.0
"""check_accepted.py CODEGEN CC CUDA_INCLUDE: accepted descriptions compile, and others are refused with their line.

Calls: each word before each type, in each kind of call; those that are accepted are compiled together.
Changed text: the examples of codegen/README.md and of the golden files with words dropped, doubled and exchanged, or cut off."""
import itertools
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

codegen, cc, include = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
sys.path.insert(0, str(codegen))
from check import check, check_call  # noqa: E402
from gpgen import make_outputs  # noqa: E402
from model import format_prototype  # noqa: E402
from parse import Api, SpecError, parse_text  # noqa: E402
import types_table  # noqa: E402
import words  # noqa: E402

CHANGES = 500            # of the text
COMPILED = 600, 5        # calls (and all with names) and changes, of those that are accepted
FLAGS = ["-fsyntax-only", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wno-unused-parameter", "-Wno-unused-function"]
KINDS = (codegen / "api/kinds.h").read_text()
README = "\n".join(re.findall(r"```c\n(.*?)```", (codegen / "README.md").read_text(), re.S))
SAMPLE = (codegen.parent / "tests/codegen/golden/sample.h").read_text()

FORMS = ["GP_CALL(0x{number:x}, WAIT{words}) CUresult cu{name}", "GP_CALL(0x{number:x}, POST{words}) CUresult cu{name}",
         "GP_CALL(0x{number:x}, WAIT, CLIENT_HOOK{words}) CUresult cu{name}", "GP_CALL(0x{number:x}, WAIT, SERVER_HOOK{words}) CUresult cu{name}",
         "GP_CALL(0x{number:x}, POST, CLIENT_HOOK, SERVER_HOOK{words}) CUresult cu{name}",
         "GP_MESSAGE(0x{number:x}, WAIT, SERVER_HOOK{words}) void gp{name}", "GP_MESSAGE(0x{number:x}, POST, SERVER_HOOK{words}) void gp{name}",
         "GP_LOCAL(CLIENT_OBJECT(active){words}) CUresult cu{name}", "GP_LOCAL(CLIENT_OBJECT(active), RETURNS(CUDA_ERROR_NOT_SUPPORTED){words}) CUresult cu{name}"]
OPTIONS = ["", "CHARGES_NOTHING, CAPTURE(unaffected)", "CHARGES_NOTHING", "LAUNCHES, CAPTURE(unaffected)", "LAUNCHES, CAPTURE(refused)", "COPIES(n)",
           "ALLOCATES(n)", "BULK_IN, NO_DTOH_WAIT", "BULK_OUT", "BARRIER(flags)", "CHARGES_NOTHING, AWAITS_STREAM", "FREES(BY_HOOK)"]
DIRECTIONS = ["", "IN", "IN_N(n)", "IN_N(3)", "IN_BYTES(n)", "IN_BYTES(8)", "IN_BYTES(BY_HOOK)", "IN_STRING", "IN_OPTIONS(n, v)",
              "OUT", "OUT_N(n)", "OUT_N(3)", "OUT_BYTES(n)", "OUT_BYTES(8)", "OUT_BYTES(BY_HOOK)", "INOUT", "BY_HOOK"]
QUALIFIERS = ["", "OPT", "NEW", "STATIC", "DROP", "NEW OPT"]
LOCAL_QUALIFIERS = ["FIELD(flags)", "COMPUTE(sample_answer, n, -1)", "FIXED(-1)", "STORE(flags)", "WITHIN(-1, 5)", "OPT FIXED(7)"]
TYPES = ["void", "char", "int", "unsigned int", "unsigned short", "size_t", "float", "CUdevice", "CUdeviceptr", "CUstream", "CUevent", "CUcontext",
         "CUfunction", "CUkernel", "CUmodule", "CUlinkState", "CUgraph", "CUgraphNode", "CUarray_format", "CUuuid", "CUjit_option",
         "gp_address", "gp_new_address", "gp_context", "gp_kernel", "gp_image"]
POOL = sorted(words.DIRECTIONS | words.QUALIFIERS | words.OPTIONS | words.KIND_WORDS | words.CLIENT_OBJECT_OPTIONS) + TYPES + list("(),;*[]-+#\"\\") + [
    "0", "-1", "9", "count", "result", "x", "\x00", "é", "GP_CALL", "GP_ENUM", "/*"]
# Parameters that the words above name.
NAMED = {"n": "size_t n", "v": "BY_HOOK void **v", "flags": "unsigned int flags"}


def call(number, form, direction, ctype, qualifier="", options="", name="x", more=()):
    """The text of one call with this parameter, and those that its words name."""
    const = "const " if direction.startswith("IN_") and not qualifier else ""
    text = f"{direction} {qualifier} {const}{ctype} {'*' if direction else ''}{name}"
    called = set(re.findall(r"[(,] ?(\w+)(?=[,)])", f"{direction} {qualifier} {options}"))
    params = [text] + [NAMED[name] for name in NAMED if name in called] + list(more)
    return f"{form.format(number=number, name=f'Sample{number}', words=options and ', ' + options)}(\n{','.join(params)});\n"


def every_call():
    """What call() is given."""
    for form, direction, ctype, more in itertools.product(FORMS, DIRECTIONS, TYPES, ([], ["CUgraph graph", "int device"])):
        yield form, direction, ctype, "", "", "x", more
    for form, direction, ctype, qualifier in itertools.product(FORMS, DIRECTIONS, ("int", "CUlinkState", "CUdeviceptr", "gp_image"), QUALIFIERS):
        yield form, direction, ctype, qualifier
    for form, direction, qualifier in itertools.product(FORMS, DIRECTIONS, LOCAL_QUALIFIERS):
        yield form, direction, "int", qualifier
    for form, direction, ctype, options in itertools.product(FORMS, DIRECTIONS[:3], ("CUstream", "CUevent", "int"), OPTIONS):
        yield form, direction, ctype, "", options, "x", ["int device"]


def every_name(names):
    """The same of parameters with the names that generated code has for its own things."""
    forms = ((FORMS[0], "CAPTURE(unsafe)"), (FORMS[5], ""), (FORMS[7], "CAPTURE(unsafe)"))
    lists = (("", "int"), ("IN_N(n)", "int"), ("OUT_N(n)", "int"), ("OUT_BYTES(n)", "void"))
    for (form, options), (direction, ctype), name in itertools.product(forms, lists, names):
        yield form, direction, ctype, "", options, name


def refusal(do):
    """The generator's error; None: it is accepted.  Anything but a line with its file is a failure."""
    try:
        do()
    except SpecError as error:
        assert re.fullmatch(r"sample\.h:\d+: \S[^\n]*", str(error)), error
        return str(error)


def described(text):
    api = Api()
    parse_text(api, KINDS, "api/kinds.h")
    parse_text(api, text, "sample.h")
    return api


def with_symbols(text):
    """All that is made of it when each call is exported, twice."""
    names = [c.name for c in described(text).cuda_calls] + ["cuLinkDestroy", "cuGraphicsUnregisterResource"]
    return make_outputs(described(text + "".join(f"GP_SYMBOL({n}, {n}, 12000)\nGP_SYMBOL_PTSZ({n}_ptsz, {n}, 12000)\n" for n in names)))


def compiled(folder, names, prelude=""):
    """The compiler's errors for these files."""
    (folder / "prelude.h").write_text("#pragma once\n#include <stdbool.h>\n#include <cuda.h>\n" + prelude)
    run = subprocess.run([cc, *FLAGS, "-include", folder / "prelude.h", "-I", folder, "-I", codegen.parent, "-isystem", include,
                          *(folder / name for name in names)], capture_output=True, text=True)
    return run.stderr if run.returncode else ""


def compiled_ends(text, outputs, prelude=None):
    """The compiler's errors for both ends; none if it already reports that the description differs from cuda.h."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "codegen").mkdir()
        for name, made_text in {**outputs, "codegen/sample.h": text}.items():
            (folder / name).write_text(made_text)
        if prelude is None and compiled(folder, ["api_matches_cuda_h.c"]):
            return ""
        return compiled(folder, [name for name in outputs if re.match(r"gp[cd]?_(?!entry|proc).*\.c$", name)], prelude or "")


def accepted_call(number, *case):
    """The text of the call; None: it is refused."""
    text, api = call(number, *case), Api()
    return None if refusal(lambda: (parse_text(api, text, "sample.h"), check_call(api.calls[0]))) else text


def check_calls():
    """Calls of all combinations of words: those that are accepted compile."""
    names = set(re.findall(r"^\t+(?:const )?(?:struct )?\w+ \**(\w+)(?: = [^\n]*)?;$", "".join(with_symbols(README).values()), re.M))
    types_table.load_types(check(described(README)))
    named = list(every_name(sorted(names | {"free", "errno", "int", "CUdevice", "memcpy"})))
    cases = [*every_call()]
    texts = [accepted_call(number, *case) for number, case in enumerate(named + cases, 1)]
    print(f"# {len(texts)} calls, {len(texts) - texts.count(None)} accepted")
    others = [text for text in texts[len(named):] if text]
    assert len(others) > 2000
    texts = [text for text in texts[:len(named)] if text] + random.Random(1).sample(others, COMPILED[0])
    text = README + "".join(texts)
    api, outputs = described(text), with_symbols(text)
    return compiled_ends("", outputs, "struct gpc_context;\nint sample_answer(struct gpc_context *found, size_t n, int m);\n"
                    + "".join(format_prototype(c, "") + ";\n" for c in api.cuda_calls if c.name.startswith("cuSample")))


def changed(rng, token):
    """Something else in the place of a word, or beside it."""
    other = rng.choice(POOL)
    return rng.choice(["", f"{token} {token}", other, f"{other} {token}", f"{token} {other}"])


def check_changes():
    """Changed text: each is refused with its line, or compiles, or differs from cuda.h."""
    rng, accepted, errors = random.Random(1), [], ""
    texts = [re.sub(r"/\*.*?\*/", "", text, flags=re.S) for text in (README, SAMPLE)]
    places = [[m.span() for m in re.finditer(r"\"[^\"]*\"|\w+|[^\w\s]", text)] for text in texts]
    for number in range(CHANGES):
        text, (start, end) = texts[number % 2], rng.choice(places[number % 2])
        new = text[:start] + f" {changed(rng, text[start:end])} " + (text[end:] if rng.random() < 0.9 else "")
        outputs = {}
        if not refusal(lambda: outputs.update(make_outputs(described(new)))) and text is texts[0]:
            outputs.pop("gpc_local.c")
            accepted.append((text[start:end] in POOL, new[max(start - 80, 0):end + 80], new, outputs))
    print(f"# {CHANGES} changes, {len(accepted)} of the example accepted")
    assert accepted
    # Only the compiler reads parts written by hand: their names are not changed, and answers, which use their members, are left out.
    ours = [case for case in accepted if case[0]]
    for _, near, new, outputs in rng.sample(ours, min(COMPILED[1], len(ours))):
        said = compiled_ends(new, outputs)
        errors += said and f"{near}\n{said}"
    return errors


if __name__ == "__main__":
    results = [(check_calls.__doc__, check_calls()), (check_changes.__doc__, check_changes())]
    for number, (what, errors) in enumerate(results, 1):
        print("".join(f"# {line}\n" for line in errors.splitlines()[:60]), end="")
        print(f"{'not ' if errors else ''}ok {number} - {what}")
    print(f"1..{len(results)}")
    sys.exit(any(errors for _, errors in results))
