#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fetches NVIDIA's nvidia-smi for tests/integration/test_smi.py into .toolkit/smi of this repository:
# a folder for each of two Debian releases (scripts/debian.sh). Quick and silent when all are there.
# NVIDIA's licence lets everyone have the file, but not change it.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
own=$root/.toolkit/smi
. "$root/scripts/debian.sh"
# With the branches 535 and 550 of the driver.
releases="bookworm trixie"

for release in $releases; do
	[ -x "$own/$release/nvidia-smi" ] || missing="${missing:-} $release"
done
if [ -z "${missing:-}" ]; then
	exit 0
fi
echo "fetching nvidia-smi (1 MB) into .toolkit/smi" >&2
mkdir -p "$own"
work=$(mktemp -d "$own/.work.XXXXXX")
trap 'rm -rf "$work"' EXIT

debian_open "$work" $missing
for release in $missing; do
	debian_fetch "$work/$release" "nvidia-smi/$release"
	(cd "$work/$release" && dpkg-deb -x ./*.deb .)
	mkdir -p "$own/$release"
	cp "$work/$release/usr/lib/nvidia/current/nvidia-smi" "$own/$release/nvidia-smi"
done
