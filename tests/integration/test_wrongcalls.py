# SPDX-License-Identifier: Apache-2.0
"""test_wrongcalls.py PART PARTS: every function of the driver API, called wrongly in every way that wrongcalls.cc knows,
answers what NVIDIA's driver answers (tests/apps/expected/wrongcalls.txt), and what is called next works.

wrongcalls_differences.txt lists the differences with their reasons.  A line there that does not apply any more fails, too.
"""
import os
import re
import sys
import tempfile

from harness import SOFTWARE, Daemon, Skip, case, main, read_file, require

HERE = os.path.dirname(__file__)
APPS = os.path.join(HERE, "..", "apps")
sys.path.insert(0, APPS)
from wrongcalls_answers import ENDS, answers_of, read, read_line, written  # noqa: E402

PART, PARTS = int(sys.argv[1]), int(sys.argv[2])
sys.argv[1:] = []
TABLE = os.path.join(os.environ["GP_APPS"], "wrongcalls_table.h")
NAMES = re.findall(r'"(cu\w+)"', read_file(TABLE))[PART::PARTS]
EXPECTED = read(read_file(os.path.join(APPS, "expected", "wrongcalls.txt")).splitlines())
REASONS = os.path.join(HERE, "wrongcalls_differences.txt")
# The next call fails with one of these because of the state of the context, or of a capture.
IN_THE_WAY = {"CONTEXT_IS_DESTROYED", "INVALID_CONTEXT", "STREAM_CAPTURE_UNSUPPORTED"}
DEVICE = "software device: "
DIFFERENCES_MAX = 15
PAGE = os.path.join(HERE, "../../docs/supported.md")


def differences(software=SOFTWARE):
    """{(function, case): answer} of wrongcalls_differences.txt.  What differs because of the software device does so there alone."""
    found, reason = {}, None
    for line in read_file(REASONS).splitlines():
        if line.startswith("cu"):
            require(reason, f"no reason: {line}")
            if software or not reason.startswith(DEVICE):
                found.update(read_line(line))
        elif line and not line.startswith("#"):
            reason = line
    return found


def call_all(daemon):
    """{(function, case): answer} of all functions of this part."""
    ends = [f"{function}, {how}\n" for (function, how), answer in EXPECTED.items() if answer == ENDS]
    with tempfile.NamedTemporaryFile("w") as file:
        file.writelines(ends)
        file.flush()
        result = daemon.run("wrongcalls", "--ends", file.name, *NAMES, seconds=1800)
    return answers_of(result.expect().out.splitlines())


def check_each(answers):
    """Independently of the driver's results: no call ends the process, and the next call works."""
    for (name, how), answer in answers.items():
        require(answer != ENDS and answer[0].isupper(), f"{name}, {how}: {answer}")
        if how == "then cuCtxSynchronize":
            require(answer == "SUCCESS" or answer in IN_THE_WAY, f"{name}, {how}: {answer}")
    for name in NAMES:
        require((name, "then cuCtxSynchronize") in answers, f"{name} was not tried to the end")


def check_against_driver(answers):
    compared = {call for call, answer in EXPECTED.items() if answer != ENDS and call[0] in NAMES}
    missing = sorted(compared - answers.keys())
    require(not missing, f"not called as the driver was: {missing}")
    differ = {call: answers[call] for call in answers if call in compared and answers[call] != EXPECTED[call]}
    listed = {call: answer for call, answer in differences().items() if call[0] in NAMES}
    new = {call: answer for call, answer in differ.items() if listed.get(call) != answer}
    gone = {call: answer for call, answer in listed.items() if differ.get(call) != answer}
    driver = {call: EXPECTED[call] for call in new}
    require(not new and not gone, "\n".join(
        ["answers differ from the driver's:", *written(new), "where it returns:", *written(driver),
         "listed, and not so any more:", *written(gone)]))


@case(f"wrong calls of {len(NAMES)} functions return what the driver returns, and the next call is as ever")
def _():
    with Daemon() as daemon:
        answers = call_all(daemon)
    check_each(answers)
    check_against_driver(answers)


@case(f"at most {DIFFERENCES_MAX} answers differ from a GPU's, and the page names each")
def _():
    listed = differences(software=False)
    require(0 < len(listed) <= DIFFERENCES_MAX, f"{len(listed)} differ")
    if not os.path.exists(PAGE):
        raise Skip("no docs/supported.md here")
    page = read_file(PAGE)
    missing = sorted({function for function, _ in listed if f"`{function}`" not in page})
    require(not missing, f"docs/supported.md does not name {missing}")


if __name__ == "__main__":
    sys.exit(main())
