#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# How many instructions a cuLaunchKernel with six parameters takes in the process that calls it, and a
# cuGraphLaunch of graphs with 1, 10 and 300 such kernels:
#
#     bench/launch_instructions.sh BUILD
#
# BUILD is a release build (meson setup --buildtype=release) with server/gpupoold,
# client/libcuda.so.1, softgpu/driver/libcuda-soft.so and bench/launches. Valgrind counts what runs
# inside the exported function, in two runs of different length, through a daemon on the software device:
# the difference is free of what only the first launches do.
set -euo pipefail

build=$(cd "${1:?usage: launch_instructions.sh BUILD}" && pwd)
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/daemon.sh"
start_daemon "$build" --driver "$build/softgpu/driver/libcuda-soft.so"

# instructions FUNCTION COUNT [graph NODES]: the instructions of COUNT launches
instructions() {
	local function=$1
	shift
	REMOTE_GPU=$address LD_LIBRARY_PATH=$build/client valgrind --tool=callgrind \
		--callgrind-out-file="$work/out" --collect-atstart=no \
		--toggle-collect="gpc_guarded_$function*" "$build/bench/launches" "$@" >"$work/log" 2>&1 ||
		{ cat "$work/log" >&2; exit 1; }
	sed -n 's/^\(summary\|totals\): //p' "$work/out" | head -n 1
}

# count NAME FEW MANY FUNCTION [graph NODES]
count() {
	local name=$1 few=$2 many=$3 function=$4 first second
	shift 4
	first=$(instructions "$function" "$few" "$@")
	second=$(instructions "$function" "$many" "$@")
	[ "$first" -gt 0 ] || { echo "nothing was counted: has $function another name?" >&2; exit 1; }
	echo "$(((second - first) / (many - few))) instructions a $name"
}

count launch 2000 12000 cuLaunchKernel
for nodes in 1 10 300; do
	count "launch of a graph of $nodes" 50 250 cuGraphLaunch graph "$nodes"
done
