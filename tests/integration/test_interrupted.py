# SPDX-License-Identifier: Apache-2.0
"""Signal handlers that interrupt CUDA calls: exit, fork, exec and calls in them complete and affect no other program."""
import sys
import tempfile

from harness import SANITIZED, Daemon, case, main, run

# Processes of a case: each is interrupted at another point.
TRIES, FEWER = ("30", "10") if SANITIZED else ("150", "20")


def both(program, *args):
    """Over TCP and over shared memory."""
    with tempfile.TemporaryDirectory() as folder, Daemon("--listen", f"unix://{folder}/socket") as daemon:
        for remote in daemon.address, f"unix://{folder}/socket":
            run(program, *args, remote=remote).expect(out="interrupted: ok\n", err="")
            daemon.check_works()


@case("exit() in a handler that interrupts a call ends the program, wherever that is")
def _():
    both("interrupted", "exit", TRIES)
    both("interrupted", "timer", TRIES)


@case("exit() in a handler that interrupts cuInit() ends the program")
def _():
    both("interrupted", "init", TRIES)


@case("exit() of a program with the shared runtime ends as well")
def _():
    both("interrupted-shared", "exit", FEWER)


@case("so do quick_exit() and _exit(), and exec() leaves no descriptor open")
def _():
    for way in "quick_exit", "_exit", "exec":
        both("interrupted", way, FEWER)


@case("fork() in a handler: the child ends in every way, the parent goes on")
def _():
    both("interrupted", "fork", "1")


@case("CUDA calls of a handler that interrupts a call are refused, and the call goes on")
def _():
    both("interrupted", "call", "1")


@case("a thread that is canceled in a CUDA call leaves no mutex locked")
def _():
    both("interrupted", "cancel", "40")


@case("exit() ends the program in a host function, and while one does not return")
def _():
    with tempfile.TemporaryDirectory() as folder, Daemon("--listen", f"unix://{folder}/socket") as daemon:
        for remote in daemon.address, f"unix://{folder}/socket":
            for way in "hostexit", "hostnever":
                run("interrupted", way, "0", remote=remote).expect(status=7, out="", err="")
            daemon.check_works()


if __name__ == "__main__":
    sys.exit(main())
