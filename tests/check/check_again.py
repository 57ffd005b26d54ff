# SPDX-License-Identifier: Apache-2.0
"""check_again.py SCRIPTS: failed tests run once more (again.py), and what the sum says (summary.py)."""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPTS = Path(sys.argv[1])
# Stands for meson: writes what the second run gave, and notes that it ran.
MESON = """
import json, sys
from pathlib import Path
logs = Path('build/meson-logs')
Path('ran').write_text(' '.join(sys.argv[1:]))
(logs / 'again.json').write_text(''.join(json.dumps(
    {'name': 'gpupool:s / ' + name, 'result': sys.argv[1], 'stdout': ''}) + '\\n'
    for name in sys.argv[sys.argv.index('again') + 1:]))
"""


def record(name, result, stdout=''):
    return {'name': f'gpupool:s / {name}', 'result': result, 'stdout': stdout}


def check(records, second):
    """(what ran again, exit status and output of the sum) when the second run gives `second`"""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, 'build/meson-logs/testlog.json')
        log.parent.mkdir(parents=True)
        log.write_text(''.join(json.dumps(one) + '\n' for one in records))
        Path(folder, 'meson.py').write_text(MESON)
        subprocess.run([sys.executable, SCRIPTS / 'again.py', 'build/meson-logs/testlog.json',
                        sys.executable, 'meson.py', second], cwd=folder, check=True)
        ran = Path(folder, 'ran')
        names = ran.read_text().partition(' again ')[2] if ran.exists() else ''
        total = subprocess.run([sys.executable, SCRIPTS / 'summary.py', '0', '0', log.relative_to(folder)],
                               cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
        return names, total.returncode, total.stdout


def one_that_passes_alone_counts_and_is_named():
    names, status, text = check([record('a', 'OK'), record('b c', 'FAIL', 'not ok 1 - pace')], 'OK')
    assert names == 'b c' and status == 0, (names, status)
    assert 'passed only alone in build: gpupool:s / b c' in text and 'not ok 1 - pace' in text, text
    assert text.endswith('2 passed, 0 failed, 0 skipped\n'), text


def one_that_fails_again_has_failed():
    names, status, text = check([record('a', 'OK'), record('b', 'TIMEOUT')], 'FAIL')
    assert names == 'b' and status == 1, (names, status)
    assert text.endswith('1 passed, 1 failed, 0 skipped\n'), text


def a_sanitizers_finding_stands():
    names, status, _ = check([record('b', 'FAIL', '==1==ERROR: AddressSanitizer: x')], 'OK')
    assert names == '' and status == 1, (names, status)


def many_failures_stand():
    names, status, _ = check([record(str(i), 'FAIL') for i in range(4)], 'OK')
    assert names == '' and status == 1, (names, status)


def nothing_runs_again_where_nothing_failed():
    names, status, text = check([record('a', 'OK')], 'OK')
    assert names == '' and status == 0 and 'alone' not in text, (names, status, text)


def main():
    cases = [one_that_passes_alone_counts_and_is_named, one_that_fails_again_has_failed,
             a_sanitizers_finding_stands, many_failures_stand, nothing_runs_again_where_nothing_failed]
    print(f'1..{len(cases)}')
    for number, case in enumerate(cases, 1):
        try:
            case()
            print(f'ok {number} - {case.__name__}')
        except AssertionError as error:
            print(f'# {error}\nnot ok {number} - {case.__name__}')


main()
