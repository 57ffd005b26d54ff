# SPDX-License-Identifier: Apache-2.0
"""Prints for each symbol of libcuda.so.1 whether it is remoted, local, or unsupported and why."""
import sys
from pathlib import Path

from check import check
from emit_client import get_variant_call, map_implementations
from parse import SpecError, chapters, parse

API = Path(__file__).resolve().parent / "api"


def get_status(call):
    if call is None:
        return "unsupported"
    return "remoted" if call.on_wire or "VIA" in call.options else "local"


def get_table(api):
    """Returns (symbol, status) of each exported symbol, in the order of symbols.h."""
    impl = map_implementations(api)
    return [(s.name, get_status(impl.get(s.name) or get_variant_call(s, impl))) for s in api.symbols]


def main():
    try:
        api = check(parse(chapters(API)))
        rows, reasons = get_table(api), {symbol.name: symbol.why for symbol in api.unsupported_symbols}
    except SpecError as error:
        sys.exit(str(error))
    for name, how in rows:
        if how == "unsupported" and name not in reasons:
            sys.exit(f"{name} is unsupported, and codegen/api/unsupported.h has no reason for it")
        print(f"{name:<56} {how}{'; ' + reasons[name] if name in reasons else ''}")
    count = {how: sum(1 for row in rows if row[1] == how) for how in ("remoted", "local", "unsupported")}
    print(f"{len(rows)} symbols: {count['remoted']} remoted, {count['local']} local, {count['unsupported']} unsupported")


if __name__ == "__main__":
    main()
