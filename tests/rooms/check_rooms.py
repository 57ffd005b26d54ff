# SPDX-License-Identifier: Apache-2.0
"""check_rooms.py ROOMS_PY CC...: the output of scripts/rooms.py for small trees of two rooms."""
import json
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

rooms, compiler = sys.argv[1], sys.argv[2:]

RULES = """
room low:
room high: low
circle 2
"""
TREE = {
    "low/list.h": """
        typedef void low_done(int r);
        struct low_hooks {
            low_done *first;
            void (*on_end)(int r);
        };
        int low_list(void);
        #define LOCKED(lock)
        int low_locked(int *lock) LOCKED(*lock);
        void low_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
        void low_call(void (*done)(int r));
        void low_call_named(low_done *done);""",
    "low/list.c": """
        #include "list.h"
        typedef long long low_wide __attribute__((vector_size(16)));
        int low_list(void) { return 0; }
        int low_locked(int *lock) { return *lock; }
        void low_say(const char *format, ...) { }
        void low_call(void (*done)(int r)) { done(0); }
        void low_call_named(low_done *done) { done(0); }""",
    "high/use.h": "int high_use(void);",
    "high/use.c": """
        #include "high/use.h"
        #include "low/list.h"
        int high_use(void) { int lock = 0; low_say("%d", 1); return low_list() + low_locked(&lock); }""",
}
DONE = TREE["high/use.c"] + "\nstatic void done(int r) { }"
RING = {f"low/ring_{a}.c": f"int ring_{b}(void); int ring_{a}(void) {{ return ring_{b}(); }}"
        for a, b in ["12", "23", "31"]}
GIVEN = "low/list.c -> high/use.c: callback given "

# Title: (changed files, rules added to the tree's, expected output).
CASES = {
    "a room uses the one below": ({}, "", []),
    "an include upwards": (
        {"low/list.c": TREE["low/list.c"] + '\n#include "high/use.h"'}, "",
        ["low/list.c -> high/use.h: #include"]),
    "an include upwards, as seen from the file": (
        {"low/list.c": TREE["low/list.c"] + '\n#include "../high/use.h"'}, "",
        ["low/list.c -> high/use.h: #include"]),
    "an include upwards, between angle brackets": (
        {"low/list.c": TREE["low/list.c"] + '\n#include <high/use.h>'}, "",
        ["low/list.c -> high/use.h: #include"]),
    "an include with a macro as the name": (
        {"low/list.c": TREE["low/list.c"] + '\n#define USE "high/use.h"\n#include USE'}, "",
        ["low/list.c: #include USE: what that is is not seen"]),
    "an include of a file that is not a header": (
        {"high/use.text": "", "low/list.c": TREE["low/list.c"] + '\n#include "high/use.text"'}, "",
        ["low/list.c -> high/use.text: #include"]),
    "an include upwards, out of a file that is not a header": (
        {"low/part.inc": '#include "high/use.h"', "low/list.c": TREE["low/list.c"] + '\n#include "low/part.inc"'}, "",
        ["low/part.inc -> high/use.h: #include"]),
    "an include out of the rooms": (
        {"tests/all.h": "", "low/list.c": TREE["low/list.c"] + '\n#include "../tests/all.h"'}, "",
        ["low/list.c -> tests/all.h: #include"]),
    "a symbol upwards": (
        {"low/up.c": "int high_use(void); int low_up(void) { return high_use(); }"}, "",
        ["low/up.c -> high/use.c: high_use"]),
    "a symbol upwards, out of a generated file": (
        {"build/made.c": "int high_use(void); int low_up(void) { return high_use(); }"}, "generated made.c low",
        ["made.c -> high/use.c: high_use"]),
    "a weak symbol upwards": (
        {"low/up.c": "int high_use(void) __attribute__((weak)); int low_up(void) { return high_use ? high_use() : 0; }"},
        "", ["low/up.c -> high/use.c: high_use"]),
    "a weak symbol whose place another takes": (
        {"low/up.c": "int __attribute__((weak)) low_up(void) { return 0; }"}, "",
        ["low/up.c: low_up is weak: who takes its place is not seen"]),
    "a symbol upwards, out of a file in assembler": (
        {"low/up.S": ".globl low_up\nlow_up: jmp high_use"}, "", ["low/up.S -> high/use.c: high_use"]),
    "a callback as a parameter": (
        {"high/use.c": DONE + "void high_call(void) { low_call(done); }"}, "", [GIVEN + "to low_call()"]),
    "a callback as a parameter of a named type": (
        {"high/use.c": DONE + "void high_call(void) { low_call_named(done); }"}, "", [GIVEN + "to low_call_named()"]),
    "a callback as a member": (
        {"high/use.c": DONE + "struct low_hooks hooks = { .on_end = done };"}, "",
        [GIVEN + 'as "on_end" of low/list.h']),
    "a member of the same name that is not a callback": (
        {"high/use.c": TREE["high/use.c"] + "struct { int on_end; } mine; void high_set(void) { mine.on_end = 1; }"},
        "", []),
    "a callback as a member of a named type": (
        {"high/use.c": DONE + "struct low_hooks hooks = { .first = done };"}, "",
        [GIVEN + 'as "first" of low/list.h']),
    "a callback that the rules name": (
        {"high/use.c": DONE + "void high_call(void) { low_call(done); }"},
        "callback low/list.c -> high/use.c: who waits", []),
    "a callback that the rules name for all": (
        {"high/use.c": DONE + "void high_call(void) { low_call(done); }"}, "callback low/list.c -> *: who waits", []),
    "a callback without a file that gives it": (
        {}, "callback low/list.c -> *: who waits", ["scripts/rooms.txt: low/list.c is given no callback by *"]),
    "a circle that is too large": (
        RING, "", ["a circle of 3 files: low/ring_1.c low/ring_2.c low/ring_3.c"]),
    "a circle that a callback closes": (
        {"high/use.c": DONE + "void high_call(void) { low_call(done); }"}, "circle 1",
        [GIVEN + "to low_call()", "a circle of 2 files: high/use.c low/list.c"]),
    "an unknown word": ({}, "rom low", ['scripts/rooms.txt:5: "rom" is not understood here']),
    "a tree that has not been built": (
        {"build/compile_commands.json": "[]"}, "", ["build has no objects of the rooms"]),
    "a room that is not declared": (
        {}, "room top: middle", ['scripts/rooms.txt: there is no room "middle"']),
}


def build(root, files):
    """Writes the files and compiles them into root/build."""
    commands = []
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(textwrap.dedent(text) + "\n")
    for path in files:
        if path.endswith((".c", ".S")):
            output = path.replace("/", "_") + ".o"
            subprocess.run([*compiler, "-w", "-I", root, "-c", root / path, "-o", root / "build" / output], check=True)
            commands.append({"directory": str(root / "build"), "file": f"../{path}", "output": output})
    if "build/compile_commands.json" not in files:
        (root / "build/compile_commands.json").write_text(json.dumps(commands))


def check(changed, rule):
    """The output of rooms.py for the tree with this change."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        (root / "build").mkdir()
        build(root, TREE | changed | {"scripts/rooms.txt": RULES.lstrip() + "\n" + rule})
        run = subprocess.run([sys.executable, rooms, "--root", root, root / "build"],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return run.returncode, run.stdout.replace(f"{root}/", "").splitlines()


failed = 0
for number, (name, (changed, rule, wanted)) in enumerate(CASES.items(), 1):
    good = (1, wanted) if wanted else (0, ["rooms: every arrow is allowed"])
    got = check(changed, rule)
    failed += got != good
    print(f"{'ok' if got == good else 'not ok'} {number} - {name}")
    if got != good:
        print(f"# wanted: {good}\n# got: {got}")
print(f"1..{len(CASES)}")
sys.exit(failed != 0)
