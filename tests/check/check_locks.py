# SPDX-License-Identifier: Apache-2.0
"""check_locks.py LOCKS: the defects that scripts/locks.py reports for small trees."""
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = {
    'server/a.h': 'struct a {\n\tpthread_mutex_t lock; /* over all */\n\tpthread_rwlock_t map_lock;\n};\n',
    'client/b.c': 'static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\nextern pthread_mutex_t elsewhere;\n'
                  'void f(pthread_mutex_t *lock);\n',
}
TABLE = '''In server/: the daemon
  lock       | declared in | guards | under it
  a.lock     | a.h         | all    | a.map_lock
  a.map_lock | a.h         | a map  | -

In client/ and nvml/
  b.lock     | b.c         | all    | -
'''


def check(table, sources=None):
    """(exit status, output) for a tree with this table and these further sources"""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in {**SOURCES, **(sources or {}), 'base/lock_order.txt': table}.items():
            file = Path(folder, path)
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        done = subprocess.run([sys.executable, sys.argv[1], folder], stdout=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout


def a_table_of_all_is_right():
    assert check(TABLE) == (0, 'every lock is in the table\n'), check(TABLE)


def a_member_without_a_line_is_found():
    status, text = check(TABLE.replace('  a.map_lock | a.h         | a map  | -\n', '').replace('| a.map_lock', '| -'))
    assert status == 1 and text == 'server/.../a.h: map_lock is in no line of base/lock_order.txt\n', text


def a_variable_without_a_line_is_found():
    status, text = check(TABLE, {'nvml/c.c': 'pthread_mutex_t c_lock GP_GUARDED_BY(x) = PTHREAD_MUTEX_INITIALIZER;\n'})
    assert status == 1 and text == 'nvml/.../c.c: c_lock is in no line of base/lock_order.txt\n', text


def one_of_two_with_one_name_is_found():
    status, text = check(TABLE, {'client/b.c': SOURCES['client/b.c'] + 'struct b {\n\tpthread_mutex_t lock;\n};\n'})
    assert status == 1 and 'client/.../b.c: lock is in no line' in text, text


def a_line_of_no_lock_is_found():
    status, text = check(TABLE.replace('b.lock     | b.c', 'b.lock     | d.c'))
    assert status == 1 and 'd.c declares no b.lock' in text, text


def a_circle_is_found():
    status, text = check(TABLE.replace('a map  | -', 'a map  | a.lock+'))
    assert status == 1 and 'a.map_lock names a.lock, which is in no line below it' in text, text


def main():
    cases = [case for name, case in globals().items() if name.startswith(('a_', 'one_'))]
    print(f'1..{len(cases)}')
    for number, case in enumerate(cases, 1):
        case()
        print(f'ok {number} - {case.__name__}')


main()
