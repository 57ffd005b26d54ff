# SPDX-License-Identifier: Apache-2.0
"""Parses the description into calls, parameters, kinds, types and symbols. Each has its file and line."""
import re
from dataclasses import dataclass, field
from pathlib import Path

from words import (CLIENT_OBJECT_OPTIONS, COMPLETIONS, DIRECTIONS, DRIVER_WORDS, FORMS, KIND_WORDS, NAME, OPTIONS, PRECHECK_WORDS, QUALIFIERS,
                   SOURCES, SYMBOL_WORDS, TYPE_WORDS, UNSUPPORTED_WORDS, find_misfit)

TOKEN = re.compile(r"\"[^\"\n]*\"|/\*.*?\*/|//[^\n]*|#[^\n]*(?:\\\n[^\n]*)*|0x[0-9a-fA-F]+|\w+|[(),;*]|\S|\s+", re.S)
WORDLIKE = re.compile(r"[\w\"]")


class SpecError(Exception):
    """An error in the description, as "file:line: message"."""


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
    words: dict = field(default_factory=dict)   # qualifier -> its argument

    @property
    def source(self):
        """The value that a generated GP_LOCAL call writes to it: (word, argument), or None."""
        return next(((w, a) for w, a in self.words.items() if w in SOURCES), None)


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
        """The driver function that destroys an object of this kind, or None."""
        return self.options.get("DESTROY")

    @property
    def is_object(self):
        """True if the object is a driver object only, whose creation and destruction are generated."""
        return bool(self.destroy)


@dataclass
class ClientObject:
    """An object of the client that generated GP_LOCAL calls read and write; found by a handle, or by CLIENT_OBJECT."""
    name: str
    options: dict
    file: str
    line: int

    @property
    def types(self):
        return [t for t in re.split(r"\s*,\s*", self.options.get("TYPES", "")) if t]

    @property
    def struct(self):
        return self.options.get("STRUCT")

    @property
    def enter(self):
        return self.options.get("ENTER")

    @property
    def kind(self):
        return self.options.get("KIND")

    @property
    def end(self):
        return self.options.get("LEAVE")


@dataclass
class Type:
    """A GP_ENUM, GP_OPTIONS or GP_SET."""
    word: str
    name: str
    fields: list            # ("" or "CLIENT_ONLY", option), or value
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

    @property
    def is_forward(self):
        """True if the function calls another CUDA function with some of the arguments fixed."""
        return "FORWARD" in self.options

    @property
    def is_local_answer(self):
        """True if the function is generated from client objects."""
        return self.kind == "LOCAL" and not self.is_forward and ("RETURNS" in self.options or any(p.source or "STORE" in p.words for p in self.params))

    @property
    def implementation(self):
        """The key of check.IMPLEMENTATIONS: it determines the words that the call may have."""
        if self.on_wire:
            return self.kind
        return "FORWARD" if self.is_forward else "GENERATED" if self.is_local_answer else "HAND"

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
class UnsupportedSymbol:
    """A symbol that is not supported, and the text that users get."""
    name: str
    instead: str | None     # the alternative; None: GP_UNSUPPORTED_SILENT
    why: str
    file: str
    line: int


@dataclass
class Precheck:
    """The checks that a function makes before all others, in order."""
    name: str
    checks: list            # (word, its arguments)
    file: str
    line: int


@dataclass
class Api:
    chapters: list = field(default_factory=list)  # paths, as in messages
    calls: list = field(default_factory=list)
    symbols: list = field(default_factory=list)
    driver: list = field(default_factory=list)
    unsupported_symbols: list = field(default_factory=list)
    prechecks: list = field(default_factory=list)
    kinds: list = field(default_factory=list)
    client_objects: list = field(default_factory=list)
    types: list = field(default_factory=list)

    @property
    def wire_calls(self):
        return sorted((c for c in self.calls if c.on_wire), key=lambda c: c.number)

    @property
    def cuda_calls(self):
        return [c for c in self.calls if c.kind != "MESSAGE"]


class Reader:
    def __init__(self, text, shown):
        self.file, self.line, self.tokens, self.at = shown, 1, [], 0
        line = 1
        for token in TOKEN.findall(text):
            if token.startswith("#"):
                self.fail("preprocessor lines are not allowed", line)
            if not token.isspace() and not token.startswith(("/*", "//")):
                self.tokens.append((token, line))
            line += token.count("\n")

    def fail(self, message, line=None):
        raise SpecError(f"{self.file}:{line or self.line}: {message}")

    def peek(self):
        return self.tokens[self.at][0] if self.at < len(self.tokens) else None

    def next(self, want=None):
        if self.at >= len(self.tokens):
            self.fail(f"unexpected end of file{want and f': expected {want!r}' or ''}")
        token, self.line = self.tokens[self.at]
        self.at += 1
        if want is not None and token != want:
            self.fail(f"expected '{want}', found '{token}'")
        return token

    def open(self):
        """Consumes '(' and returns its line, for not_closed()."""
        self.next("(")
        return self.line

    def not_closed(self, of, line):
        self.fail(f"unclosed parenthesis of '{of}'", line)

    def name(self):
        token = self.next()
        if not re.fullmatch(NAME, token):
            self.fail(f"expected a name, found '{token}'")
        return token

    def argument(self, word):
        """Returns the checked argument of a word, its elements separated by ", "; None if the word takes no argument."""
        if (self.peek() == "(") != (word in FORMS):
            self.fail(f"'{word}' {'needs an' if word in FORMS else 'takes no'} argument")
        if word not in FORMS:
            return None
        line, elements, last = self.open(), [""], ""
        while self.peek() != ")":
            token = self.peek()
            if token is None or token in "(;" or WORDLIKE.match(token) and WORDLIKE.match(last):
                self.not_closed(word, line)
            last = self.next()
            if token == ",":
                elements.append("")
            else:
                elements[-1] += token
        self.next()
        wrong = find_misfit(word, elements)
        if wrong:
            self.fail(wrong, line)
        return ", ".join(elements)


def read_number(reader):
    token = reader.next()
    try:
        return int(token, 0)
    except ValueError:
        reader.fail(f"expected a number, found '{token}'")


def read_options(reader, word, line, known=OPTIONS):
    """Reads the remaining words up to and including ')'."""
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
            reader.fail(f"duplicate option '{option}'")
        options[option] = reader.argument(option)
        if reader.peek() == ",":
            reader.next()
        elif reader.peek() != ")":
            reader.not_closed(word, line)
    reader.next(")")
    return options


def read_param(reader, of, line):
    given, words, depth, const = {}, [], 0, False
    while reader.peek() in DIRECTIONS | QUALIFIERS:
        word = reader.next()
        if word in given:
            reader.fail(f"duplicate '{word}'")
        if word in DIRECTIONS and DIRECTIONS & set(given):
            reader.fail(f"second direction '{word}'")
        given[word] = reader.argument(word)
    while reader.peek() not in (",", ")"):
        if reader.peek() in (None, ";", "("):
            reader.not_closed(of, line)
        token = reader.next()
        if token == "*":
            depth += 1
        elif token == "const":
            const = True
        elif token.isidentifier() and token not in DIRECTIONS | QUALIFIERS:
            words.append(token)
        else:
            reader.fail(f"unexpected '{token}' in the type and name of a parameter")
    if len(words) < 2:
        reader.fail("a parameter needs a type and a name")
    direction = next(iter(DIRECTIONS & set(given)), None)
    return Param(words[-1], " ".join(words[:-1]), depth, const, direction, given.get(direction),
                 {w for w in QUALIFIERS & set(given) if given[w] is None}, reader.line,
                 {w: a for w, a in given.items() if a is not None and w != direction})


def read_params(reader, of):
    line = reader.open()
    if [token for token, _ in reader.tokens[reader.at:reader.at + 2]] == ["void", ")"]:
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
    result, name = reader.name(), reader.name()
    params = read_params(reader, name)
    reader.next(";")
    return Call(word[3:], number, completion, options, result, name, params, reader.file, line)


def read_rest(reader, of, line, read_element):
    """Reads ", ELEMENT" any number of times, and the closing parenthesis. Returns the elements."""
    elements = []
    while reader.peek() == ",":
        reader.next()
        elements.append(read_element())
    if reader.peek() != ")":
        reader.not_closed(of, line)
    reader.next()
    return elements


def read_symbol(reader, word):
    line, name = reader.open(), reader.name()
    reader.next(",")
    base = reader.name()
    reader.next(",")
    since = read_number(reader)
    reader.next(")")
    return Symbol(name, base, since, SYMBOL_WORDS[word], reader.file, line)


def read_driver_function(reader, word):
    line, name = reader.open(), reader.name()
    reader.next(")")
    return DriverFunction(name, DRIVER_WORDS[word], reader.file, line)


def read_unsupported(reader, word):
    """GP_UNSUPPORTED("text", "reason", name, ...) or GP_UNSUPPORTED_SILENT("reason", name, ...)"""
    line, texts, symbols = reader.open(), [], []
    for what in ("text", "reason") if word == "GP_UNSUPPORTED" else ("reason",):
        text = reader.next()
        if not text.startswith('"'):
            reader.fail(f"{word}: expected a {what}, found '{text}'")
        texts.append(text[1:-1])
        reader.next(",")
    while not symbols or reader.next() == ",":
        symbols.append(UnsupportedSymbol(reader.name(), texts[0] if word == "GP_UNSUPPORTED" else None, texts[-1], reader.file, reader.line))
        if reader.peek() not in (",", ")"):
            reader.not_closed(word, line)
    return symbols


def read_check(reader, of, line):
    """WORD or WORD(name, ...)"""
    word, arguments = reader.name(), []
    if word not in PRECHECK_WORDS | {"WITHIN"}:
        reader.fail(f"unknown check '{word}'")
    if reader.peek() == "(":
        reader.next()
        while not arguments or reader.peek() == ",":
            if arguments:
                reader.next()
            arguments.append("".join(read_words(reader, of, line)))
        reader.next(")")
    return word, arguments


def read_precheck(reader, word):
    """GP_PRECHECK(function, check, ...)"""
    line, name = reader.open(), reader.name()
    return Precheck(name, read_rest(reader, word, line, lambda: read_check(reader, word, line)), reader.file, line)


def read_kind(reader, word):
    line, name = reader.open(), reader.name()
    reader.next(",")
    kind = Kind(name, read_options(reader, word, line, KIND_WORDS), reader.file, line)
    if "TYPES" not in kind.options:
        reader.fail(f"kind '{name}' has no TYPES", line)
    return kind


def read_client_object(reader, word):
    line, name = reader.open(), reader.name()
    reader.next(",")
    return ClientObject(name, read_options(reader, word, line, CLIENT_OBJECT_OPTIONS), reader.file, line)


def read_words(reader, of, line):
    """Reads tokens up to a comma or the closing parenthesis."""
    words = []
    while reader.peek() not in (",", ")"):
        if reader.peek() in (None, ";"):
            reader.not_closed(of, line)
        words.append(reader.next())
    return words


def read_type_word(reader, word, name, opened):
    form, what = TYPE_WORDS[word]
    text = re.sub("^- ", "-", " ".join(read_words(reader, name, opened)))
    if not re.fullmatch(form, text):
        reader.fail(f"'{text}' of {word}({name}): expected {what}")
    return text.rpartition(" ")[::2] if word == "GP_OPTIONS" else text


def read_type(reader, word):
    line, name = reader.open(), reader.name()
    fields = read_rest(reader, word, line, lambda: read_type_word(reader, word, name, line))
    return Type(word[3:], name, fields, reader.file, line)


def chapters(folder):
    """Returns the files that chapters.txt lists, which must be all files of the folder."""
    listed = (folder / "chapters.txt").read_text().split()
    stray = {path.name for path in folder.glob("*.h")} - set(listed) - {"vocabulary.h"}
    if stray:
        raise SpecError(f"{folder.name}/{min(stray)}:1: not listed in chapters.txt")
    for number, name in enumerate(listed, 1):
        if not (folder / name).is_file():
            raise SpecError(f"{folder.name}/chapters.txt:{number}: missing chapter {name}")
    return [folder / name for name in listed]


def read_file(path, shown):
    try:
        data = Path(path).read_bytes()
        return data.decode()
    except OSError as error:
        raise SpecError(f"{shown}:1: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SpecError(f"{shown}:{line}: not UTF-8") from None


def parse_text(api, text, shown):
    """Parses the text of one file into api. shown: the path for messages."""
    reader = Reader(text, shown)
    api.chapters.append(reader.file)
    readers = {**dict.fromkeys(SYMBOL_WORDS, (api.symbols, read_symbol)), **dict.fromkeys(DRIVER_WORDS, (api.driver, read_driver_function)),
               "GP_PRECHECK": (api.prechecks, read_precheck), "GP_KIND": (api.kinds, read_kind),
               "GP_CLIENT_OBJECT": (api.client_objects, read_client_object), **dict.fromkeys(TYPE_WORDS, (api.types, read_type)),
               **dict.fromkeys(("GP_CALL", "GP_LOCAL", "GP_MESSAGE"), (api.calls, read_call))}
    while reader.peek() is not None:
        word = reader.next()
        if word in UNSUPPORTED_WORDS:
            api.unsupported_symbols += read_unsupported(reader, word)
        elif word in readers:
            described, read = readers[word]
            described.append(read(reader, word))
        else:
            reader.fail(f"expected a GP_ word, found '{word}'")


def parse(paths):
    """Parses the description files in the given order. Messages have the last two components of each path."""
    api = Api()
    for path in paths:
        shown = "/".join(Path(path).parts[-2:])
        parse_text(api, read_file(path, shown), shown)
    return api
