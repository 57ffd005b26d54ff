#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fetches NVIDIA's nvidia-smi for tests/integration/test_smi.py into .toolkit/smi of this repository:
# a folder for each of two Debian releases, from the part non-free of the archive that this machine
# uses. apt checks its signature; nothing is installed and the machine's own sources stay as they
# are. Quick and silent when all are there. NVIDIA's licence lets everyone have the file, but not
# change it.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
own=$root/.toolkit/smi
# With the branches 535 and 550 of the driver.
releases="bookworm trixie"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

for release in $releases; do
	[ -x "$own/$release/nvidia-smi" ] || missing="${missing:-} $release"
done
if [ -z "${missing:-}" ]; then
	exit 0
fi
archive=
if [ "$(uname -m)" = x86_64 ] && [ -f "$keyring" ] && command -v apt-get >/dev/null; then
	archive=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
		'Origin: Debian' 'Label: Debian' 'Component: main' | sed -n 1p)
fi
if [ -z "$archive" ]; then
	echo "smi.sh: needs Debian on x86-64, after 'apt-get update'" >&2
	exit 1
fi
echo "fetching nvidia-smi (1 MB) into .toolkit/smi" >&2
mkdir -p "$own"
work=$(mktemp -d "$own/.work.XXXXXX")
trap 'rm -rf "$work"' EXIT

apt() {
	timeout 300 apt-get -qq -o Dir::Etc::sourcelist="$work/sources" -o Dir::Etc::sourceparts=- \
		-o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User= "$@" >&2
}

mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
for release in $missing; do
	echo "deb [signed-by=$keyring] $archive $release non-free"
done >"$work/sources"
apt update
for release in $missing; do
	mkdir "$work/$release"
	(cd "$work/$release" && apt download "nvidia-smi/$release" && dpkg-deb -x ./*.deb .)
	mkdir -p "$own/$release"
	cp "$work/$release/usr/lib/nvidia/current/nvidia-smi" "$own/$release/nvidia-smi"
done
