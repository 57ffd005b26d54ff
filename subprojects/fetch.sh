#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Puts the sources of list.txt into this folder, with the build files beside that list: here Meson
# finds them when told to take no library of the machine's.
# They come as source packages of Debian 12, by apt-get, and are compared with the list.  Silent and
# quick when all are there.
# fetch.sh FOLDER: one of those without a build file, too, which come only when they are named.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

fail() {
	echo "fetch.sh: $1" >&2
	exit 1
}

# The machine's mirror of Debian, asked for sources of Debian 12 only.
apt() {
	apt-get -q -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$work/parts" \
		-o "Dir::State::lists=$work/lists" -o APT::Sandbox::User=root "$@"
}

name_mirror() {
	local mirror keys=/usr/share/keyrings/debian-archive-keyring.gpg
	mirror=$(apt-get indextargets --format '$(SITE)' 'Origin: Debian' 2>/dev/null |
		grep -v security | head -n 1)
	[ -n "$mirror" ] || fail "apt knows no mirror of Debian (apt-get update?)"
	mkdir -p "$work/parts" "$work/lists/partial"
	printf 'Types: deb-src\nURIs: %s\nSuites: bookworm\nComponents: main\nSigned-By: %s\n' \
		"$mirror" "$keys" >"$work/parts/debian.sources"
}

# unpack FOLDER SHA256: what was just fetched.
unpack() {
	local archive
	archive=$(ls "$work"/*.orig.tar.*[!c])
	[ "$2" = signed ] || [ "$(sha256sum <"$archive")" = "$2  -" ] ||
		fail "$(basename "$archive") is not what subprojects/list.txt says"
	# With Debian's patches.
	(cd "$work" && dpkg-source --no-check -x ./*.dsc "$1" >>log 2>&1) || fail "$(cat "$work/log")"
	[ ! -e "$here/$1.build" ] || cp "$here/$1.build" "$work/$1/meson.build"
	rm "$work"/*.dsc "$work"/*.tar.*
	rm -rf "${here:?}/$1"
	mv "$work/$1" "$here/$1"
}

work=
while read -r folder package sum; do
	case $folder in '' | '#'*) continue ;; esac
	if [ -e "$here/$folder.build" ]; then
		if cmp -s "$here/$folder.build" "$here/$folder/meson.build"; then
			continue
		fi
	elif [ "$folder" != "${1:-}" ] || [ -d "$here/$folder" ]; then
		continue
	fi
	if [ -z "$work" ]; then
		echo "fetching sources of libraries into subprojects" >&2
		work=$(mktemp -d)
		trap 'rm -rf "$work"' EXIT
		name_mirror
		apt update >"$work/log" 2>&1 || fail "$(cat "$work/log")"
	fi
	(cd "$work" && apt source --download-only "$package" >>"$work/log" 2>&1) ||
		fail "$(cat "$work/log")"
	unpack "$folder" "$sum"
done <"$here/list.txt"
