#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pages.py ROOT: checks the pages of this tree, and prints each defect as file:line: defect.

In every page each link leads to a file, and a word in backquotes that looks like a file or a
function of the tree is one. A page of docs/ begins with a heading that ends with "?".
"""
import fnmatch
import os
import re
import sys

CODE = re.compile(r'`([^`]+)`')
LINK = re.compile(r'\[([^\]]*)\]\(([^)\s]+)\)')
SOURCE = re.compile(r'^([a-z_\d*-]+\.(c|h|cc|cu|py|sh|md|proto)|gpupool[a-z.]*\.[1578])$')
FUNCTION = re.compile(r'\b((?:gp|gpc|gpd|gs)_\w+)\(\)')
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
        if page.startswith('docs/') and not re.match(r'# .*\?\n', text):
            found.append((1, 'the first line is not a heading that ends with "?"'))
        bad += [f'{page}:{n}: {what}' for n, what in sorted(found)]
    print('\n'.join(bad) or f'{len(files)} files, every page is in order')
    return 1 if bad or 'README.md' not in files else 0


if __name__ == '__main__':
    sys.exit(main())
