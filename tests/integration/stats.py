# SPDX-License-Identifier: Apache-2.0
"""Parser of the numbers that GPUPOOL_LOG=stats prints."""
import collections
import re

from harness import require

Stats = collections.namedtuple("Stats", "trips before causes milliseconds calls")
ASKED = {"GPUPOOL_LOG": "stats"}


def read_stats(result):
    """Blocking round trips, those before the first kernel, how many for each cause and how long each
    took, and how often each call was sent."""
    found = re.search(r"(\d+) blocking round trips, (\d+) before the first kernel", result.err)
    require(result.status == 0 and found, f"no statistics: {result}")
    waits = re.findall(r"^gpupool: stats: +(\d+) waits +([\d.]+) ms (.+)$", result.err, re.M)
    calls = re.findall(r"^gpupool: stats: +(\d+) (\w+)$", result.err, re.M)
    stats = Stats(int(found[1]), int(found[2]), {name: int(count) for count, _, name in waits},
                  {name: float(time) for _, time, name in waits}, {name: int(count) for count, name in calls})
    require(sum(stats.causes.values()) == stats.trips, f"the causes are not all round trips: {result}")
    return stats
