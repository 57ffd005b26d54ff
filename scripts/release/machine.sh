# SPDX-License-Identifier: Apache-2.0
# Machines for scripts/check_release.sh, which reads this file: roots of Debian in which systemd runs
# (scripts/release/boot.sh), joined by a cable.  They show what a user gets: real units, real ssh, real
# upgrades.  They share only the kernel and the clock with this machine.
declare -A machines

# machine_start NAME FOLDER: the files of FOLDER (make_root) as a running machine.
machine_start() {
	local name=$1 outer inner=
	echo "$name" >"$2/etc/hostname"
	unshare --mount --net --uts --ipc --pid --fork --kill-child \
		scripts/release/boot.sh "$2" "$name" >"$work/$name.boot" 2>&1 </dev/null &
	outer=$!
	for _ in $(seq 100); do
		inner=$(pgrep -P "$outer" || true)
		if [ -n "$inner" ] && [ "$(cat "/proc/$inner/comm" 2>/dev/null)" = systemd ]; then
			break
		fi
		sleep 0.1
	done
	[ -n "$inner" ] || fail "$2 does not start: $(cat "$work/$name.boot")"
	machines[$name]="$inner $outer"
	nsenter -t "$inner" --net ip link set lo up
	for _ in $(seq 100); do
		if [ -S "/proc/$inner/root/run/systemd/private" ]; then
			break
		fi
		sleep 0.1
	done
	on "$name" 'timeout 60 systemctl is-system-running --wait' || {
		cat "$work/$name.boot" >&2
		on "$name" 'systemctl --failed --no-pager; journalctl -b --no-pager -p warning' >&2
		fail "systemd does not start in $2"
	}
}

# machine_cable NAME NAME: 10.77.0.1 and 10.77.0.2, by name.
machine_cable() {
	local name number=0 a=${machines[$1]% *} b=${machines[$2]% *}
	ip link add eth0 netns "$a" type veth peer name eth0 netns "$b"
	for name in "$@"; do
		number=$((number + 1))
		nsenter -t "${machines[$name]% *}" --net ip address add "10.77.0.$number/24" dev eth0
		nsenter -t "${machines[$name]% *}" --net ip link set eth0 up
		on "$1" "echo 10.77.0.$number $name >>/etc/hosts"
		on "$2" "echo 10.77.0.$number $name >>/etc/hosts"
	done
}

# inside NAME COMMAND NAMESPACE...: a line for its shell, in root's folder.
inside() {
	local name=$1 command=$2
	shift 2
	nsenter -t "${machines[$name]% *}" --mount --uts --ipc --pid --cgroup "$@" env -i HOME=/root \
		PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive sh -c "cd && $command" </dev/null
}

on() {
	inside "$1" "$2" --net
}

# fetching NAME COMMAND: with this machine's network: the cable does not lead to Debian's archive.
fetching() {
	inside "$1" "$2"
}

machines_stop() {
	local name
	for name in "${!machines[@]}"; do
		# Its first process, and so all of them.
		kill -KILL "${machines[$name]% *}" || true
		wait "${machines[$name]#* }" 2>/dev/null || true
		unset "machines[$name]"
		unshare --mount sh -c 'mount -t cgroup2 cgroup2 /mnt &&
			find "/mnt/$0" -depth -type d -exec rmdir {} +' "$name" || true
	done
}
