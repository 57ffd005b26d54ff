# SPDX-License-Identifier: Apache-2.0
"""Text of the description to calls, symbols and parameters, each with its file and line."""
import re
from dataclasses import dataclass, field
from pathlib import Path

TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|#[^\n]*(?:\\\n[^\n]*)*|0x[0-9a-fA-F]+|\w+|[(),;*]|\S|\s+", re.S)
DIRECTIONS = {"IN", "IN_N", "IN_BYTES", "IN_STRING", "OUT", "OUT_N", "OUT_BYTES", "INOUT", "BY_HOOK"}
QUALIFIERS = {"OPT", "NEW", "STATIC", "DROP"}
ACCOUNT = {"ALLOCATES", "FREES", "LAUNCHES", "COPIES", "CHARGES_NOTHING"}
OPTIONS = {"VIA", "ALIAS", "SERVER_HOOK", "CLIENT_HOOK", "BULK_IN", "BULK_OUT"} | ACCOUNT
COMPLETIONS = {"POST", "WAIT"}
WITH_ARGUMENT = {"VIA", "ALIAS", "ALLOCATES", "FREES", "COPIES"}
SYMBOL_WORDS = {"GP_SYMBOL": "", "GP_SYMBOL_PTDS": "ptds", "GP_SYMBOL_PTSZ": "ptsz"}
DRIVER_WORDS = {"GP_DRIVER": True, "GP_DRIVER_OPTIONAL": False}


class SpecError(Exception):
    """One line: file:line: what is wrong."""


@dataclass
class Param:
    name: str
    ctype: str              # base type, without const and '*'
    depth: int              # number of '*'
    const: bool
    direction: str | None   # of a pointer
    size: str | None        # argument of the direction
    quals: set
    line: int


@dataclass
class Call:
    kind: str               # CALL, LOCAL or MESSAGE
    number: int | None
    completion: str | None
    options: dict           # word -> argument text or None
    result: str
    name: str
    params: list
    file: str
    line: int

    @property
    def where(self):
        return f"{self.file}:{self.line}"

    @property
    def on_wire(self):
        return self.kind != "LOCAL"

    def names(self, option):
        return [w for w in re.split(r"\s*,\s*", self.options.get(option) or "") if w]


@dataclass
class Symbol:
    name: str
    base: str
    since: int
    variant: str            # "", "ptds" or "ptsz"
    file: str
    line: int


@dataclass
class DriverFunction:
    name: str
    required: bool
    file: str
    line: int


@dataclass
class Api:
    chapters: list = field(default_factory=list)  # as messages name them
    calls: list = field(default_factory=list)
    symbols: list = field(default_factory=list)
    driver: list = field(default_factory=list)

    @property
    def wire_calls(self):
        return sorted((c for c in self.calls if c.on_wire), key=lambda c: c.number)

    @property
    def cuda_calls(self):
        return [c for c in self.calls if c.kind != "MESSAGE"]


class Reader:
    def __init__(self, path, shown):
        self.file, self.line, self.tokens, self.at = shown, 1, [], 0
        line = 1
        for token in TOKEN.findall(Path(path).read_text()):
            if not token.isspace() and not token.startswith(("/*", "//", "#")):
                self.tokens.append((token, line))
            line += token.count("\n")

    def fail(self, message, line=None):
        raise SpecError(f"{self.file}:{line or self.line}: {message}")

    def peek(self):
        return self.tokens[self.at][0] if self.at < len(self.tokens) else None

    def next(self, want=None):
        if self.at >= len(self.tokens):
            self.fail(f"the file ends in the middle of a description{want and f': expected {want!r}' or ''}")
        token, self.line = self.tokens[self.at]
        self.at += 1
        if want is not None and token != want:
            self.fail(f"expected '{want}', found '{token}'")
        return token

    def open(self):
        """Past '('; the line that it stands in, for not_closed()."""
        self.next("(")
        return self.line

    def not_closed(self, of, line):
        self.fail(f"the parenthesis of '{of}' is not closed", line)

    def group(self, of):
        """The words between parentheses, separated by a comma and a blank."""
        line, out = self.open(), []
        while True:
            token = self.peek()
            if token == ")" and (not out or out[-1] != ", "):
                self.next()
                return "".join(out)
            if token is None or not (token == "," or token.isidentifier() or token.isdigit()):
                self.not_closed(of, line)
            if (token == ",") == (not out or out[-1] == ", "):
                self.not_closed(of, line)
            out.append(", " if self.next() == "," else token)


def read_number(reader):
    token = reader.next()
    try:
        return int(token, 0)
    except ValueError:
        reader.fail(f"expected a number, found '{token}'")


def read_options(reader, word, line):
    """The rest of a word list, from where the next word or ')' stands."""
    options = {}
    while reader.peek() != ")":
        if reader.peek() is None or not reader.peek().isidentifier():
            reader.not_closed(word, line)
        option = reader.next()
        if option == "CUresult" or option == "void":
            reader.not_closed(word, line)
        if option not in OPTIONS:
            reader.fail(f"unknown option '{option}'")
        if option in options:
            reader.fail(f"option '{option}' is given twice")
        argument = reader.group(option) if reader.peek() == "(" else None
        if (argument is not None) != (option in WITH_ARGUMENT):
            reader.fail(f"option '{option}' {'needs an' if option in WITH_ARGUMENT else 'takes no'} argument")
        options[option] = argument
        if reader.peek() == ",":
            reader.next()
        elif reader.peek() != ")":
            reader.not_closed(word, line)
    reader.next(")")
    return options


def read_param(reader, of, line):
    direction = size = None
    quals, words, depth, const = set(), [], 0, False
    while reader.peek() in DIRECTIONS | QUALIFIERS:
        word = reader.next()
        if word in QUALIFIERS:
            quals.add(word)
        elif direction:
            reader.fail(f"second direction '{word}'")
        else:
            direction = word
            size = reader.group(word) if reader.peek() == "(" else None
    while reader.peek() not in (",", ")"):
        if reader.peek() in (None, ";", "("):
            reader.not_closed(of, line)
        token = reader.next()
        if token == "*":
            depth += 1
        elif token == "const":
            const = True
        elif token.isidentifier():
            words.append(token)
        else:
            reader.fail(f"'{token}' has no meaning in a parameter")
    if len(words) < 2:
        reader.fail("a parameter needs a type and a name")
    return Param(words[-1], " ".join(words[:-1]), depth, const, direction, size, quals, reader.line)


def read_params(reader, of):
    line = reader.open()
    if reader.peek() == "void" and reader.tokens[reader.at + 1][0] == ")":
        reader.next()
        reader.next(")")
        return []
    params = [read_param(reader, of, line)]
    while reader.next() == ",":
        params.append(read_param(reader, of, line))
    return params


def read_call(reader, word):
    line = reader.line
    number = completion = None
    reader.next("(")
    if word != "GP_LOCAL":
        number = read_number(reader)
        reader.next(",")
        completion = reader.next()
        if completion not in COMPLETIONS:
            reader.fail(f"unknown completion '{completion}'")
        if reader.peek() == ",":
            reader.next()
        elif reader.peek() != ")":
            reader.not_closed(word, line)
    options = read_options(reader, word, line)
    result = reader.next()
    name = reader.next()
    params = read_params(reader, name)
    reader.next(";")
    return Call(word[3:], number, completion, options, result, name, params, reader.file, line)


def read_symbol(reader, word):
    line = reader.line
    reader.next("(")
    name = reader.next()
    reader.next(",")
    base = reader.next()
    reader.next(",")
    since = read_number(reader)
    reader.next(")")
    return Symbol(name, base, since, SYMBOL_WORDS[word], reader.file, line)


def read_driver_function(reader, word):
    line = reader.line
    reader.next("(")
    name = reader.next()
    reader.next(")")
    return DriverFunction(name, DRIVER_WORDS[word], reader.file, line)


def chapters(folder):
    """The files that chapters.txt lists, which are all that the folder has."""
    listed = (folder / "chapters.txt").read_text().split()
    stray = {path.name for path in folder.glob("*.h")} - set(listed) - {"vocabulary.h"}
    if stray:
        raise SpecError(f"{folder.name}/{min(stray)}:1: chapters.txt does not list this chapter")
    for number, name in enumerate(listed, 1):
        if not (folder / name).is_file():
            raise SpecError(f"{folder.name}/chapters.txt:{number}: there is no chapter {name}")
    return [folder / name for name in listed]


def parse(paths):
    """All description files, in the order given. Messages name a file as its last two parts."""
    api = Api()
    for path in paths:
        reader = Reader(path, "/".join(Path(path).parts[-2:]))
        api.chapters.append(reader.file)
        while reader.peek() is not None:
            word = reader.next()
            if word in SYMBOL_WORDS:
                api.symbols.append(read_symbol(reader, word))
            elif word in DRIVER_WORDS:
                api.driver.append(read_driver_function(reader, word))
            elif word in ("GP_CALL", "GP_LOCAL", "GP_MESSAGE"):
                api.calls.append(read_call(reader, word))
            else:
                reader.fail(f"expected a GP_ word, found '{word}'")
    return api
