# SPDX-License-Identifier: Apache-2.0
"""check_messages.py MESSAGES: what scripts/messages.py says of small trees."""
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = {
    'client/a.c': 'gpc_warn("%s: the pool is full, \\"%u\\" of "\n"%u places", name);\n/* "not a message" */\n',
    'server/b.c': 'gpd_debug("for developers alone");\nwhy = full ? ": the disk is full" : "";\n'
                  'static_assert(a == b, "never seen by anybody");\n{ "Help is no message", "one" },\n',
}
PAGE = '''# What does a message mean?

<!-- of: client -->

| message | meaning |
|---|---|
| the pool is full, "..." of ... places | wait |

<!-- of: server -->

| message | meaning |
|---|---|
| cannot write FILE: the disk is full | make room |
'''


def check(page=PAGE, **sources):
    """(exit status, output) for a tree with this page and these sources in place of the usual ones"""
    with tempfile.TemporaryDirectory() as folder:
        files = {**SOURCES, **{name.replace('_', '/') + '.c': text for name, text in sources.items()}}
        for path, text in {**files, 'docs/troubleshooting.md': page}.items():
            file = Path(folder, path)
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        done = subprocess.run([sys.executable, sys.argv[1], folder], stdout=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout


def a_page_of_all_is_right():
    assert check() == (0, '2 messages, 2 entries\n'), check()


def a_message_without_an_entry_is_found():
    status, text = check(client_c='int x;\nsay("%s: the moon is full", name);\n')
    assert status == 1 and text == 'client/c.c:2: not in docs/troubleshooting.md: ...: the moon is full\n', text


def an_entry_of_another_section_does_not_do():
    status, text = check(server_c='say("the pool is full, \\"%d\\" of %d places");\n')
    assert status == 1 and text.startswith('server/c.c:1: not in '), text


def an_entry_is_whole_unless_it_has_a_gap():
    longer = 'say("the pool is full, \\"%d\\" of %d places are taken");\n'
    status, text = check(client_c=longer)
    assert status == 1 and text.startswith('client/c.c:1: not in '), text
    assert check(PAGE.replace('of ... places', 'of ...'), client_c=longer)[0] == 0


def an_entry_of_no_message_is_found():
    status, text = check(PAGE.replace('| make room', '<br>the disk is gone | make room'))
    assert status == 1 and text == 'docs/troubleshooting.md:13: no message of the sources: the disk is gone\n', text


def a_tree_without_messages_is_refused():
    status, _ = check(PAGE.split('<!--')[0], client_a='', server_b='')
    assert status == 1


TESTS = [a_page_of_all_is_right, a_message_without_an_entry_is_found, an_entry_of_another_section_does_not_do,
         an_entry_is_whole_unless_it_has_a_gap, an_entry_of_no_message_is_found, a_tree_without_messages_is_refused]
print(f'1..{len(TESTS)}')
for number, test in enumerate(TESTS, 1):
    try:
        test()
        print(f'ok {number} - {test.__name__}')
    except AssertionError as error:
        print(f'not ok {number} - {test.__name__}: {error}')
