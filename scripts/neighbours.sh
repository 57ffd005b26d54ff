#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# neighbours.sh [REF]: a daemon of this tree serves clients of a neighbouring version, and clients of
# this tree are served by a daemon of that version: sample programs run both ways, over tcp, and over
# TLS with a token. REF is a tag or commit; else the one that packaging/neighbour names, which also lists the
# programs that cannot work with it, and why: those must be refused, and disturb no other client. Builds in
# build-neighbour. If the history has no REF, prints a line and succeeds.
# NEIGHBOUR_BUILT=FOLDER is this tree, built, its files as in a build folder. neighbours.sh --targets prints what of
# tests/apps must be there.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
ref=${1:-$(sed -n 's/^ref //p' packaging/neighbour)}
apart=
case ${1:-} in
'' | --targets) apart=$(sed -n 's/^apart \([a-z]*\) .*/\1/p' packaging/neighbour) ;;
esac
work=$root/build-neighbour
# Memory of each kind, streams, graphs, code, text: each program by both runtimes.
programs='vectoradd copies copies2d memset asyncalloc pinned managed streams events graphs hostfunc symbols printf'
apps=
for program in $programs $apart; do
	apps+=" tests/apps/$program tests/apps/$program-shared"
done
if [ "$ref" = --targets ]; then
	echo "$apps"
	exit
fi
this=${NEIGHBOUR_BUILT:-$work/this}

if ! commit=$(git rev-parse --quiet --verify "$ref^{commit}" 2>/dev/null); then
	echo "neighbours.sh: skipped: the history that is here does not have $ref"
	exit 0
fi

# build SOURCE NAME TARGET...: builds the targets that have changed since the last time.
build() {
	local source=$1 name=$2
	shift 2
	if [ ! -f "$work/$name/build.ninja" ]; then
		meson setup "$work/$name" "$source" --buildtype=release "-Dtoolkit=$(scripts/toolkit.sh)" >"$work/$name.log"
	fi
	ninja -C "$work/$name" --quiet "$@" >>"$work/$name.log" 2>&1 || {
		tail -40 "$work/$name.log" >&2
		echo "neighbours.sh: $name cannot be built" >&2
		exit 1
	}
}

# try DAEMON CLIENT RUNTIME PROGRAM...: served by the daemon of one build, with the client of another.
try() {
	local daemon=$1 client=$2 runtime=$3
	shift 3
	env PYTHONDONTWRITEBYTECODE=1 GP_SANITIZE=none GP_DAEMON="$daemon/server/gpupoold" \
		GP_CTL="$daemon/ctl/gpupoolctl" GP_DRIVER="$daemon/softgpu/driver/libcuda-soft.so" \
		GP_CLIENT="$client/client" GP_APPS="$this/tests/apps" \
		GP_CERTIFICATES="$this/tests/makecertificates" \
		python3 tests/integration/test_apps.py "$runtime" "$@" >"$work/said" || true
	cat "$work/said"
}

# both DAEMON CLIENT TEXT
both() {
	local program runtime
	for runtime in static shared; do
		echo "== $3, $runtime runtime"
		try "$1" "$2" "$runtime" $programs
		! grep '^not ok' "$work/said" && grep -q '^ok ' "$work/said"
	done
	for program in $apart; do
		# One that is admitted after it shows that the daemon lives.
		try "$1" "$2" static "$program" vectoradd
		[ "$(grep -c '^ok ' "$work/said")" = 1 ] && grep -q "^not ok.*$program" "$work/said" &&
			grep -q " ended with 1 after" "$work/said" || {
			echo "neighbours.sh: $3: $program is not refused, as packaging/neighbour says" >&2
			exit 1
		}
		echo "neighbours.sh: $3: $program is refused: $(sed -n "s/^apart $program //p" packaging/neighbour)"
	done
}

mkdir -p "$work"
if [ "$(cat "$work/commit" 2>/dev/null)" != "$commit" ]; then
	rm -rf "$work/source" "$work/neighbour"
	mkdir "$work/source"
	git archive "$commit" | tar -x -C "$work/source"
	echo "$commit" >"$work/commit"
fi
parts='client/libcuda.so.1 server/gpupoold ctl/gpupoolctl softgpu/driver/libcuda-soft.so'
build "$work/source" neighbour $parts
if [ -z "${NEIGHBOUR_BUILT:-}" ]; then
	build "$root" this $parts tests/makecertificates $apps
fi
both "$this" "$work/neighbour" "this daemon, that client"
both "$work/neighbour" "$this" "that daemon, this client"
echo "neighbours.sh: this version and $ref work together"
