# SPDX-License-Identifier: Apache-2.0
# The step of scripts/check_release.sh, which reads this file, that upgrades a daemon at work: on a machine with
# systemd, from this version's packages to the same with a higher number, of both kinds.

# busy NAME FILE: a program on this machine that computes for some minutes, and writes its status to FILE.
start_busy() {
	on "$1" "{ REMOTE_GPU=unix:///run/gpupool/gpupool.sock LD_LIBRARY_PATH=/usr/lib/gpupool timeout ${3:-300} \
		./nbody -benchmark -numbodies=4096 -i=${4:-100000}; echo status \$?; } >$2 2>&1 &"
	for _ in $(seq 100); do
		if on "$1" 'gpupoolctl client list' 2>&1 | grep -q nbody; then
			return
		fi
		sleep 0.1
	done
	on "$1" "cat $2; systemctl status --no-pager gpupoold; journalctl --no-pager -u gpupoold" >&2
	fail "no session of nbody on $1"
}

# await_end NAME FILE: until the program has ended.
await_end() {
	for _ in $(seq 300); do
		if on "$1" "grep -q ^status $2"; then
			return
		fi
		sleep 0.1
	done
	fail "nbody on $1 does not end: $(on "$1" "cat $2")"
}

# upgrades NAME INSTALL UPGRADE DOWNGRADE: commands there.
upgrades() {
	local name=$1 first second
	on "$name" "$2"
	on "$name" 'gpupoolctl cert init gpunode && systemctl enable --now gpupoold' >&2
	first=$(on "$name" 'systemctl show -p MainPID --value gpupoold')
	start_busy "$name" ended
	on "$name" "$3" >"$work/upgrade-$name.txt" 2>&1 || fail "$(cat "$work/upgrade-$name.txt")"
	cat "$work/upgrade-$name.txt"
	grep -q 'the upgrade ends these sessions' "$work/upgrade-$name.txt" || fail "$name: nothing is said of sessions"
	grep -q ' nbody' "$work/upgrade-$name.txt" || fail "$name: the session is not named"
	await_end "$name" ended
	on "$name" 'cat ended' >&2
	on "$name" 'grep -q "^gpupool: " ended && ! grep -q "^status 0" ended' || fail "$name: the program is not told why"
	second=$(on "$name" 'systemctl show -p MainPID --value gpupoold')
	[ "$first" != "$second" ] || fail "$name: the old daemon goes on"
	# One that may wait, for a program of some seconds.
	on "$name" 'echo UPGRADE_WAIT=60 >>/etc/default/gpupoold'
	start_busy "$name" well 60 100
	on "$name" "$4" >"$work/upgrade-$name.txt" 2>&1 || fail "$(cat "$work/upgrade-$name.txt")"
	cat "$work/upgrade-$name.txt"
	grep -q 'waiting up to 60 s' "$work/upgrade-$name.txt" || fail "$name: does not wait"
	! grep 'ends these sessions' "$work/upgrade-$name.txt" || fail "$name: did not wait for its end"
	on "$name" 'cat well && grep -q "^status 0" well' || fail "$name: the program was ended"
	on "$name" 'REMOTE_GPU=unix:///run/gpupool/gpupool.sock LD_LIBRARY_PATH=/usr/lib/gpupool ./nbody -compare -numbodies=256' ||
		fail "$name: nobody is admitted after an upgrade"
}

# removes NAME REMOVE: a command there, after which no daemon is left.
removes() {
	on "$1" "$2"
	! on "$1" 'systemctl --quiet is-active gpupoold || pgrep gpupoold' || fail "$1: the daemon goes on after $2"
}

step_upgrade() {
	local name next=$work/next
	rm -rf "$next"
	PACKAGE_VERSION=$version.1 DEB_BUILD_OPTIONS=noautodbgsym scripts/packages.sh "$next" deb rpm
	programs bench/nbody/nbody
	# rpm's scripts want a shell and systemd, which Debian has, too.
	for name in bydeb byrpm; do
		make_root "$work/$name" bookworm rpm systemd-sysv libcjson1 libmicrohttpd12 liblz4-1 libprotobuf-c1 libssl3 libzstd1
		machine_start "$name" "$work/$name"
		cp build-packages/native/softgpu/driver/libcuda-soft.so "$work/$name/usr/lib/x86_64-linux-gnu/libcuda.so.1"
		cp "$work/programs/bench/nbody/nbody" "$work/$name/root/"
		mkdir "$work/$name/root/old" "$work/$name/root/new"
	done
	cp "$out"/gpupool-*_amd64.deb "$work/bydeb/root/old/"
	cp "$next"/gpupool-*_*.deb "$work/bydeb/root/new/"
	rm "$work/bydeb/root"/*/*dbgsym*
	cp "$out"/*.x86_64.rpm "$work/byrpm/root/old/"
	cp "$next"/*.x86_64.rpm "$work/byrpm/root/new/"
	upgrades bydeb 'dpkg -i old/*.deb' 'dpkg -i new/*.deb' 'dpkg -i old/*.deb'
	upgrades byrpm 'rpm --nodeps -i old/*.rpm' 'rpm --nodeps -U new/*.rpm' 'rpm --nodeps -U --oldpackage old/*.rpm'
	removes bydeb 'dpkg -r gpupool-server'
	removes byrpm 'rpm --nodeps -e gpupool-server'
}
