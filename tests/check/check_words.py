# SPDX-License-Identifier: Apache-2.0
"""check_words.py WORDS_PY: what scripts/words.py reports for small trees."""
import subprocess
import sys
import tempfile
from pathlib import Path

GLOSSARY = '''# a comment
name  | take, of$ | acquire
start | what | the memory that
text  | behind, so (?:many|much) | after
'''
TREE = {
    'client/one.h': '/* Memory of the client. */\nint one_take(void);\nint cuMemTake(void);\n',
    'client/one.c': '#include "one.h"\nint\none_take(void)\n{\n\treturn say("%s: behind the end\\n");\n}\n'
                    '/*\n * A list of blocks.\n * Those behind the end are free.\n */\n',
    'docs/one.md': '# What is a page?\n\n`x behind y` and [a page](behind.md)\n- What it has is text.\n',
}
ALLOWED = '# head\nclient names 1\nclient comments 1\nclient messages 1\ndocs pages 1\n'
HIT = {
    'names': 'client/one.c:3: "one_take": write acquire',
    'comments': 'client/one.c:9: "behind": write after',
    'messages': 'client/one.c:5: "behind": write after',
    'pages': 'docs/one.md:4: "What": write the memory that',
}


def run(*options, allowed=ALLOWED, glossary=GLOSSARY, **sources):
    """(exit status, the lines after the table, scripts/words.txt) for a tree with these client/NAME.c, too"""
    with tempfile.TemporaryDirectory() as folder:
        files = {**TREE, **{f'client/{name}.c': text for name, text in sources.items()},
                 'scripts/glossary.txt': glossary, 'scripts/words.txt': allowed}
        for path, text in files.items():
            file = Path(folder, path)
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        done = subprocess.run([sys.executable, sys.argv[1], *options, folder], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        lines = done.stdout.replace(f'{folder}/', '').splitlines()
        return done.returncode, [line for line in lines if ':' in line], Path(folder, 'scripts/words.txt').read_text()


def right_numbers_pass():
    assert run()[:2] == (0, ['scripts/words.txt: every number is right']), run()


def each_kind_is_found_at_its_line():
    for kind, line in HIT.items():
        folder = line.split('/')[0]
        status, lines, _ = run(allowed=ALLOWED.replace(f'{folder} {kind} 1\n', ''))
        assert status == 1 and lines == [line, f'scripts/words.txt: {folder} {kind}: 1 found (above), 0 allowed'], lines


def a_new_word_fails():
    status, lines, _ = run(two='/* Waits behind\n * so much. */\n')
    assert status == 1 and len(lines) == 4, lines
    assert lines[1:3] == ['client/two.c:1: "behind": write after', 'client/two.c:2: "so much": write after'], lines


def a_word_less_names_the_number():
    status, lines, _ = run(allowed=ALLOWED.replace('comments 1', 'comments 3'))
    assert status == 1, status
    assert lines == ['scripts/words.txt:3: client comments: lower 3 to 1, by hand or with --lower'], lines


def lower_writes_the_file():
    status, _, written = run('--lower', allowed=ALLOWED.replace('comments 1', 'comments 3') + 'image names 2\n')
    assert status == 0 and written == ALLOWED, (status, written)


def lower_raises_nothing():
    status, _, written = run('--lower', two='/* It is behind. */\n')
    assert status == 1 and 'client comments 1\n' in written, (status, written)


def a_question_and_a_longer_word_are_no_hits():
    assert run(two='/* What is this for? */\nint\nlookup_mistake(void)\n')[0] == 0


def a_wrong_row_is_refused():
    status, lines, _ = run(glossary=GLOSSARY + 'word | take\n')
    assert status == 1 and lines[0].startswith('scripts/glossary.txt:5: expected'), lines
    status, lines, _ = run(glossary=GLOSSARY + 'text | ( | x\n')
    assert status == 1 and lines[0].startswith('scripts/glossary.txt:5: '), lines
    for wrong in ('client word 1\n', 'client names\n', 'client names 4\n'):
        status, lines, _ = run(allowed=ALLOWED + wrong)
        assert status == 1 and lines[0].startswith('scripts/words.txt:6: expected'), lines


TESTS = [right_numbers_pass, each_kind_is_found_at_its_line, a_new_word_fails, a_word_less_names_the_number,
         lower_writes_the_file, lower_raises_nothing, a_question_and_a_longer_word_are_no_hits, a_wrong_row_is_refused]
print(f'1..{len(TESTS)}')
for number, test in enumerate(TESTS, 1):
    try:
        test()
        print(f'ok {number} - {test.__name__}')
    except AssertionError as error:
        print(f'not ok {number} - {test.__name__}: {error}')
