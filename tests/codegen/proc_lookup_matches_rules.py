#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lookup of cuGetProcAddress agrees with its rules, written down plainly here.

usage: proc_lookup_matches_rules.py FILTER SYMBOLS_H
"""

import pathlib
import random
import re
import subprocess
import sys

QUERIES = 5000
INVALID_VALUE = 1
FOUND, NOT_FOUND, VERSION_NOT_SUFFICIENT = 0, 1, 2
PER_THREAD = 2
LINE = re.compile(r"^(GP_SYMBOL\w*)\((\w+), (\w+), (\d+)\)$", re.M)
DRIVER_VERSIONS = [11030, 12000, 12040, 12080, 12090, 13000]


def rules(symbols, base, version, flags, driver_version):
    """(result, status, exported name)"""
    if flags > 3:
        return INVALID_VALUE, 0, "-"
    known = [s for s in symbols if s["base"] == base and s["since"] <= driver_version]
    per_thread = [s for s in known if s["per_thread"]]
    legacy = [s for s in known if not s["per_thread"]]
    candidates = per_thread if flags & PER_THREAD and per_thread else legacy
    asked = version & 0xFFFFFFFF
    fitting = [s for s in candidates if s["since"] <= asked]
    if fitting:
        return 0, FOUND, max(fitting, key=lambda s: s["since"])["name"]
    return 0, VERSION_NOT_SUFFICIENT if known else NOT_FOUND, "-"


def random_query(pick, symbols):
    symbol = pick.choice(symbols)
    base = pick.choice(
        [symbol["base"]] * 8 + [symbol["name"], symbol["base"][:-1], symbol["base"] + "x", ""]
    )
    version = pick.choice(
        [symbol["since"] + pick.choice([-1, 0, 1])] * 4
        + [pick.randrange(0, 14000), 13000, 0, -1, 2**31 - 1]
    )
    flags = pick.choice([0, 0, 1, 2, 2, 2, 3, 4, 2**32])
    return base, version, flags, pick.choice(DRIVER_VERSIONS)


def main():
    program, path = sys.argv[1], pathlib.Path(sys.argv[2])
    symbols = [
        {"name": name, "base": base, "since": int(since), "per_thread": word != "GP_SYMBOL"}
        for word, name, base, since in LINE.findall(path.read_text())
    ]
    seed = random.randrange(2**32)
    pick = random.Random(seed)
    queries = [random_query(pick, symbols) for _ in range(QUERIES)]
    lines = "".join(f"{b or '-'} {v} {f} {d}\n" for b, v, f, d in queries)
    run = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
    answers = run.stdout.splitlines()
    assert len(answers) == QUERIES, f"{len(answers)} answers"

    wrong = 0
    for query, answer in zip(queries, answers):
        expected = "%d %d %s" % rules(symbols, *query)
        if answer != expected:
            wrong += 1
            print(f"{query}: expected {expected}, got {answer}", file=sys.stderr)
    print(f"seed {seed}: {QUERIES} queries, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
