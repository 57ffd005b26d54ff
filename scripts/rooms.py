#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that folders use one another only as scripts/rooms.txt allows.

    scripts/rooms.py [--root DIR] BUILD [--circles] [--arrows]

BUILD is a build folder with its objects, DIR the tree that has scripts/rooms.txt (this one). An
arrow goes from a file to a header that it includes, to the file that defines a symbol which it
needs, and from a file that takes a callback to the file that gives it one. Prints every arrow that
no rule allows as "file -> file: symbol", all that hides an arrow (a weak symbol, a macro as the name
of an included file), and every circle that is larger than the rules allow. --circles prints all circles of
more than one file, --arrows the number of arrows between rooms.
"""
import argparse
import collections
import functools
import json
import os
import re
import subprocess
import sys

ENDINGS = ('.c', '.h', '.inc', '.def', '.S', '.s')
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.M)
BY_MACRO = re.compile(r'^\s*#\s*include\b\s*(?=[^"<\s])(.*)', re.M)
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.S)
ATTRIBUTE = re.compile(r'__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)')
FUNCTION_TYPE = re.compile(r'\btypedef\b[^;{]*?(?:\(\s*\*\s*(\w+)\s*\)|\b(\w+))\s*\((?!\s*\*)[^;]*\)\s*;')
POINTER = re.compile(r'\(\s*\*\s*\w*\s*\)\s*\(')  # to a function
STRUCT = re.compile(r'\bstruct\s+\w+\s*\{(.*?)\n\}', re.S)
DEFINITION = re.compile(r'\b(\w+)\s*\([^;{}]*\)\s*\{')
GIVEN = re.compile(r'(?:->|\.)(\w+)\s*=\s*((?:[^=;,{}()]*\?)?[\s\w&:]+)(?=[;,}])')
DECLARATION = re.compile(r'(?:^|\n)(?!\s*(?:typedef|#))[^;{}#]*?\b(\w+)\s*\(([^;{}]*)\)[^;{}()]*;')


class Rules:
    """The rules of scripts/rooms.txt; its head describes the words."""

    def __init__(self, root):
        path = os.path.join(root, 'scripts/rooms.txt')
        self.root = root
        self.uses, self.generated, self.callbacks = {}, {}, {}
        self.circle, self.used = 0, set()
        with open(path) as file:
            for number, line in enumerate(file, 1):
                words = line.split('#')[0].split()
                if words and not self.add_rule(words, line):
                    sys.exit(f'{path}:{number}: "{words[0]}" is not understood here')
        for room in {*sum(self.uses.values(), []), *self.generated.values()} - self.uses.keys():
            sys.exit(f'{path}: there is no room "{room}"')

    def add_rule(self, words, line):
        kind, rest = words[0], words[1:]
        if kind == 'room' and len(rest) >= 1:
            self.uses[rest[0].rstrip(':')] = rest[1:]
        elif kind == 'generated' and len(rest) == 2:
            self.generated[rest[0]] = rest[1]
        elif kind == 'callback' and len(rest) >= 4 and rest[1] == '->':
            self.callbacks[rest[0], rest[2].rstrip(':')] = ' '.join(rest[3:])
        elif kind == 'circle' and len(rest) == 1:
            self.circle = int(rest[0])
        else:
            return False
        return True

    def room(self, path):
        """The room of a file, or None."""
        if os.path.basename(path) in self.generated:
            return self.generated[os.path.basename(path)]
        folder = os.path.dirname(path)
        while folder and folder not in self.uses:
            folder = os.path.dirname(folder)
        return folder or None

    def reach(self, room, seen=None):
        """All rooms that a room may use: those it names, and what they may use."""
        seen = set() if seen is None else seen
        for below in [room, *self.uses[room]]:
            if below not in seen:
                seen.add(below)
                self.reach(below, seen)
        return seen


def sources(rules):
    """The files of C in the rooms, by path from the root, with their text."""
    found = {}
    for room in rules.uses:
        for folder, _, names in os.walk(os.path.join(rules.root, room)):
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), rules.root)
                if name.endswith(ENDINGS):
                    with open(os.path.join(rules.root, path)) as file:
                        found[path] = ATTRIBUTE.sub(' ', COMMENT.sub(' ', file.read()))
    return found


def sees(path, files, rules, seen=None):
    """All headers of the rooms that a file includes, and what they include."""
    seen = set() if seen is None else seen
    for header in includes(path, files, rules):
        if header in files and header not in seen:
            seen.add(header)
            sees(header, files, rules, seen)
    return seen


@functools.lru_cache(None)
def is_file(path):
    return os.path.isfile(path)


def includes(path, files, rules):
    """The files of the tree that a file includes, by path from the root or generated name."""
    for header in INCLUDE.findall(files[path]):
        beside = os.path.normpath(os.path.join(os.path.dirname(path), header))
        for target in (header, beside, os.path.basename(header)):
            if target in files or target in rules.generated or is_file(os.path.join(rules.root, target)):
                yield target
                break


def objects(build, rules):
    """Source file -> its objects, of the files in rooms and the generated ones that a rule places."""
    with open(os.path.join(build, 'compile_commands.json')) as file:
        commands = json.load(file)
    found = collections.defaultdict(list)
    for command in commands:
        path = os.path.relpath(os.path.join(command['directory'], command['file']), rules.root)
        if os.path.basename(path) in rules.generated:
            path = os.path.basename(path)
        output = os.path.join(command['directory'], command['output'])
        if rules.room(path) and os.path.exists(output):
            found[path].append(output)
    if not found:
        sys.exit(f'{build} has no objects of the rooms')
    return found


def symbols(found):
    """Symbol -> the file that defines it; file -> the symbols that it needs; (file, symbol) of weak ones."""
    defines, needs, weak = {}, collections.defaultdict(set), set()
    for path, outputs in found.items():
        text = subprocess.run(['nm', '-P', *outputs], check=True, capture_output=True, text=True).stdout
        for line in text.splitlines():
            name, kind, *_ = line.split() + ['']
            if kind in 'Uvw':
                needs[path].add(name)
            elif kind.isupper():
                defines.setdefault(name, path)
            if kind in 'VW' and name.isidentifier():
                weak.add((path, name))
    return defines, needs, weak


def registrars(files):
    """Functions of headers that take a callback as a parameter; and, by the name of a member that
    holds one, the headers that declare such a member."""
    types = set()
    for text in files.values():
        types.update(a or b for a, b in FUNCTION_TYPE.findall(text))
    taking, members = set(), collections.defaultdict(set)
    for path, text in files.items():
        if path.endswith('.h'):
            for name, parameters in DECLARATION.findall(text):
                if POINTER.search(parameters) or types & set(re.findall(r'\w+', parameters)):
                    taking.add(name)
            for body in STRUCT.findall(text):
                for name in re.findall(r'\(\s*\*\s*(\w+)\s*\)\s*\(', body):
                    members[name].add(path)
                for kind, name in re.findall(r'\b(\w+)\s+\*?(\w+)\s*;', body):
                    if kind in types:
                        members[name].add(path)
    return taking, members


def callbacks(rules, files, found):
    """Adds the arrows of callbacks to those of includes and symbols."""
    taking, members = registrars(files)
    functions = {name for text in files.values() for name in DEFINITION.findall(text)}
    given = collections.defaultdict(set)
    for (start, end), names in found.items():
        for name in names & taking:
            given[end, start].add(f'callback given to {name}()')
    for path, text in files.items():
        included = sees(path, files, rules)
        given_as = {name for name, value in GIVEN.findall(text)
                    if functions & set(re.findall(r'\w+', value.split('?')[-1]))}
        for name in given_as & members.keys():
            for header in members[name]:
                if header in included:
                    caller = header[:-1] + 'c'
                    caller = caller if caller in files else header
                    given[caller, path].add(f'callback given as "{name}" of {header}')
    for (start, end), names in given.items():
        named = {(start, end), (start, '*')} & rules.callbacks.keys()
        rules.used |= named
        if start != end and not named:
            found[start, end] |= names


def arrows(build, rules, files):
    """(from, to) -> the names for which the first needs the second; and what hides some."""
    found = collections.defaultdict(set)
    for path in files:
        for target in includes(path, files, rules):
            found[path, target].add('#include')
    defines, needs, weak = symbols(objects(build, rules))
    for path, names in needs.items():
        for name in names & defines.keys():
            found[path, defines[name]].add(name)
    callbacks(rules, files, found)
    hidden = [f'{path}: {name} is weak: who takes its place is not seen' for path, name in sorted(weak)]
    hidden += [f'{path}: #include {name}: what that is is not seen' for path, text in sorted(files.items()) for name in BY_MACRO.findall(text)]
    return found, hidden


def circles(found):
    """Tarjan's strongly connected components of more than one file, the largest first."""
    graph = collections.defaultdict(list)
    for start, end in found:
        if start != end:
            graph[start].append(end)
    index, low, stack, on_stack, result = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for other in graph[node]:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            circle = []
            while not circle or circle[-1] != node:
                circle.append(stack.pop())
                on_stack.discard(circle[-1])
            if len(circle) > 1:
                result.append(sorted(circle))

    sys.setrecursionlimit(10000)
    for node in list(graph):
        if node not in index:
            visit(node)
    return sorted(result, key=len, reverse=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.strip())
    parser.add_argument('build')
    parser.add_argument('--root', default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser.add_argument('--circles', action='store_true')
    parser.add_argument('--arrows', action='store_true')
    options = parser.parse_args()
    rules = Rules(os.path.abspath(options.root))
    files = sources(rules)
    found, faults = arrows(options.build, rules, files)
    between = 0
    for (start, end), names in sorted(found.items()):
        here, there = rules.room(start), rules.room(end)
        between += here != there
        if there not in rules.reach(here):
            faults += [f'{start} -> {end}: {name}' for name in sorted(names)]
    rounds = circles(found)
    for circle in rounds:
        if len(circle) > rules.circle:
            faults.append(f'a circle of {len(circle)} files: {" ".join(circle)}')
    faults += [f'scripts/rooms.txt: {start} is given no callback by {end}'
               for start, end in rules.callbacks.keys() - rules.used]
    if options.circles:
        for circle in rounds:
            print(f'{len(circle)}: {" ".join(circle)}')
    if options.arrows:
        print(f'{len(files)} files, {len(found)} arrows, {between} of them between rooms')
    print('\n'.join(faults) or 'rooms: every arrow is allowed')
    sys.exit(bool(faults))


main()
