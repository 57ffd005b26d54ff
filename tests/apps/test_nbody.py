#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line of nbody, as far as it needs no device: test_nbody.py PROGRAM"""
import re
import subprocess
import sys

program = sys.argv[1]
failed = 0
number = 0


def nbody(*options):
    return subprocess.run([program, *options], capture_output=True, text=True, timeout=60)


def point(good, what):
    global failed, number
    number += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {number} - {what}")


def help_text_goes_to_stdout_with_status_0():
    for option in '-help', '--help', '-h':
        result = nbody(option)
        point(result.returncode == 0 and '-numbodies=N' in result.stdout, f'{option} explains')


def an_invalid_option_ends_with_status_2_and_is_named():
    for options, named in (
            (['-frobnicate'], 'frobnicate'),
            (['benchmark'], 'benchmark'),
            (['--'], '--'),
            (['---help'], '---help'),
            (['-numbodies=many'], 'many'),
            (['-numbodies=0'], '0'),
            (['-numbodies=99999999999999999999'], '99999999999999999999'),
            (['-numbodies='], 'numbodies'),
            (['-numbodies'], 'numbodies'),
            (['-i=-1'], '-1'),
            (['-i=1.5'], '1.5'),
            (['-blocksize=100'], 'blocksize'),
            (['-blocksize=2048'], '2048'),
            (['-fp64=yes'], 'fp64'),
            (['-compare', '-cpu'], '-cpu'),
    ):
        result = nbody(*options)
        point(result.returncode == 2 and named in result.stderr and not result.stdout,
              ' '.join(options) + ' is refused')


def cpu_reference_reports_a_rate():
    for options in (['-cpu', '-numbodies=300', '-i=2'], ['--cpu', '--numbodies', '300', '--i', '2']):
        lines = nbody(*options).stdout.splitlines()[-3:]
        point(re.fullmatch(r'300 bodies, total time for 2 iterations: [0-9.]+ ms', lines[0]) and
              re.fullmatch(r'= [0-9.]+ billion interactions per second', lines[1]) and
              re.fullmatch(r'= [0-9.]+ double-precision GFLOP/s at 20 flops per interaction',
                           lines[2]),
              ' '.join(options))


help_text_goes_to_stdout_with_status_0()
an_invalid_option_ends_with_status_2_and_is_named()
cpu_reference_reports_a_rate()
print(f'1..{number}')
sys.exit(failed > 0)
