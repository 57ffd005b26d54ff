#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the daemon, the client and their commands, starts a daemon on loopback and runs nbody through it; on
# a machine with a GPU also without it. The daemon's device is the machine's GPU, or a software device where
# there is none. build-demo/bin has the commands afterwards.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
. scripts/progress.sh
. scripts/daemon.sh
scripts/deps.sh
toolkit=$(scripts/toolkit.sh)
build=$root/build-demo

die() {
	echo "demo.sh: $*" >&2
	if [ -s "$work/daemon.log" ]; then
		echo "the daemon's log:" >&2
		tail -20 "$work/daemon.log" >&2
	fi
	exit 1
}

build_all() {
	local targets="server/gpupoold client/libcuda.so.1 nvml/libnvidia-ml.so.1 softgpu/driver/libcuda-soft.so
		ctl/gpupoolctl cli/gpupool bench/nbody/nbody bench/nbody/nbody-shared"
	if [ ! -f "$build/build.ninja" ] || [ "$(cat "$build/.toolkit" 2>/dev/null)" != "$toolkit" ]; then
		echo "building in ${build##*/} (a minute or two)"
		rm -rf "$build"
		meson setup "$build" "-Dtoolkit=$toolkit" --buildtype=release >"$work/setup.log" 2>&1 || {
			cat "$work/setup.log" >&2
			die "meson setup failed"
		}
		echo "$toolkit" >"$build/.toolkit"
	else
		echo "building"
	fi
	build_with_progress "$build" "$work/build.log" $targets || die "the build failed"
	mkdir -p "$build/bin"
	ln -sf ../server/gpupoold ../ctl/gpupoolctl ../cli/gpupool "$build/bin/"
}

# run HOW PROGRAM OPTION...: HOW is remote or native; output goes to $work/run.log.
run() {
	local how=$1 program=$build/bench/nbody/$2
	shift 2
	if [ "$how" = remote ]; then
		REMOTE_GPU=$address LD_LIBRARY_PATH=$build/client${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
			timeout 300 "$program" "$@" >"$work/run.log" 2>&1
	else
		env -u REMOTE_GPU timeout 300 "$program" "$@" >"$work/run.log" 2>&1
	fi
}

line() {
	printf '%-13s %-7s %-34s %-32s %s\n' "$@"
}

# compare HOW PROGRAM
compare() {
	run "$1" "$2" -compare -numbodies=4096 || {
		cat "$work/run.log" >&2
		die "$2 -compare failed ($1)"
	}
	line "$2" "$1" "$(device_name)" "4096 bodies against the CPU" "$(tail -n 1 "$work/run.log")"
}

# benchmark HOW PROGRAM: sets $rate
benchmark() {
	run "$1" "$2" -benchmark "-numbodies=$bodies" -i=10 || {
		cat "$work/run.log" >&2
		die "$2 -benchmark failed ($1)"
	}
	rate=$(sed -n 's/^= \([0-9.]*\) [a-z]*-precision GFLOP.*/\1/p' "$work/run.log")
	line "$2" "$1" "$(device_name)" "$bodies bodies, 10 iterations" "$rate GFLOP/s"
}

device_name() {
	sed -n 's/^> Compute .*\[\(.*\)\]$/\1/p' "$work/run.log"
}

build_all
start_daemon "$build"
if run native nbody -benchmark -numbodies=1024 -i=1; then
	native=yes
	bodies=512000
else
	native=
	bodies=4096
fi

echo "gpupoold listens on $address"
if [ -z "$native" ]; then
	echo "no GPU here: it serves the software device, which runs the kernels on the CPU"
fi
line program how device what result
for program in nbody nbody-shared; do
	compare remote $program
	benchmark remote $program
	remote_rate=$rate
	if [ -n "$native" ]; then
		benchmark native $program
		python3 -c "print('$program: remote is %.3f of native' % ($remote_rate / $rate))"
	fi
done
echo "done: both programs ran through gpupoold and agree with the CPU"
cat <<NEXT

next, a daemon of your own on this machine (README.md has more, under "Use it"):
    export PATH=$build/bin:\$PATH
    gpupoolctl cert init $(uname -n) localhost
    gpupoolctl token create alice -o alice.token
    gpupoold --listen tls://0.0.0.0:4833 &
    gpupool login lab tls://localhost < alice.token
    gpupool run $build/bench/nbody/nbody -compare -numbodies=4096
NEXT
