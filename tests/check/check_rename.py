# SPDX-License-Identifier: Apache-2.0
"""check_rename.py RENAME: scripts/rename.py on a small tree."""
import os
import subprocess
import sys
import tempfile

FILES = {
    'a/one.h': '/* take_all() takes all. */\nvoid gp_take_all(void);\n',
    'a/one.c': '#include "a/one.h"\n\nstruct s { int end; };\n\n/* To take is to give. */\nstatic int\ntake(struct s *s)\n'
               '{\n\treturn s->end + puts("take gp_take_all");\n}\n\nvoid\ngp_take_all(void)\n{\n\tend(take(0));\n}\n',
    'a/meson.build': "files('one.c', 'two.c')\n",
    'a/two.c': 'static void take(void);\n',
    'tests/test_one.c': '#include "a/one.c"\n\nint x = take(1);\n',
    'docs/page.md': '`a/one.c` has `gp_take_all()`: take it.\n',
}
TABLE = '''# A remark.
name | a/one.c | take | object_acquire
name | a/one.c | end | object_close
name | * | gp_take_all | gp_objects_acquire
text | docs | take it | use it
file | a/one.c | b/object.c
'''
EXPECTED = {
    'a/one.h': '/* take_all() takes all. */\nvoid gp_objects_acquire(void);\n',
    'b/object.c': '#include "a/one.h"\n\nstruct s { int object_close; };\n\n/* To take is to give. */\nstatic int\nobject_acquire(struct s *s)\n'
                  '{\n\treturn s->end + puts("take gp_objects_acquire");\n}\n\nvoid\ngp_objects_acquire(void)\n{\n\tobject_close(object_acquire(0));\n}\n',
    'a/meson.build': "files('../b/object.c', 'two.c')\n",
    'a/two.c': 'static void take(void);\n',
    'tests/test_one.c': '#include "b/object.c"\n\nint x = object_acquire(1);\n',
    'docs/page.md': '`b/object.c` has `gp_objects_acquire()`: use it.\n',
}
WRONG = {
    'name | a/one.c | absent | other': 'absent does not occur',
    'name | a/one.c | take | gp_take_all': 'gp_take_all occurs already',
    'name | c | take | other': 'there is no c',
    'name | a/one.c | take | other\nname | a/one.c | take | another': 'as in line 1',
    'name | a/one.c | take | other\nname | a/one.c | end | other': 'other is the new name in line 1, too',
    'file | absent.c | b.c': 'there is no such file',
    'text | docs | absent | other': '"absent" does not occur',
    'name | take | other': 'neither "name | SCOPE | OLD | NEW" nor "file | OLD | NEW"',
}


def run(folder, table, *options):
    path = os.path.join(folder, 'names.txt')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(table)
    return subprocess.run([sys.executable, sys.argv[1], 'names.txt', *options], cwd=folder, capture_output=True, text=True, check=False)


def read_tree(folder):
    listed = subprocess.run(['git', 'ls-files'], cwd=folder, capture_output=True, text=True, check=True).stdout.split()
    texts = {}
    for path in listed:
        with open(os.path.join(folder, path), encoding='utf-8') as file:
            texts[path] = file.read()
    return texts


def main():
    print('1..1', flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for path, text in FILES.items():
            os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
            with open(os.path.join(folder, path), 'w', encoding='utf-8') as file:
                file.write(text)
        subprocess.run(['git', 'init', '-q'], cwd=folder, check=True)
        subprocess.run(['git', 'add', '.'], cwd=folder, check=True)
        for table, error in WRONG.items():
            result = run(folder, table)
            assert result.returncode == 1 and error in result.stderr, (table, result)
        assert run(folder, TABLE, '--check').returncode == 0
        assert read_tree(folder) == FILES
        result = run(folder, TABLE)
        assert result.returncode == 0, result
        found = read_tree(folder)
        assert found == EXPECTED, {path: text for path, text in found.items() if EXPECTED.get(path) != text}
    print('ok 1 - names, files and texts are replaced, and errors found')


if __name__ == '__main__':
    main()
