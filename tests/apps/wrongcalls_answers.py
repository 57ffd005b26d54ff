# SPDX-License-Identifier: Apache-2.0
"""wrongcalls_answers.py: converts the output of wrongcalls (stdin) to the short form of expected/wrongcalls.txt (stdout).

A line has a function, an answer without its CUDA_ERROR_ or CUDA_, and the cases that it answers so:

    cuMemFree_v2 INVALID_VALUE: argument 1 16, right

The answer ENDS stands for calls that end the process: nothing is compared with those.
"""
import sys

ENDS = "ENDS"
ENDINGS = {"crashed", "did not return"}


def answers_of(lines):
    """The output of wrongcalls -> {(function, case): answer}."""
    found = {}
    for line in lines:
        call, _, answer = line.rstrip("\n").rpartition(": ")
        function, comma, case = call.partition(", ")
        if comma:
            found[function, case] = ENDS if answer in ENDINGS else answer.removeprefix("CUDA_").removeprefix("ERROR_")
    return found


def written(answers):
    """{(function, case): answer} -> lines of the short form."""
    cases = {}
    for (function, case), answer in answers.items():
        cases.setdefault((function, answer), []).append(case)
    return [f"{function} {answer}: {', '.join(cases)}" for (function, answer), cases in cases.items()]


def read_line(line):
    """A line of the short form -> {(function, case): answer}."""
    head, _, cases = line.rstrip("\n").partition(": ")
    function, answer = head.split(" ")
    return {(function, case): answer for case in cases.split(", ")}


def read(lines):
    """Reads the short form, without empty lines and lines that begin with #."""
    found = {}
    for line in lines:
        if line.strip() and not line.startswith("#"):
            found.update(read_line(line))
    return found


if __name__ == "__main__":
    print("\n".join(written(answers_of(sys.stdin))))
