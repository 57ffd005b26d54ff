# SPDX-License-Identifier: Apache-2.0
# For scripts that build: shows progress, and the errors of a build that fails.

# build_with_progress FOLDER LOG TARGET...: runs ninja there. A terminal has its progress, a file a line every
# 20 seconds.
build_with_progress() {
	local folder=$1 log=$2 pid
	shift 2
	if [ -t 2 ]; then
		ninja -C "$folder" "$@" >&2
		return
	fi
	NINJA_STATUS='[%f/%t] ' ninja -C "$folder" "$@" >"$log" 2>&1 &
	pid=$!
	show_while "$pid" "$folder" "sed -n 's/^\\(\\[[0-9/]*\\]\\).*/\\1/p' '$log' | tail -1"
	wait "$pid" && return
	sed -n '/^FAILED/,$p' "$log" >&2
	grep -q '^FAILED' "$log" || tail -20 "$log" >&2
	return 1
}

# show_while PID NAME COMMAND: until the process has ended, a line every 20 seconds with what the command prints.
show_while() {
	local waited=0
	while kill -0 "$1" 2>/dev/null; do
		sleep 1
		waited=$((waited + 1))
		if [ $((waited % 20)) = 0 ]; then
			echo "${2##*/}: $(eval "$3"), after $((waited / 60)) min $((waited % 60)) s" >&2
		fi
	done
}
