#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# deps.sh [check]: installs the packages of Debian 12 that the build needs and that are missing;
# with "check" also what only scripts/check.sh needs. Silent and quick when nothing is missing.
set -euo pipefail

packages="
build-essential
libcjson-dev
libcmocka-dev
libibverbs-dev
libinih-dev
liblz4-dev
libmicrohttpd-dev
libprotobuf-c-dev
librdmacm-dev
libssl-dev
libzstd-dev
meson
ninja-build
pkg-config
protobuf-c-compiler
python3
python3-pip
uthash-dev
"
if [ "${1:-}" = check ]; then
	packages="$packages clang-format"
fi

if ! command -v dpkg-query >/dev/null; then
	echo "deps.sh: this is no Debian; install what matches these packages:" $packages >&2
	exit 1
fi

missing=
for package in $packages; do
	status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) || status=none
	if [ "$status" != installed ]; then
		missing="$missing $package"
	fi
done
if [ -z "$missing" ]; then
	exit 0
fi

as_root=
if [ "$(id -u)" != 0 ]; then
	as_root=sudo
	if ! command -v sudo >/dev/null || ! sudo true; then
		echo "deps.sh: needs root; as root: apt-get install --no-install-recommends$missing" >&2
		exit 1
	fi
fi
echo "installing packages (up to a few minutes):$missing" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# A new machine may still be busy with its first updates.
apt() {
	$as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get -q -y -o DPkg::Lock::Timeout=300 "$@" >>"$log" 2>&1
}

# One source that cannot be read does not keep packages of the others from being installed.
apt update || echo "deps.sh: apt-get update failed; trying with the lists that are there" >&2
if ! apt --no-install-recommends install $missing; then
	cat "$log" >&2
	echo "deps.sh: apt-get could not install:$missing" >&2
	exit 1
fi
