#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# root.sh SUITE ARCHITECTURE FOLDER PACKAGE...: unpacks these packages of that Debian into FOLDER, and
# nothing that they depend on: a root without other packages.  apt-get downloads them from
# the machine's package archive.
# root.sh bionic amd64 FOLDER libc6: the C library of Ubuntu 18.04, glibc 2.27: Debian's archive has
# none as old any more.
set -euo pipefail

old=http://archive.ubuntu.com/ubuntu/pool/main/g/glibc/libc6_2.27-3ubuntu1.6_amd64.deb
old_sum=SHA256:5b813d4512491cd8fb30b2eb9192349ee75ffe3c9f21ae136cc7b2429f70c3b2
suite=$1
architecture=$2
folder=$3
shift 3
if [ "$suite $architecture $*" = "bionic amd64 libc6" ]; then
	archive=$(mktemp)
	trap 'rm -f "$archive"' EXIT
	/usr/lib/apt/apt-helper -o APT::Sandbox::User=root -o Acquire::Retries=1 -o Acquire::http::Timeout=20 \
		download-file "$old" "$archive" "$old_sum" >&2
	mkdir -p "$folder"
	dpkg-deb -x "$archive" "$folder"
	exit
fi
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
