#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the words that scripts/glossary.txt replaces, by folder, against scripts/words.txt.

    scripts/words.py [--lower] ROOT

Kinds of hits: names (functions, types, macros, files, folders), comments, messages (strings of
several words in C and Python) and pages. A number of scripts/words.txt may only fall: with more
hits than allowed the check fails and prints each hit of that folder and kind as file:line; with
fewer it fails and names the number to lower, or lowers it with --lower.

The last column is for information: the share of comment sentences in C whose subject may be a
placeholder ("who", "what", "so many").
"""
import argparse
import collections
import os
import re
import sys

GLOSSARY, ALLOWED = 'scripts/glossary.txt', 'scripts/words.txt'
KINDS = ('names', 'comments', 'messages', 'pages')
# Files that contain the words because they are about them; folders of other projects or of data.
EXEMPT = {GLOSSARY, ALLOWED, 'scripts/words.py', 'tests/check/check_words.py'}
SKIPPED = {'subprojects', 'tests/codegen/golden', 'tests/fuzz/corpus'}
C, PYTHON, SCRIPT, PAGE = (('.c', '.h', '.cc', '.cu', '.proto'), ('.py',), ('.sh', 'meson.build'),
                           ('.md', '.1', '.5', '.7', '.8'))

STRING = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
TOKENS = {
    C: re.compile(r'/\*.*?\*/|//[^\n]*(?:\n[ \t]*//[^\n]*)*|' + STRING, re.S),
    PYTHON: re.compile(r'#[^\n]*(?:\n[ \t]*#[^\n]*)*|""".*?"""|\'\'\'.*?\'\'\'|' + STRING, re.S),
    SCRIPT: re.compile(r'^[ \t]*#[^\n]*(?:\n[ \t]*#[^\n]*)*', re.M),
}
# In C a definition has its name at the start of a line, a declaration after its type.  What is
# there in capitals is the use of a macro.
DEFINED = {
    C: re.compile(r'^(?![A-Z\d_]+\()(\w+)\(|^[A-Z\d_]+\((\w+)[^;{]*\)\n\{|^[ \t]*#[ \t]*define (\w+)(?<!_H)\b'
                  r'|\b(?:struct|union|enum) (\w+)[ \t]*\{|^\} (\w+);|^typedef\b[^;{(]*?\b(\w+);', re.M),
    PYTHON: re.compile(r'^[ \t]*(?:def|class) (\w+)', re.M),
    SCRIPT: re.compile(r'^(\w+)\(\)', re.M),
}
DECLARED = re.compile(r'^(?!return|else|typedef)[a-zA-Z][\w \t*]*[ *](\w+)\([^{]*?;', re.M)
# Functions of CUDA and NVML have their names from NVIDIA.
FOREIGN = re.compile(r'(?<![a-zA-Z])(?:(?:cu|cuda|nvml)(?=[A-Z])|(?:CU|CUDA|NVML)_)\w*')
ITEM = re.compile(r'^\s*(?:[-*>]|\d+\.|#+)\s+|^\|\s*')
CODE = re.compile(r'`[^`]*`|\]\([^)]*\)')
FORMATTED = re.compile(r'\{[^{}]*\}')
DECORATION = re.compile(r'^[ \t]*(?:/?\*+/?|//+|#+|"""|\'\'\')?[ \t]*|[ \t]*(?:\*/|"""|\'\'\')?[ \t]*$')
ROFF = re.compile(r'^\.(?:\\".*|[A-Z]{1,2} ?)|\\f.|\\')
SENTENCE = re.compile(r'(?<=[.:;])\s+')
PLACEHOLDER = re.compile(
    r'\b(?:who(?:m|se|ever)?|what(?:ever)?|(?:any|no|some)body|so (?:long|many|much)|as (?:many|much) as|the same'
    r'|(?:is|are|was) told|behind|in front of|it (?:is|was) (?:that|who))\b', re.I)


class Glossary:
    """The rows of scripts/glossary.txt: of each kind one pattern, and the pattern and replacement of each row."""

    AROUND = {
        'name': ('(?:^|_)(?:', ')(?:_|$)'),
        'text': (r'\b(?:', r')\b'),
        'start': (r'(?:^|(?<=[.:;?!] ))(?:', r')\b(?= [^\W_]+,? [^\W_])(?![^.:;]*\?)'),
    }

    def __init__(self, root):
        path = os.path.join(root, GLOSSARY)
        words = {kind: ['(?!)'] for kind in self.AROUND}
        self.rows = []
        with open(path) as file:
            for number, line in enumerate(file, 1):
                if not line.strip() or line.startswith('#'):
                    continue
                cells = [cell.strip() for cell in line.split(' | ')]
                try:
                    if len(cells) != 3 or cells[0] not in words:
                        raise ValueError('expected "name | words | replacement", or text or start')
                    words[cells[0]] += cells[1].split(', ')
                    self.rows.append((self.compile(cells[0], cells[1].split(', ')), cells[2]))
                except (ValueError, re.error) as error:
                    sys.exit(f'{path}:{number}: {error}')
        self.name, self.text, self.start = (self.compile(kind, words[kind]) for kind in self.AROUND)

    def compile(self, kind, words):
        # A group for each alternative would make it slower by a third.
        before, after = self.AROUND[kind]
        return re.compile(before + '|'.join(words) + after, re.I)

    def replacement(self, match):
        return next(instead for row, instead in self.rows if row.match(match.string, match.start()))

    def find_in_text(self, text):
        return [*self.text.finditer(text), *self.start.finditer(text)]

    def find_in_name(self, name):
        """The match in a name, or None; compared in lower case with _ between the words."""
        return self.name.search(re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '_', FOREIGN.sub('', name)).lower().replace('-', '_'))


def language(path):
    return next((kind for kind in (C, PYTHON, SCRIPT, PAGE) if path.endswith(kind)), None)


def sources(root):
    """(path, language) of each file with text of this project."""
    for folder, below, names in os.walk(root):
        here = os.path.relpath(folder, root)
        below[:] = sorted(b for b in below if not b.startswith(('.', 'build', '__'))
                          and os.path.normpath(os.path.join(here, b)) not in SKIPPED
                          and not os.path.exists(os.path.join(folder, b, 'meson-info')))
        for name in sorted(names):
            path = os.path.normpath(os.path.join(here, name))
            if language(name) and path not in EXEMPT:
                yield path, language(name)


def paragraphs(lines):
    """The (line number, text) of a text, as one list for each paragraph."""
    block = []
    for number, line in [*lines, (0, '')]:
        if line:
            block.append((number, line))
        elif block:
            yield block
            block = []


def page_lines(text, roff):
    """(line number, text) of a page without code, links and markup; list items are paragraphs."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        item = False
        if roff:
            line = ROFF.sub('', line).strip('"')
        elif line.startswith('```'):
            fenced = not fenced
            line = ''
        elif fenced or line.startswith('    ') and not ITEM.match(line):
            line = ''
        else:
            item = ITEM.match(line)
            line = CODE.sub(' ', ITEM.sub('', line)).replace(' | ', ' . ').strip()
        if item:
            yield number, ''
        yield number, line


class Tree:
    """The hits of a tree, and its comment sentences."""

    def __init__(self, root):
        self.glossary = Glossary(root)
        self.hits = collections.defaultdict(list)  # (folder, kind): (path, line, word, replacement)
        self.sentences, self.placeholders = collections.Counter(), collections.Counter()
        self.declared, self.defined = {}, collections.defaultdict(set)  # names in C, by folder
        seen = set()
        for path, kind in sources(root):
            top = path.split('/')[0] if '/' in path else '.'
            # A file has the name of its folder, too: cli/probe.c is cli_probe.
            for part, depth in ((os.path.dirname(path), 1), (os.path.splitext(path)[0] if kind != PAGE else '', 2)):
                if part not in seen:
                    seen.add(part)
                    self.note_name(top, path, '_'.join(part.split('/')[-depth:]), '', 0)
            with open(os.path.join(root, path), errors='replace') as file:
                self.read(top, path, kind, file.read())
        for (top, name), (path, code, at) in self.declared.items():
            if name not in self.defined[top]:
                self.note_name(top, path, name, code, at)

    def read(self, top, path, kind, text):
        """Notes the hits of a file."""
        if kind == PAGE:
            self.note_lines(top, path, 'pages', page_lines(text, not path.endswith('.md')))
            return
        code, at, number = [], 0, 1
        for match in TOKENS[kind].finditer(text):
            token = match[0]
            code += [text[at:match.start()], '\n' * token.count('\n')]
            number += text.count('\n', at, match.start())
            at = match.end()
            if token[0] not in '"\'' or token.startswith(('"""', "'''")):
                lines = [DECORATION.sub('', line) for line in token.split('\n')]
                self.note_lines(top, path, 'comments', enumerate(lines, number), path.endswith(('.c', '.h')))
            elif ' ' in token:
                said = FORMATTED.sub(' ', token[1:-1]) if kind == PYTHON else token[1:-1]
                self.note_text(top, path, 'messages', [(number, said.replace('\\n', ' ').strip())])
            number += token.count('\n')
        self.read_names(top, path, kind, ''.join(code) + text[at:])

    def read_names(self, top, path, kind, code):
        for match in DEFINED[kind].finditer(code):
            self.defined[top].add(match[match.lastindex])
            self.note_name(top, path, match[match.lastindex], code, match.start())
        for match in DECLARED.finditer(code) if kind == C else ():
            self.declared.setdefault((top, match[1]), (path, code, match.start(1)))

    def note_lines(self, top, path, kind, lines, counted=False):
        for block in paragraphs(lines):
            text = self.note_text(top, path, kind, block)
            if counted and 'SPDX' not in text:
                sentences = [s for s in SENTENCE.split(text) if s.count(' ') >= 3]
                self.sentences[top] += len(sentences)
                self.placeholders[top] += sum(bool(PLACEHOLDER.search(s)) for s in sentences)

    def note_text(self, top, path, kind, block):
        """Notes the hits in a paragraph, and returns it as one string."""
        text = ' '.join(line for _, line in block)
        for match in self.glossary.find_in_text(text):
            end = -1
            for number, line in block:
                end += len(line) + 1
                if match.start() <= end:
                    break
            self.hits[top, kind].append((path, number, match[0], self.glossary.replacement(match)))
        return text

    def note_name(self, top, path, name, code, at):
        match = self.glossary.find_in_name(name)
        if match:
            number = code.count('\n', 0, at) + 1
            self.hits[top, 'names'].append((path, number, name, self.glossary.replacement(match)))


def allowed(root):
    """(folder, kind) -> (allowed number, line of scripts/words.txt); and the comment at its head."""
    path = os.path.join(root, ALLOWED)
    numbers, head = {}, ''
    with open(path) as file:
        for number, line in enumerate(file, 1):
            cells = line.split()
            if line.startswith('#') or not cells:
                head += line
            elif len(cells) == 3 and cells[1] in KINDS and cells[2].isdigit() and tuple(cells[:2]) not in numbers:
                numbers[cells[0], cells[1]] = int(cells[2]), number
            else:
                sys.exit(f'{path}:{number}: expected "FOLDER KIND NUMBER", each folder and kind once; kinds: '
                         + ', '.join(KINDS))
    return numbers, head


def main():
    parser = argparse.ArgumentParser(usage=__doc__.strip())
    parser.add_argument('--lower', action='store_true')
    parser.add_argument('root')
    options = parser.parse_args()
    numbers, head = allowed(options.root)
    tree = Tree(options.root)
    faults = []
    for key in sorted({*numbers, *tree.hits}):
        limit, line = numbers.get(key, (0, 0))
        found = tree.hits[key]
        if len(found) > limit:
            faults += [f'{path}:{line}: "{word}": write {instead}' for path, line, word, instead in found]
            faults.append(f'{ALLOWED}: {" ".join(key)}: {len(found)} found (above), {limit} allowed')
        elif len(found) < limit and not options.lower:
            faults.append(f'{ALLOWED}:{line}: {" ".join(key)}: lower {limit} to {len(found)}, by hand or with --lower')
    if options.lower:
        lowered = ((key, min(limit, len(tree.hits[key]))) for key, (limit, _) in numbers.items())
        with open(os.path.join(options.root, ALLOWED), 'w') as file:
            file.write(head + ''.join(f'{" ".join(key)} {number}\n' for key, number in lowered if number))
    print(f'{"":10}', *(f'{kind:>9}' for kind in KINDS), ' placeholders')
    for top in sorted({top for top, _ in tree.hits} | set(tree.sentences)):
        share = f'{100 * tree.placeholders[top] / tree.sentences[top]:11.1f} %' if tree.sentences[top] else ''
        print(f'{top:10}', *(f'{len(tree.hits[top, kind]):9}' for kind in KINDS), share)
    print('\n'.join(faults) or f'{ALLOWED}: every number is right')
    sys.exit(bool(faults))


main()
