# SPDX-License-Identifier: Apache-2.0
"""check_summary.py SUMMARY: what summary.py counts and shows of logs of meson test."""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

SUMMARY = Path(sys.argv[1]).resolve()


def summarize(*records):
    """Returns the exit status and the output for a log with these records: name, result, standard output."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, 'build').mkdir()
        Path(folder, 'build/testlog.json').write_text(''.join(
            json.dumps({'name': name, 'result': result, 'stdout': text}) + '\n' for name, result, text in records))
        done = subprocess.run([sys.executable, SUMMARY, '1', '0', 'build/testlog.json'], cwd=folder,
                              stdout=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout


def cases_count_for_themselves():
    status, text = summarize(('a', 'OK', 'ok 1 - x\nok 2 - y # SKIP no GPU\n'), ('b', 'OK', ''))
    assert status == 0 and text.endswith('3 passed, 0 failed, 1 skipped\n'), text


def a_failed_case_is_shown_with_its_reason():
    status, text = summarize(('a', 'FAIL', 'ok 1 - x\n# why\nnot ok 2 - y\n'))
    assert status == 1 and 'failed in build: a (FAIL)\n# why\nnot ok 2 - y\n' in text, text
    assert text.endswith('2 passed, 1 failed, 0 skipped\n'), text


def a_program_that_ends_early_has_failed():
    status, text = summarize(('a', 'TIMEOUT', 'ok 1 - x\n'))
    assert status == 1 and text.endswith('2 passed, 1 failed, 0 skipped\n'), text


def a_report_of_a_sanitizer_comes_first():
    report = '# WARNING: ThreadSanitizer: data race\n# in f\n# SUMMARY: x\n'
    status, text = summarize(('a', 'ERROR', report + '# more\n' * 30 + 'not ok 1 - x\n'))
    assert status == 1 and text.index('data race') < text.index('# more'), text


def an_empty_log_is_a_failure():
    status, text = summarize()
    assert status == 1 and 'no test was run' in text, text


def main():
    cases = [cases_count_for_themselves, a_failed_case_is_shown_with_its_reason, a_program_that_ends_early_has_failed,
             a_report_of_a_sanitizer_comes_first, an_empty_log_is_a_failure]
    print(f'1..{len(cases)}')
    for number, case in enumerate(cases, 1):
        try:
            case()
            print(f'ok {number} - {case.__name__}')
        except AssertionError as error:
            print(f'# {error}\nnot ok {number} - {case.__name__}')


main()
