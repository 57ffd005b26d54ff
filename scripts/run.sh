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
. "$(dirname "${BASH_SOURCE[0]}")/daemon.sh"
start_daemon "$build"

export REMOTE_GPU=$address LD_LIBRARY_PATH=$build/client${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# A program without the sanitizer's runtime has to load it first.
sanitizer=$(ldd "$build/client/libcuda.so.1" | awk '/lib[at]san/ { print $3 }')
if [ -n "$sanitizer" ]; then
	export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0}
	LD_PRELOAD=$sanitizer "$@"
else
	"$@"
fi
