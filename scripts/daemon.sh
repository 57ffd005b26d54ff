# SPDX-License-Identifier: Apache-2.0
# For scripts that run programs through a daemon of their own; to be sourced. $work is a folder that is
# removed when the script ends, and the daemon ends then, too.

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

# start_daemon BUILD [OPTION...]: starts the daemon of the build folder on a port of loopback, and sets
# $address; its log is $work/daemon.log. It uses nothing of a pool of this machine: neither configuration,
# admin socket nor user, who may not be able to read the folder.
start_daemon() {
	local options="--listen 127.0.0.1:0 --print-address --admin-socket off"
	if [ "$(id -u)" = 0 ]; then
		options="$options --user root"
	fi
	: >"$work/address"
	CONFIGURATION_DIRECTORY=$work "$1/server/gpupoold" $options "${@:2}" >"$work/address" 2>"$work/daemon.log" &
	daemon=$!
	until address=$(sed -n 's/^listening on //p' "$work/address") && [ -n "$address" ]; do
		kill -0 "$daemon" 2>/dev/null || {
			cat "$work/daemon.log" >&2
			echo "${0##*/}: the daemon did not start" >&2
			exit 1
		}
		sleep 0.1
	done
}
