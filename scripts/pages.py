#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pages.py ROOT: checks the pages of this tree, and says each defect as file:line: what is wrong.

README.md has at most 150 lines of at most 100 characters and 1,200 words, ARCHITECTURE.md at most
2,500 words. In both and in docs/ no sentence is longer than 25 words (tables and code excepted),
and a page of docs/ begins with the question that it answers. In every page each link leads to a
file, and what stands in backquotes and looks like a file or a function of the tree is one.
"""
import fnmatch
import os
import re
import sys

SENTENCE = 25
CODE = re.compile(r'`([^`]+)`')
LINK = re.compile(r'\[([^\]]*)\]\(([^)\s]+)\)')
SOURCE = re.compile(r'^([a-z_\d*-]+\.(c|h|cc|cu|py|sh|md|proto)|gpupool[a-z.]*\.[1578])$')
FUNCTION = re.compile(r'\b((?:gp|gpc|gpd|gs)_\w+)\(\)')
ITEM = re.compile(r'^\s*([-*]|\d+\.)\s+')
END = re.compile(r'(?<=[.!?])[)"*]*(?:\n|\s+(?=[^a-z]))')
# Names in sources, the generated files among them, and headers that are not ours.
NAMES = re.compile(r'\bg[ps][cd]?_\w+(?:\.[ch]\b)?|(?<=#include <)[\w.]+')


def tree(root):
    """Every file and folder below root, as a path from there; no build folders, nothing hidden"""
    found = set()
    for folder, below, files in os.walk(root):
        below[:] = [b for b in below if not b.startswith(('.', 'build', 'subprojects'))
                    and not os.path.exists(os.path.join(folder, b, 'meson-info'))]
        found.update(os.path.relpath(os.path.join(folder, f), root) for f in files + below)
    return found


def paragraphs(text):
    """(line, words as one string) of each paragraph or list item; no code, tables or headings"""
    block, at, fenced, before = [], 0, False, ''
    for number, line in enumerate(text.splitlines() + [''], 1):
        fence = line.startswith('```')
        fenced = fenced != fence
        listed = ITEM.match(line)
        indented = line.startswith('    ') and not block and not listed and not before.strip()
        plain = not (fence or fenced or indented or line.startswith(('|', '#')) or not line.strip())
        if block and (not plain or listed):
            yield at, '\n'.join(block)
            block = []
        if plain:
            at = at if block else number
            block.append(ITEM.sub('', line).strip())
        # Behind code comes code, also after an empty line.
        before = line if not indented else ''


def long_sentences(text):
    for line, paragraph in paragraphs(text):
        plain = LINK.sub(r'\1', CODE.sub('Code', paragraph))
        for sentence in END.split(plain):
            words = [w for w in sentence.split() if re.search(r'\w', w)]
            if len(words) > SENTENCE:
                yield line, f'a sentence of {len(words)} words: {" ".join(words[:6])} ...'


def missing(page, text, files, names):
    """Links and names that lead nowhere"""
    here = os.path.dirname(page)
    tops = {f.split('/')[0] for f in files if '/' in f}
    bare = {os.path.basename(f) for f in files} | names

    def there(path):
        path = os.path.normpath(path)
        return path in files or '*' in path and fnmatch.filter(files, path)

    for number, line in enumerate(text.splitlines(), 1):
        for _, link in LINK.findall(CODE.sub('code', line)):
            if '://' not in link and not there(os.path.join(here, link.split('#')[0] or page)):
                yield number, f'a link to {link}, which is not there'
        for code in CODE.findall(line):
            for word in code.strip('.,:;').split():
                if '/' in word and word.split('/')[0] in tops and re.match(r'^[\w./*-]+$', word):
                    if not there(word) and not there(os.path.join(here, word)):
                        yield number, f'{word} is not there'
                elif SOURCE.match(word) and not fnmatch.filter(bare, word):
                    yield number, f'no file is called {word}'
            for name in FUNCTION.findall(code):
                if name not in names:
                    yield number, f'no function is called {name}()'


def main():
    root = sys.argv[1]
    files = tree(root)
    names, bad = set(), []
    for path in files:
        if path.endswith(('.c', '.h', '.py', '.cu', '.cc')) or path == 'codegen/meson.build':
            with open(os.path.join(root, path), errors='replace') as source:
                names.update(NAMES.findall(source.read()))
    for page in sorted(f for f in files if f.endswith('.md')):
        with open(os.path.join(root, page)) as opened:
            text = opened.read()
        found = list(missing(page, text, files, names))
        if page in ('README.md', 'ARCHITECTURE.md') or page.startswith('docs/'):
            found += long_sentences(text)
        if page.startswith('docs/') and not re.match(r'# .*\?\n', text):
            found.append((1, 'the first line is not the question that the page answers'))
        most = {'README.md': 1200, 'ARCHITECTURE.md': 2500}.get(page)
        if most and len(text.split()) > most:
            found.append((1, f'{len(text.split())} words, at most {most}'))
        if page == 'README.md':
            lines = text.splitlines()
            found += [(n, f'{len(l)} characters') for n, l in enumerate(lines, 1) if len(l) > 100]
            found += [(1, f'{len(lines)} lines, at most 150')] if len(lines) > 150 else []
        bad += [f'{page}:{n}: {what}' for n, what in sorted(found)]
    print('\n'.join(bad) or f'{len(files)} files, every page is in order')
    return 1 if bad or 'README.md' not in files else 0


if __name__ == '__main__':
    sys.exit(main())
