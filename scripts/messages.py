#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""messages.py ROOT: every message of the sources stands in docs/troubleshooting.md, and every message
of that page in the sources. What does not is said as file:line.

A message is a string of two words or more in a C file of the folders below that does not begin with a
capital and a small letter (so do help texts and headings), and is not said at a level that only
developers ask for. What a conversion like %s stands for is "..." on the page, which may leave out
more by it, and which may say in one line what the sources put together of several strings.

A section of the page says by a comment, <!-- of: PATH... -->, which sources its messages are of; they
stand in the first column of its tables, several of them with <br> between.
"""
import functools
import os
import re
import sys

PAGE = 'docs/troubleshooting.md'
FOLDERS = ('base', 'transport', 'protocol', 'image', 'client', 'nvml', 'server', 'ctl', 'cli')
# Strings that nobody is told, or that are not ours.
NOT_SAID = (
    ('client/base/error_names.c', '.*'),                          # CUDA's own texts
    ('nvml/system.c', '.*'),                                      # NVML's
    ('client/base/lacks.c', '(?!.*is not supported).*'),         # what stands before and behind that
    ('client/graph/dot.c', '.*'),                                 # of a file in the language of dot
    ('client/entry/export_table.c', '.*'),                        # GPUPOOL_LOG=tables
    ('client/base/stats.c', '.*'),                                # GPUPOOL_LOG=stats
    ('server/worker/device/stamp.c', r'\.version .*'),           # code of a kernel
    ('client/context/trace_gpu.c', '.*'),                         # in a timeline
    ('server/supervisor/admin/metrics_text.c', '.*'),             # metrics
    ('transport/tls/openssl_opened.c', r'.*(\.text|\.size|endbr64|ldr x16|hint 34|@function).*'),
    ('transport/tls/tls_(handshake|record).c', '[A-Z_0-9 ]+|traffic upd'),    # of TLS itself
    ('ctl/(list|cert).c', '[A-Za-z ]{1,22}'),                     # names of values in a table
    ('ctl/(cert|list|token).c', r'.* \| .*'),                      # what follows "usage:"
    ('(ctl|server)/main.c', 'table .the default.*|error, warning, info .the default.*|--check-config .FILE.'),    # help
    ('transport/tls/openssl_opened.c', 'the way to OpenSSL is .*'),    # of the compiler
    ('ctl/help.c', '[^"%:]*|(?!usage|gpupoolctl %).*; .*'),       # what "gpupoolctl help" tells
    ('cli/main.c', r'(?!.*(is no command|is no option|no command:|output cannot be)).*'),    # what "gpupool help" tells
    ('.*', r'gpupool (client|pool v3|nvml|lane( key)?|ticket name|shm 1)\\?0?'),    # compared, never said
    ('server/supervisor/admin/metrics.c', 'text/plain.*|GET, HEAD'),
)
# What joins a part of a message to the next.
EDGE = ' ,:;."\'()[]'
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|\w+|[^\s\w]|\n', re.S)
CONVERSION = re.compile(r"%[-+#0']*(?:\*|\d+)?(?:\.(?:\*|\d+)?)?(?:hh|h|ll|l|z|j|t)?[a-zA-Z]")
# Calls whose strings are for developers, or are compared and not said.
QUIET = re.compile(r'\b(static_assert|_Static_assert|gpd_debug|gpc_log|ctl_usage|strcmp|strftime)\s*\(')


def without_quiet(text):
    """the source with the arguments of quiet calls made blank, line by line"""
    for found in list(QUIET.finditer(text)):
        if found[1] == 'gpc_log' and not re.match(r'\(\s*GPC_LOG_(CALLS|TABLES|STATS)', text[found.end() - 1:]):
            continue
        depth = 0
        for token in TOKEN.finditer(text, found.end() - 1):
            depth += (token[0] == '(') - (token[0] == ')')
            if depth == 0:
                break
        inside = text[found.end():token.start()]
        text = text[:found.end()] + re.sub(r'[^\n]', ' ', inside) + text[token.start():]
    return text


def strings(path):
    """(line, text) of each string of a source; neighbours are one"""
    with open(path) as source:
        text = without_quiet(source.read())
    text = re.sub(r'^[ \t]*#[ \t]*include.*$', '', text, flags=re.M)
    line, said, begin = 1, None, 0
    for token in TOKEN.finditer(text):
        if token[0].startswith('"'):
            begin = begin if said is not None else line
            said = (said or '') + token[0][1:-1]
        elif token[0].startswith('PRI') and said is not None:
            said += 'u'
        elif not token[0].isspace() and not token[0].startswith(('//', '/*')) and said is not None:
            yield begin, said
            said = None
        line += token[0].count('\n')


def plain(text):
    text = text.replace('\\n', ' ').replace('\\t', ' ').replace('\\"', '"').replace('\\v', ' ')
    text = '%'.join(CONVERSION.sub('...', part) for part in text.replace('""', '"').split('%%'))
    return re.sub(r'\s+', ' ', text).strip()


def pieces(text):
    """what stands between the gaps, without what joins it to other text"""
    cut = (piece.strip(EDGE) for piece in text.split('...'))
    return tuple(piece for piece in cut if re.search(r'\w', piece))


@functools.lru_cache(None)
def search(parts, entry='......'):
    """finds the parts one behind the other, at the text's ends where the entry has no gap"""
    begin = '' if entry.lstrip(' ,:;("[').startswith('...') else '^'
    end = '' if entry.rstrip(' ,:;)"]').endswith('...') else '$'
    return re.compile(begin + '.*'.join(map(re.escape, parts)) + end).search


def words(parts):
    return sum(len(re.findall(r'[A-Za-z]{2,}', part)) for part in parts)


def is_message(path, text):
    if any(re.fullmatch(where, path) and re.fullmatch(what, text) for where, what in NOT_SAID):
        return False
    return words(pieces(text)) >= 2 and ' ' in text and re.search('[a-z]', text) \
        and not re.match(r'[A-Z][a-z]|[A-Z] ', text)


class Entry:
    """A message of the page"""
    def __init__(self, line, text, sources):
        self.line, self.text, self.sources, self.met = line, text, sources, False
        self.enough = words(pieces(text)) >= 2
        self.is_in = search(pieces(text), text)

    def fits(self, is_part, text):
        """whether it has the message, or a part of it that says enough"""
        return is_part(self.text) is not None or (self.enough and self.is_in(text) is not None)


def messages(root):
    """(path, line, text) of each message of the sources"""
    for top in FOLDERS:
        for folder, _, files in sorted(os.walk(os.path.join(root, top))):
            for name in sorted(f for f in files if f.endswith(('.c', '.h'))):
                path = os.path.relpath(os.path.join(folder, name), root)
                for line, text in strings(os.path.join(root, path)):
                    if is_message(path, plain(text)):
                        yield path, line, plain(text)


def entries(root):
    """the entries of the page, in the order of its lines"""
    sources = ()
    with open(os.path.join(root, PAGE)) as page:
        for number, line in enumerate(page, 1):
            found = re.match(r'<!-- of: (.*) -->', line)
            if found:
                sources = tuple(found[1].split())
            elif line.startswith('## '):
                sources = ()
            elif sources and line.startswith('| ') and not line.startswith('| message '):
                for message in line[2:].split(' | ')[0].replace('\\|', '|').split('<br>'):
                    yield Entry(number, message.strip(), sources)


def main():
    root = sys.argv[1]
    page, bad, count = list(entries(root)), [], 0
    of_path = functools.lru_cache(1)(lambda path: [entry for entry in page if path.startswith(entry.sources)])
    for path, line, text in messages(root):
        count += 1
        is_part, stripped = search(pieces(text)), text.strip(EDGE)
        met = [entry for entry in of_path(path) if entry.fits(is_part, stripped)]
        for entry in met:
            entry.met = True
        if not met:
            bad.append(f'{path}:{line}: not in {PAGE}: {text}')
    bad += [f'{PAGE}:{entry.line}: no message of the sources: {entry.text}' for entry in page if not entry.met]
    print('\n'.join(bad) or f'{count} messages, {len(page)} entries')
    return 1 if bad or not count else 0


if __name__ == '__main__':
    sys.exit(main())
