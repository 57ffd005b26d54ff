#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_release.sh [STEP]...: the checks of a release beyond those of a change: all packages are built,
# linted, installed in a clean root of Debian 12, used and removed there; those for aarch64 in one under qemu-user;
# the client runs in roots with an old C library; images of containers are built and run; the neighbouring version
# works together with this one; what "meson dist" packs builds on Debian 12 and 13. All steps unless some are named.
# Needs root, for the roots. Ends with a table of what each step took, and the sum.
# CHECK_RELEASE_BUILT=1 takes the packages that the last call has built.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
steps=${*:-lint deb rpm tar wheel arm containers pool upgrade portable neighbours litmus dist}
if [ "$(id -u)" != 0 ]; then
	echo "check_release.sh: needs root, to change into roots of its own" >&2
	exit 2
fi
scripts/deps.sh release
work=$root/build-release
out=$work/out
clean=$work/root
daemon=
mkdir -p "$work"
version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" meson.build)

stop_daemon() {
	if [ -n "$daemon" ]; then
		# in_root has it below itself.
		pkill -P "$daemon" || true
		kill "$daemon" 2>/dev/null || true
		wait "$daemon" 2>/dev/null || true
		daemon=
	fi
}

for part in roots machine packages aarch64 pool upgrade sources containers; do
	. "scripts/release/$part.sh"
done
trap 'machines_stop; stop_daemon' EXIT

fail() {
	echo "check_release.sh: $*" >&2
	exit 1
}

# A daemon on the software device, of a folder's programs: sets REMOTE_GPU.
start_daemon() {
	local address=$work/address
	: >"$address"
	"$@" --listen 127.0.0.1:0 --print-address --admin-socket off --insecure >"$address" \
		2>"$work/daemon.log" &
	daemon=$!
	for _ in $(seq 200); do
		REMOTE_GPU=$(sed -n 's/^listening on \(tcp:.*\)/\1/p' "$address")
		if [ -n "$REMOTE_GPU" ]; then
			export REMOTE_GPU
			return
		fi
		sleep 0.1
	done
	cat "$work/daemon.log" >&2
	fail "the daemon does not start"
}

# expect_sums COMMAND...: the program of tests/portable runs well.
expect_sums() {
	local said
	said=$("$@" 2>&1) || fail "$*: $said"
	[[ $said == *" devices, 65536 sums" ]] || fail "$*: $said"
}

step_packages() {
	rm -rf "$out"
	scripts/packages.sh "$out"
}

# run STEP: shows its output to descriptor 3, and all other output if it fails.
# A step runs in a shell of its own, outside of a condition: there "set -e" holds, and what it started
# ends with it.
run() {
	local wall user system status TIMEFORMAT='%0R %0U %0S'
	echo "== $1"
	set +e
	{
		time {
			(
				set -e
				trap 'machines_stop; stop_daemon' EXIT
				"step_$1"
			) 3>&1 >"$work/$1.log" 2>&1 </dev/null
		}
	} 2>"$work/time"
	status=$?
	set -e
	read -r wall user system <"$work/time"
	if [ "$status" = 0 ]; then
		passed=$((passed + 1))
	else
		tail -40 "$work/$1.log"
		failed=$((failed + 1))
		failures+=" $1"
	fi
	table+=$(printf '%-12s %6d s %6d s' "$1" "$wall" $((user + system)))$'\n'
	processor=$((processor + user + system))
}

passed=0
failed=0
failures=
processor=0
table=
begin=$SECONDS
if [ -z "${CHECK_RELEASE_BUILT:-}" ] || [ ! -d "$out" ]; then
	run packages
	[ "$failed" = 0 ] || fail "the packages could not be built"
fi
for step in $steps; do
	run "$step"
done
printf '\n%-12s %8s %8s\n%s' step time processor "$table"
printf '%-12s %6d s %6d s\n' all $((SECONDS - begin)) "$processor"
echo "$passed passed, $failed failed${failures:+:$failures}"
[ "$failed" = 0 ]
