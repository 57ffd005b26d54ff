#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Apply a table of new names to the tree.

  rename.py TABLE [--check]

A line of TABLE is one of

  name | SCOPE | OLD | NEW          an identifier, as a whole word
  file | OLD | NEW                  a file, with the #include lines and build files that name it
  text | SCOPE | OLD | NEW          words of string literals and pages; "| alias": the old ones
                                    keep working, which is programmed by hand

and # begins a remark. SCOPE is a path below the root, or *. The scope of a .c file includes the tests
that #include it. An OLD without an underscore is replaced in code alone, not in comments and strings,
where it may be an English word.

--check changes nothing: it prints each line whose OLD does not occur in its scope, whose NEW occurs
there, or that contradicts another one. Exit status 1 if there is one.
"""
import argparse
import collections
import os
import re
import subprocess
import sys

CODE = ('.c', '.h', '.cu', '.cc', '.hpp', '.in')
# Of code: a comment, a string or a character, which are left alone.
PROSE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

WORD = re.compile(r'\w+')
# Not a member of a structure.
PLAIN = re.compile(r'(?<![\w.>])\w+')

Line = collections.namedtuple('Line', 'number kind scope old new')


def read_table(path):
    lines, errors = [], []
    with open(path, encoding='utf-8') as file:
        for number, text in enumerate(file, 1):
            parts = [part.strip() for part in text.split('|')]
            if not text.strip() or text.startswith('#'):
                continue
            if parts[0] == 'file' and len(parts) == 3:
                lines.append(Line(number, 'file', '', *parts[1:]))
            elif parts[0] in ('name', 'text') and len(parts) in (4, 5):
                lines.append(Line(number, *parts[:4]))
            else:
                errors.append(f'{path}:{number}: neither "name | SCOPE | OLD | NEW" nor "file | OLD | NEW"')
    return lines, errors


class Tree:
    def __init__(self):
        listed = subprocess.run(['git', 'ls-files', '-z'], stdout=subprocess.PIPE, check=True, text=True).stdout.split('\0')
        self.texts = {}
        for path in filter(os.path.isfile, listed):
            try:
                with open(path, encoding='utf-8') as file:
                    self.texts[path] = file.read()
            except UnicodeDecodeError:
                continue
        self.changed = set()
        self.including = collections.defaultdict(set)
        for path, text in self.texts.items():
            for included in re.findall(r'^#include "([^"]+\.c)"', text, re.M):
                self.including[included].add(path)
        self.counts = {}

    def scope(self, scope):
        """The paths of a scope."""
        if scope == '*':
            return list(self.texts)
        if scope in self.texts:
            return [scope, *sorted(self.including[scope])]
        return [path for path in self.texts if path.startswith(scope.rstrip('/') + '/')]

    def has(self, path, name):
        if path not in self.counts:
            text = self.texts[path]
            code = PROSE.sub(' ', text) if path.endswith(CODE) else ''
            self.counts[path] = set(WORD.findall(text)), {match[0] for match in PLAIN.finditer(code)}
        everywhere, code = self.counts[path]
        return name in (everywhere if '_' in name else code)

    def set_text(self, path, text):
        if self.texts[path] != text:
            self.texts[path] = text
            self.changed.add(path)

    def replace(self, path, names):
        """names: old -> new."""
        text, parts, at = self.texts[path], [], 0

        def put(part, is_code):
            def new_name(match):
                old = match[0]
                if '_' in old or (is_code and part[max(0, match.start() - 1):match.start()] not in ('.', '>')):
                    return names.get(old, old)
                return old

            parts.append(WORD.sub(new_name, part))

        for prose in PROSE.finditer(text) if path.endswith(CODE) else ():
            put(text[at:prose.start()], True)
            put(prose[0], False)
            at = prose.end()
        put(text[at:], path.endswith(CODE))
        self.set_text(path, ''.join(parts))

    def write(self):
        for path in sorted(self.changed):
            with open(path, 'w', encoding='utf-8') as file:
                file.write(self.texts[path])


def check(lines, tree):
    seen, news = {}, {}
    for line in lines:
        key, new = (line.kind, line.scope, line.old), (line.kind, line.scope, line.new)
        if key in seen:
            yield line, f'as in line {seen[key]}'
        elif new in news:
            yield line, f'{line.new} is the new name in line {news[new]}, too'
        seen[key], news[new] = line.number, line.number
        if line.kind == 'file':
            if not os.path.isfile(line.old):
                yield line, 'there is no such file'
            continue
        paths = tree.scope(line.scope)
        if not paths:
            yield line, f'there is no {line.scope}'
        elif line.kind == 'text':
            if not any(line.old in tree.texts[path] for path in paths):
                yield line, f'"{line.old}" does not occur'
        elif not any(tree.has(path, line.old) for path in paths):
            yield line, f'{line.old} does not occur'
        elif any(tree.has(path, line.new) for path in paths):
            yield line, f'{line.new} occurs already'


def apply_names(lines, tree):
    tables = collections.defaultdict(dict)
    # A file's own name comes before one of its folder, and that before one of the tree.
    for line in sorted((line for line in lines if line.kind == 'name'), key=lambda line: len(line.scope.rstrip('*'))):
        for path in tree.scope(line.scope):
            tables[path][line.old] = line.new
    for path, names in tables.items():
        tree.replace(path, names)
    for line in lines:
        for path in tree.scope(line.scope) if line.kind == 'text' else ():
            tree.set_text(path, tree.texts[path].replace(line.old, line.new))


def apply_files(lines, tree):
    """Build files name a file by its path in their folder, all others by its path."""
    moves = {line.old: line.new for line in lines if line.kind == 'file'}
    for path in list(tree.texts):
        text, folder = tree.texts[path], os.path.dirname(path)
        text = re.sub(r'(?<![\w./-])[\w./-]+(?![\w/-])', lambda match: moves.get(match[0], match[0]), text)
        if os.path.basename(path) == 'meson.build' and folder:
            text = re.sub(r"'([\w./-]+)'", lambda match, folder=folder: inside(match[1], folder, moves), text)
        tree.set_text(path, text)
    for old, new in moves.items():
        os.makedirs(os.path.dirname(new), exist_ok=True)
        subprocess.run(['git', 'mv', old, new], check=True)
        tree.texts[new] = tree.texts.pop(old)
        if old in tree.changed:
            tree.changed.remove(old)
            tree.changed.add(new)


def inside(name, folder, moves):
    path = os.path.normpath(f'{folder}/{name}')
    return f"'{os.path.relpath(moves[path], folder) if path in moves else name}'"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('table', metavar='TABLE')
    parser.add_argument('--check', action='store_true', help='change nothing')
    arguments = parser.parse_args()
    lines, errors = read_table(arguments.table)
    tree = Tree()
    tree.texts.pop(os.path.relpath(arguments.table), None)
    errors += [f'{arguments.table}:{line.number}: {what}' for line, what in check(lines, tree)]
    print(*errors, sep='\n', end='\n' if errors else '', file=sys.stderr)
    if arguments.check or errors:
        return 1 if errors else 0
    apply_names(lines, tree)
    apply_files(lines, tree)
    tree.write()
    return 0


if __name__ == '__main__':
    sys.exit(main())
