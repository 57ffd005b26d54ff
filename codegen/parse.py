# SPDX-License-Identifier: Apache-2.0
"""Text of the description to calls, symbols and parameters, each with its file and line."""
import re
from dataclasses import dataclass, field
from pathlib import Path

TOKEN = re.compile(r"\"[^\"\n]*\"|/\*.*?\*/|//[^\n]*|#[^\n]*(?:\\\n[^\n]*)*|0x[0-9a-fA-F]+|\w+|[(),;*]|\S|\s+", re.S)
DIRECTIONS = {"IN", "IN_N", "IN_BYTES", "IN_STRING", "IN_OPTIONS", "IN_ATTRIBUTE", "OUT", "OUT_N", "OUT_UP_TO", "OUT_BYTES",
              "OUT_ATTRIBUTE", "INOUT", "BY_HOOK"}
QUALIFIERS = {"OPT", "NEW", "STATIC", "DROP"}
QUALIFIERS_WITH_ARGUMENT = {"SPAN"}
ACCOUNT = {"ALLOCATES", "FREES", "LAUNCHES", "COPIES", "CHARGES_NOTHING"}
ORDER = {"BEHIND_ALL", "BEFORE_ALL", "BARRIER", "ABOUT_MEMORY", "ASKS", "PASSES_COPIES", "AWAITS_STREAM"}
OPTIONS = {"VIA", "ALIAS", "SERVER_HOOK", "CLIENT_HOOK", "BULK_IN", "BULK_OUT", "CAPTURE"} | ACCOUNT | ORDER
KIND_OPTIONS = {"TYPES", "COST", "ORDERED", "LOOKUP", "OBJECT", "GOES_WITH", "PART_OF"}
CAPTURE = {"node", "refused", "unsafe", "default_stream", "as_ever"}
COMPLETIONS = {"POST", "WAIT"}
WITH_ARGUMENT = {"VIA", "ALIAS", "ALLOCATES", "FREES", "COPIES", "BARRIER", "CAPTURE", "TYPES", "COST", "OBJECT", "GOES_WITH", "PART_OF"}
FIELD_CHECKS = {"ONE_OF", "UP_TO", "WHEN"}
SYMBOL_WORDS = {"GP_SYMBOL": "", "GP_SYMBOL_PTDS": "ptds", "GP_SYMBOL_PTSZ": "ptsz"}
DRIVER_WORDS = {"GP_DRIVER": True, "GP_DRIVER_OPTIONAL": False}
LACK_WORDS = {"GP_INSTEAD", "GP_PROBED"}


TYPE_WORDS = {"GP_ENUM", "GP_OPAQUE", "GP_STRUCT", "GP_ATTRIBUTES", "GP_OPTIONS"}


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
    span: str | None = None # how many bytes of device memory it points to


@dataclass
class Kind:
    name: str
    options: dict
    file: str
    line: int

    @property
    def types(self):
        return re.split(r"\s*,\s*", self.options["TYPES"])

    @property
    def constant(self):
        return self.name.upper()

    @property
    def ordered(self):
        return "ORDERED" in self.options

    @property
    def destroy(self):
        """The driver's function that ends an object of it."""
        return self.options.get("OBJECT")

    @property
    def owner(self):
        """The kind that objects of it end with."""
        return self.options.get("PART_OF")

    @property
    def is_object(self):
        """Whether it is the driver's and nothing else; else its life is written by hand."""
        return bool(self.destroy or self.owner)


@dataclass
class StructField:
    name: str               # a path: "res.array.hArray"
    ctype: str
    count: int              # elements of an array; 0: it is none
    checks: dict            # word -> list of words
    line: int


@dataclass
class Type:
    """An enumeration, opaque bytes, a struct, a table of attributes, or a chain of options."""
    word: str
    name: str
    fields: list            # StructField, or (type, attribute), or option
    file: str
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
class Lack:
    """What a user is told of a symbol that is not supported."""
    name: str
    instead: str | None     # what else to do; None: programs only ask whether it is there
    file: str
    line: int


@dataclass
class Api:
    chapters: list = field(default_factory=list)  # as messages name them
    calls: list = field(default_factory=list)
    symbols: list = field(default_factory=list)
    driver: list = field(default_factory=list)
    lacks: list = field(default_factory=list)
    kinds: list = field(default_factory=list)
    types: list = field(default_factory=list)

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


def read_options(reader, word, line, known=OPTIONS):
    """The rest of a word list, from where the next word or ')' stands."""
    options = {}
    while reader.peek() != ")":
        if reader.peek() is None or not reader.peek().isidentifier():
            reader.not_closed(word, line)
        option = reader.next()
        if option == "CUresult" or option == "void":
            reader.not_closed(word, line)
        if option not in known:
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
    quals, words, depth, const, span = set(), [], 0, False, None
    while reader.peek() in DIRECTIONS | QUALIFIERS | QUALIFIERS_WITH_ARGUMENT:
        word = reader.next()
        if word in QUALIFIERS:
            quals.add(word)
        elif word in QUALIFIERS_WITH_ARGUMENT:
            span = reader.group(word)
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
    return Param(words[-1], " ".join(words[:-1]), depth, const, direction, size, quals, reader.line, span)


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


def read_lacks(reader, word):
    """GP_INSTEAD("text", name, ...) or GP_PROBED(name, ...)"""
    line, instead, lacks = reader.open(), None, []
    if word == "GP_INSTEAD":
        instead = reader.next()
        if not instead.startswith('"'):
            reader.fail(f"GP_INSTEAD begins with a text, found '{instead}'")
        reader.next(",")
    while not lacks or reader.next() == ",":
        if not (reader.peek() or "").isidentifier():
            reader.not_closed(word, line)
        lacks.append(Lack(reader.next(), instead and instead[1:-1], reader.file, reader.line))
        if reader.peek() not in (",", ")"):
            reader.not_closed(word, line)
    return lacks


def read_kind(reader, word):
    line = reader.line
    reader.next("(")
    name = reader.next()
    reader.next(",")
    kind = Kind(name, read_options(reader, word, line, KIND_OPTIONS), reader.file, line)
    if "TYPES" not in kind.options:
        reader.fail(f"kind '{name}' has no TYPES", line)
    return kind


def read_words(reader, of, line):
    """Words up to a comma or the closing parenthesis."""
    words = []
    while reader.peek() not in (",", ")"):
        if reader.peek() in (None, ";"):
            reader.not_closed(of, line)
        words.append(reader.next())
    return words


def read_struct_field(reader, of, opened):
    checks = {}
    while reader.peek() in FIELD_CHECKS:
        word = reader.next()
        checks[word] = re.split(r", ", reader.group(word))
    words = read_words(reader, of, opened)
    text = "".join(words)
    split = next((i for i in range(len(words) - 1, 0, -1) if words[i].isidentifier() and words[i - 1].isidentifier()), 0)
    path, count = re.fullmatch(r"([\w.]*)(?:\[(\d+)\])?", "".join(words[split:])).groups() if split else (None, None)
    if not path:
        reader.fail(f"'{text}' of {of}: a field needs a type and a name")
    return StructField(path, " ".join(words[:split]), int(count or 0), checks, reader.line)


def read_type(reader, word):
    line = reader.line
    opened = reader.open()
    name, fields = reader.next(), []
    while reader.peek() == ",":
        reader.next()
        if word == "GP_STRUCT":
            fields.append(read_struct_field(reader, name, opened))
        else:
            words = read_words(reader, name, opened)
            fields.append((" ".join(words[:-1]), words[-1]) if word == "GP_ATTRIBUTES" else words[-1])
    if reader.peek() != ")":
        reader.not_closed(word, line)
    reader.next()
    return Type(word[3:], name, fields, reader.file, line)


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
            elif word in LACK_WORDS:
                api.lacks += read_lacks(reader, word)
            elif word == "GP_KIND":
                api.kinds.append(read_kind(reader, word))
            elif word in TYPE_WORDS:
                api.types.append(read_type(reader, word))
            elif word in ("GP_CALL", "GP_LOCAL", "GP_MESSAGE"):
                api.calls.append(read_call(reader, word))
            else:
                reader.fail(f"expected a GP_ word, found '{word}'")
    return api
