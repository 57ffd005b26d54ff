#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# neighbours.sh [REF]: a daemon of this tree serves clients of a neighbouring version, and clients of
# this tree are served by a daemon of that version: sample programs run both ways, over tcp, and over
# TLS with a token. REF is a tag or commit; else the one that packaging/neighbour names. Builds in
# build-neighbour. Without the history that has REF it says so, and that is no failure.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
ref=${1:-$(grep -v '^#' packaging/neighbour)}
work=$root/build-neighbour
# Memory of each kind, streams, graphs, code, text: each program by both runtimes.
programs='vectoradd copies copies2d memset asyncalloc pinned managed streams events graphs hostfunc symbols printf'

if ! commit=$(git rev-parse --quiet --verify "$ref^{commit}" 2>/dev/null); then
	echo "neighbours.sh: skipped: the history that is here does not have $ref"
	exit 0
fi

# build SOURCE NAME TARGET...: what differs from the last time.
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

# both DAEMON CLIENT: the programs, served by the daemon of one build, with the client of another.
both() {
	local runtime
	for runtime in static shared; do
		echo "== daemon: $1, client: $2, $runtime runtime"
		env PYTHONDONTWRITEBYTECODE=1 GP_SANITIZE=none \
			GP_DAEMON="$work/$1/server/gpupoold" GP_CTL="$work/$1/ctl/gpupoolctl" \
			GP_DRIVER="$work/$1/softgpu/driver/libcuda-soft.so" GP_CLIENT="$work/$2/client" \
			GP_APPS="$work/this/tests/apps" GP_CERTIFICATES="$work/this/tests/makecertificates" \
			python3 tests/integration/test_apps.py "$runtime" $programs | tee "$work/said"
		! grep -q '^not ok' "$work/said" && grep -q '^ok ' "$work/said"
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
apps=
for program in $programs; do
	apps+=" tests/apps/$program tests/apps/$program-shared"
done
build "$work/source" neighbour $parts
build "$root" this $parts tests/makecertificates $apps
both this neighbour
both neighbour this
echo "neighbours.sh: this version and $ref work together"
