# SPDX-License-Identifier: Apache-2.0
"""nvml.py NAME OUTPUT SYMBOLS: writes the exports of libnvidia-ml.so.1, which symbols.txt lists.

    nvml.py coverage    prints all symbols: answered, or not supported and why
"""
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from emit_client import emit_thunks

HEAD = "/* SPDX-License-Identifier: Apache-2.0 */\n/* Generated from codegen/nvml/symbols.txt; do not edit. */\n"


def symbols_read(path):
    """Returns ([(symbol, since, word)], {word: reason})."""
    symbols, reasons = [], {}
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        if words[0] == "reason" and len(words) > 2:
            reasons[words[1]] = " ".join(words[2:])
        elif len(words) == 3 and words[0].startswith("nvml") and (words[2] == "answered" or words[2] in reasons):
            symbols.append(tuple(words))
        else:
            sys.exit(f"{path}:{number}: invalid line: {line}")
    names = [name for name, _, _ in symbols]
    if sorted(set(names)) != names:
        sys.exit(f"{path}: the symbols are unsorted, or one is listed twice")
    return symbols, reasons


def entry_c(symbols):
    return HEAD + emit_thunks([name for name, _, _ in symbols], "gpn")


def table_c(symbols):
    rows = [(name, f"(void *)gpn_{name}" if how == "answered" else "NULL") for name, _, how in symbols]
    return (HEAD + "#include \"nvml/entry.h\"\n\n"
            + "".join(f"int gpn_{name}(void);\n" for name, _, how in symbols if how == "answered")
            + "\nconst struct gpn_entry_info gpn_entries[] = {\n" + "".join(f"\t{{ \"{n}\", {ours} }},\n" for n, ours in rows)
            + "};\n\nconst size_t gpn_entry_count = sizeof(gpn_entries) / sizeof(gpn_entries[0]);\n")


def map_text(symbols):
    return ("{\nglobal:\n" + "".join(f"\t{name};\n" for name, _, _ in symbols) + "local:\n\t*;\n};\n")


def coverage(symbols, reasons):
    for name, since, how in symbols:
        print(f"{name:<56} {since:<5} {'answered' if how == 'answered' else 'not supported: ' + reasons[how]}")
    answered = sum(1 for row in symbols if row[2] == "answered")
    print(f"{len(symbols)} symbols: {answered} answered, {len(symbols) - answered} not supported")


def main(arguments):
    if arguments == ["coverage"]:
        return coverage(*symbols_read(HERE / "symbols.txt"))
    outputs = {"gpn_entry.c": entry_c, "gpn_table.c": table_c, "libnvidia-ml.map": map_text}
    if len(arguments) != 3 or arguments[0] not in outputs:
        sys.exit(__doc__)
    Path(arguments[1]).write_text(outputs[arguments[0]](symbols_read(arguments[2])[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
