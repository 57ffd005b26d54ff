#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where the threads of a process, and of those that it has started, spend their time.

  threads.py PID [SECONDS]

Samples each thread for SECONDS (2 s), and prints a line for each name of threads: how many
there are, processors that they keep busy, in the program and in the system, how often in a second they stop
by themselves and are stopped, and in which share of the looks they run, sleep, or wait in which function of
the kernel (where that may be seen). Needs no tool that a machine with a GPU may lack.
"""
import collections
import os
import sys
import time

import bench_clients

PAUSE = 0.002
TICK = os.sysconf('SC_CLK_TCK')
# A thread's processor time and switches until now.
Used = collections.namedtuple('Used', 'user system stopped was_stopped')


def read(path):
    with open(path, encoding='utf-8', errors='replace') as file:
        return file.read()


def used_by(task):
    fields = read(f'{task}/stat').rsplit(')', 1)[1].split()
    switches = [int(line.split()[1]) for line in read(f'{task}/status').splitlines() if 'ctxt_switches' in line]
    return Used(int(fields[11]) / TICK, int(fields[12]) / TICK, *switches)


def get_place(task):
    """Running, or where it waits."""
    if read(f'{task}/stat').rsplit(')', 1)[1].split()[0] == 'R':
        return 'runs'
    try:
        where = read(f'{task}/wchan')
    except OSError:
        where = ''
    return where if where not in ('', '0') else 'sleeps'


def list_tasks(pid):
    for process in bench_clients.get_process_tree(pid):
        try:
            yield from (f'/proc/{process}/task/{task}' for task in os.listdir(f'/proc/{process}/task'))
        except OSError:
            pass


def sample(pid, seconds):
    """name -> (number of threads, what they used in a second, place -> share of the looks)"""
    first, last, names, places = {}, {}, {}, collections.defaultdict(collections.Counter)
    begin = time.monotonic()
    while time.monotonic() - begin < seconds:
        for task in list_tasks(pid):
            try:
                if task not in first:
                    first[task], names[task] = used_by(task), read(f'{task}/comm').strip()
                places[names[task]][get_place(task)] += 1
                last[task] = used_by(task)
            except (OSError, IndexError):
                pass  # it has ended
        time.sleep(PAUSE)
    took = time.monotonic() - begin
    found = {}
    for name in sorted(set(names.values())):
        tasks = [task for task in last if names[task] == name]
        rates = [sum(getattr(last[task], what) - getattr(first[task], what) for task in tasks) / took for what in Used._fields]
        looks = sum(places[name].values())
        found[name] = len(tasks), Used(*rates), {place: count / looks for place, count in places[name].most_common(4)}
    return found


def main():
    if not 2 <= len(sys.argv) <= 3 or not sys.argv[1].isdecimal() or not os.path.isdir(f'/proc/{sys.argv[1]}'):
        sys.exit(__doc__.split('\n\n')[1].strip() + '\nPID is that of a process')
    found = sample(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 2.0)
    print(f'{"threads":16} {"count":>5} {"user":>6} {"system":>6} {"stop/s":>8} {"stopped/s":>9}  looks')
    for name, (count, used, places) in sorted(found.items(), key=lambda line: -(line[1][1].user + line[1][1].system)):
        shares = ', '.join(f'{place} {share * 100:.0f} %' for place, share in places.items())
        print(f'{name:16} {count:5} {used.user:6.2f} {used.system:6.2f} {used.stopped:8.0f} {used.was_stopped:9.0f}  {shares}')


if __name__ == '__main__':
    main()
