#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a program through the client and the daemon of a build folder; usage() has the details.
set -euo pipefail

usage() {
	cat <<-EOF
		usage: scripts/run.sh BUILD PROGRAM [ARGUMENT...]

		Starts the daemon of the build folder BUILD on a port of loopback, runs PROGRAM with
		BUILD's client library, and ends the daemon. The daemon uses the machine's GPU, or the
		software device where there is none. The exit status is PROGRAM's.
	EOF
}

case ${1:-} in
-h | --help)
	usage
	exit
	;;
esac
if [ $# -lt 2 ]; then
	usage >&2
	exit 2
fi
build=$(realpath -e -- "$1")
shift
work=$(mktemp -d)
daemon=

finish() {
	if [ -n "$daemon" ]; then
		kill "$daemon" 2>/dev/null || true
		wait "$daemon" 2>/dev/null || true
	fi
	rm -rf "$work"
}
trap finish EXIT

# It uses nothing of a pool of this machine: neither configuration, admin socket nor user.
options="--listen 127.0.0.1:0 --print-address --admin-socket off"
if [ "$(id -u)" = 0 ]; then
	options="$options --user root"
fi
CONFIGURATION_DIRECTORY=$work "$build/server/gpupoold" $options >"$work/address" 2>"$work/log" &
daemon=$!
until address=$(sed -n 's/^listening on //p' "$work/address") && [ -n "$address" ]; do
	kill -0 "$daemon" 2>/dev/null || {
		cat "$work/log" >&2
		echo "run.sh: the daemon did not start" >&2
		exit 1
	}
	sleep 0.1
done

export REMOTE_GPU=$address LD_LIBRARY_PATH=$build/client${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# A program without the sanitizer's runtime has to load it first.
sanitizer=$(ldd "$build/client/libcuda.so.1" | awk '/lib[at]san/ { print $3 }')
if [ -n "$sanitizer" ]; then
	export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0}
	LD_PRELOAD=$sanitizer "$@"
else
	"$@"
fi
