#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# deps.sh [check|packages KIND...|release]: installs the packages of Debian 12 that the build needs and that are
# missing; with "check" also what only scripts/check.sh needs, with "packages" what scripts/packages.sh does for
# these kinds (deb rpm tar wheel arm), with "release" what scripts/check_release.sh does. Silent and quick when
# nothing is missing.
set -euo pipefail

packages="
build-essential
libcjson-dev
libcmocka-dev
libibverbs-dev
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
welcome=
if [ "${1:-}" = check ]; then
	packages="$packages clang clang-format"
	# For scripts/fuzz.sh and bench/rdma; tests of a silent network (nft), and in a virtual machine (scripts/vm.sh),
	# are skipped without them.
	welcome="ibverbs-providers iproute2 libclang-rt-14-dev nftables perftest qemu-system-x86 xz-utils"
fi
kinds=
if [ "${1:-}" = packages ]; then
	kinds=" ${*:2} "
elif [ "${1:-}" = release ]; then
	kinds=" deb rpm tar wheel arm "
	welcome="arch-test buildah g++-aarch64-linux-gnu iproute2 lintian mmdebstrap procps qemu-user-static rpmlint"
fi
case $kinds in *" deb "*) packages="$packages debhelper dpkg-dev fakeroot" ;; esac
case $kinds in *" rpm "*) packages="$packages rpm" ;; esac
case $kinds in *" arm "*) packages="$packages binutils-aarch64-linux-gnu" ;; esac

if ! command -v dpkg-query >/dev/null; then
	echo "deps.sh: this is no Debian; install what matches these packages:" $packages $welcome >&2
	exit 1
fi

# missing PACKAGE...: prints those that are not installed.
missing() {
	local package status
	for package in "$@"; do
		status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) || status=none
		if [ "$status" != installed ]; then
			echo "$package"
		fi
	done
}

needed=$(missing $packages | xargs)
welcome=$(missing $welcome | xargs)
if [ -z "$needed$welcome" ]; then
	exit 0
fi

# fail TEXT: ends, as an error if the build cannot do without what is missing.
fail() {
	echo "deps.sh: $1" >&2
	if [ -n "$needed" ]; then
		exit 1
	fi
	exit 0
}

as_root=
if [ "$(id -u)" != 0 ]; then
	as_root=sudo
	if ! command -v sudo >/dev/null || ! sudo true; then
		fail "needs root; as root: apt-get install --no-install-recommends $needed $welcome"
	fi
fi
echo "installing packages (up to a few minutes): $needed $welcome" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# A new machine may still be busy with its first updates.
apt() {
	$as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get -q -y -o DPkg::Lock::Timeout=300 "$@" >>"$log" 2>&1
}

# One source that cannot be read does not keep packages of the others from being installed.
apt update || echo "deps.sh: apt-get update failed; trying with the lists that are there" >&2
if [ -n "$needed" ] && ! apt --no-install-recommends install $needed; then
	cat "$log" >&2
	fail "apt-get could not install: $needed"
fi
if [ -n "$welcome" ] && ! apt --no-install-recommends install $welcome; then
	echo "deps.sh: apt-get could not install $welcome; the tests that need them are skipped" >&2
fi
