#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# root.sh SUITE ARCHITECTURE FOLDER PACKAGE...: unpacks these packages of that Debian into FOLDER, and
# nothing that they depend on: a root that has no more than a test wants.  They come by apt-get from
# the machine's mirror.
set -euo pipefail

suite=$1
architecture=$2
folder=$3
shift 3
mirror=$(apt-get indextargets --format '$(SITE)' 'Origin: Debian' 2>/dev/null | grep -v security | head -n 1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/parts" "$work/lists/partial" "$work/dpkg"
touch "$work/dpkg/status"
printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' "$mirror" "$suite" \
	/usr/share/keyrings/debian-archive-keyring.gpg >"$work/parts/debian.sources"

apt() {
	apt-get -q -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$work/parts" \
		-o "Dir::State::lists=$work/lists" -o "Dir::State::status=$work/dpkg/status" \
		-o APT::Sandbox::User=root -o Acquire::Languages=none \
		-o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture" \
		-o "Dir::Cache::pkgcache=" -o "Dir::Cache::srcpkgcache=" "$@"
}

cd "$work"
{ apt update && apt download "$@"; } >log 2>&1 || {
	cat log >&2
	exit 1
}
mkdir -p "$folder"
for package in *.deb; do
	dpkg-deb -x "$package" "$folder"
done
