#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_release.sh [STEP]...: what a release needs and a change does not: all packages are built,
# linted, installed in a clean root of Debian 12, used and removed there; the client runs in roots
# with an old C library, and on aarch64 under qemu-user; images of containers are built as their files
# say; the neighbouring version works together with this one; what "meson dist" packs builds. All steps
# unless some are named. Needs root, for the roots. The last line is the sum.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
steps=${*:-lint deb rpm tar wheel container portable neighbours dist}
if [ "$(id -u)" != 0 ]; then
	echo "check_release.sh: needs root, to change into roots of its own" >&2
	exit 2
fi
scripts/deps.sh packages
work=$root/build-release
out=$work/out
clean=$work/root
daemon=
mkdir -p "$work"
version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" meson.build)

stop_daemon() {
	if [ -n "$daemon" ]; then
		kill "$daemon" 2>/dev/null || true
		wait "$daemon" 2>/dev/null || true
		daemon=
	fi
}

trap stop_daemon EXIT

fail() {
	echo "check_release.sh: $*" >&2
	exit 1
}

# in_root COMMAND...: in the clean root, which has a /proc for that long, and nothing of this
# environment.
in_root() {
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive \
		${REMOTE_GPU:+"REMOTE_GPU=$REMOTE_GPU"} unshare --mount sh -c \
		'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$clean" "$@"
}

# Once made, it is kept as an archive.
make_root() {
	rm -rf "$clean"
	mkdir -p "$clean"
	if [ ! -f "$work/root.tar" ]; then
		mmdebstrap --quiet --variant=apt bookworm "$work/root.tar.new" >&2
		mv "$work/root.tar.new" "$work/root.tar"
	fi
	# Its few devices are those of this machine.
	tar -xf "$work/root.tar" -C "$clean" --exclude='./dev/*'
	for device in null zero random urandom; do
		cp -a "/dev/$device" "$clean/dev/"
	done
	mkdir -p "$clean/dev/shm"
	for file in resolv.conf hosts; do
		cp "/etc/$file" "$clean/etc/"
	done
	for file in /etc/apt/apt.conf.d/*; do
		if grep -qi proxy "$file"; then
			cp "$file" "$clean/etc/apt/apt.conf.d/"
		fi
	done
}

# What lies in the root and is ours, but for lists and logs of what installs.
ours_in_root() {
	(cd "$clean" && find . -xdev \( -path ./var/lib/apt -o -path ./var/cache -o -path ./var/log \
		-o -path ./tmp \) -prune -o \( -name '*gpupool*' -o -name '*libcuda*' -o -name '*nvidia*' \) -print)
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

step_lint() {
	lintian --fail-on error --suppress-tags bad-distribution-in-changes-file "$out"/*.deb >&2
	rpmlint -c packaging/rpmlint.toml "$out"/*.rpm >"$work/rpmlint" 2>&1 || true
	cat "$work/rpmlint" >&2
	grep -q ' 0 errors' "$work/rpmlint"
}

step_deb() {
	make_root
	in_root apt-get -qq update >&2
	cp "$out"/*.deb "$clean/tmp/"
	in_root sh -c 'apt-get -qq -y --no-install-recommends install /tmp/gpupool-server_*.deb /tmp/gpupool-client_*.deb /tmp/gpupool-tools_*.deb' >&2
	for program in gpupoold gpupoolctl; do
		[[ $(in_root $program --version) == *" $version"* ]] || fail "$program is of another version"
	done
	[ "$(in_root stat -c %G:%a /etc/gpupool)" = gpupool:2750 ] || fail "/etc/gpupool is not the group's"
	cp "$work/../build-packages/client/tests/portable/portable-app" "$clean/tmp/app"
	start_daemon in_root gpupoold --driver /usr/lib/gpupool/libcuda-soft.so
	# With nothing but an address.
	expect_sums in_root /tmp/app
	stop_daemon
	# NVIDIA's driver, which is put beside it, comes first.
	cp "$clean/usr/lib/gpupool/libcuda.so.1" "$clean/usr/lib/x86_64-linux-gnu/libcuda.so.550.1"
	ln -s libcuda.so.550.1 "$clean/usr/lib/x86_64-linux-gnu/libcuda.so.1"
	in_root ldconfig
	[[ $(in_root ldconfig -p | grep -m1 'libcuda.so.1 ') == *x86_64-linux-gnu/libcuda.so.1 ]] ||
		fail "NVIDIA's driver is hidden"
	rm "$clean"/usr/lib/x86_64-linux-gnu/libcuda.so*
	# An upgrade of a daemon at work names the sessions that it ends.
	mkdir -p "$clean/run/systemd/system" "$clean/tmp/fake"
	printf '#!/bin/sh\nexit 0\n' >"$clean/tmp/fake/systemctl"
	printf '#!/bin/sh\necho ID PROGRAM\necho 7 train\n' >"$clean/tmp/fake/gpupoolctl"
	chmod +x "$clean"/tmp/fake/*
	in_root env PATH=/tmp/fake:/usr/bin:/bin sh /var/lib/dpkg/info/gpupool-server.prerm upgrade 99 |
		grep -q '^7 train$' || fail "an upgrade does not say which sessions it ends"
	rm -rf "$clean/run/systemd" "$clean/tmp/fake"
	in_root apt-get -qq -y purge gpupool-server gpupool-client gpupool-tools >&2
	# Keys and tokens stay, if there are any: they are the administrator's.
	[ -z "$(ours_in_root | grep -v '^\./etc/gpupool')" ] ||
		fail "removed packages leave $(ours_in_root)"
	! in_root ldconfig -p | grep libcuda
}

step_rpm() {
	local place=$work/rpmroot
	rm -rf "$place"
	mkdir -p "$place"
	rpm --root "$place" --initdb
	rpm --root "$place" --nodeps --noscripts -i "$out"/*.rpm >&2
	"$place/usr/bin/gpupoold" --version | grep -q " $version" || fail "gpupoold is of another version"
	# A loader's own folder, where NVIDIA's driver lies there, comes first.
	mkdir -p "$place/usr/lib64"
	cp "$place/usr/lib/gpupool/libcuda.so.1" "$place/usr/lib64/libcuda.so.1"
	echo 'include /etc/ld.so.conf.d/*.conf' >"$place/etc/ld.so.conf"
	ldconfig -r "$place"
	[[ $(ldconfig -r "$place" -p | grep -m1 'libcuda.so.1 ') == *" /usr/lib64/libcuda.so.1" ]] ||
		fail "NVIDIA's driver is hidden"
	start_daemon "$place/usr/bin/gpupoold" --driver "$place/usr/lib/gpupool/libcuda-soft.so"
	expect_sums env LD_LIBRARY_PATH="$place/usr/lib/gpupool" build-packages/client/tests/portable/portable-app
	stop_daemon
	rm "$place/usr/lib64/libcuda.so.1"
	rpm --root "$place" --noscripts -e gpupool-server gpupool-client gpupool-tools
	! find "$place/usr" "$place/etc/ld.so.conf.d" -type f | grep gpupool
}

step_tar() {
	rm -rf "$work/tar"
	mkdir -p "$work/tar"
	tar -xf "$out/gpupool-client-$version-x86_64.tar.xz" -C "$work/tar"
	start_daemon build-packages/native/server/gpupoold --driver build-packages/native/softgpu/driver/libcuda-soft.so
	expect_sums env LD_LIBRARY_PATH="$work/tar/gpupool-client-$version-x86_64/lib/gpupool" \
		build-packages/client/tests/portable/portable-app
	stop_daemon
}

step_wheel() {
	local env=$work/venv before
	rm -rf "$env"
	python3 -m venv "$env"
	before=$(find "$env" | sort)
	"$env/bin/pip" install -q --no-index "$out"/gpupool_client-*.whl
	start_daemon build-packages/native/server/gpupoold --driver build-packages/native/softgpu/driver/libcuda-soft.so
	if [ -x "$env/bin/gpupool" ]; then
		expect_sums "$env/bin/gpupool" run build-packages/client/tests/portable/portable-app
	fi
	expect_sums env LD_LIBRARY_PATH="$env/lib/gpupool" build-packages/client/tests/portable/portable-app
	stop_daemon
	"$env/bin/pip" uninstall -q -y gpupool-client
	diff <(echo "$before") <(find "$env" -name __pycache__ -prune -o -print | sort) | grep '^> .*gpupool/.*\.so' &&
		fail "the wheel leaves files"
	return 0
}

# build_image ROLE: what the file of a container's image says, in the clean root, which stands for the
# image that it begins with.
build_image() {
	local word rest source recipe=packaging/container/$1.Dockerfile
	make_root
	while read -r word rest; do
		case $word in
		COPY)
			for source in ${rest% *}; do
				cp "$out"/$source "$clean${rest##* }"
			done
			;;
		RUN) in_root sh -ec "$rest" </dev/null ;;
		ARG | FROM | ENV | EXPOSE | STOPSIGNAL | ENTRYPOINT | CMD) ;;
		*) fail "$recipe: $word is not known here" ;;
		esac
	done < <(grep -v -e '^#' -e '^$' "$recipe" | sed -e ':more' -e '/\\$/{N;s/\\\n//;b more' -e '}')
}

step_container() {
	local command
	build_image server
	command=$(sed -nE 's/^(ENTRYPOINT|CMD) //p' packaging/container/server.Dockerfile |
		python3 -c 'import json, sys; print(*(word for line in sys.stdin for word in json.loads(line)))')
	in_root gpupoolctl cert init 127.0.0.1
	start_daemon in_root ${command/0.0.0.0:4833/127.0.0.1:0} --driver /usr/lib/gpupool/libcuda-soft.so
	stop_daemon
	build_image client
	cp build-packages/client/tests/portable/portable-app "$clean/tmp/app"
	start_daemon build-packages/native/server/gpupoold --driver build-packages/native/softgpu/driver/libcuda-soft.so
	expect_sums in_root /tmp/app
	expect_sums in_root gpupool run /tmp/app
	stop_daemon
}

step_neighbours() {
	scripts/neighbours.sh
}

step_portable() {
	scripts/portable.sh build-packages/client-aarch64 aarch64
	if [ ! -f build-check/build.ninja ]; then
		meson setup build-check -Db_sanitize=address,undefined -Db_lundef=false \
			"-Dtoolkit=$(scripts/toolkit.sh)" >"$work/setup.log"
	fi
	ninja -C build-check --quiet server/gpupoold softgpu/driver/libcuda-soft.so tests/makecertificates
	GP_PORTABLE=$root/build-packages/client GP_PORTABLE_ARM=$root/build-packages/client-aarch64 \
		meson test -C build-check --no-rebuild --print-errorlogs portable >&2
	! grep -q '# SKIP' build-check/meson-logs/testlog.txt || fail "a case of the portable client was skipped"
}

# What is published as source, configured and built, as far as it is installed.
step_dist() {
	rm -rf "$work/dist" build-packages/native/meson-dist
	mkdir -p "$work/dist"
	meson dist -C build-packages/native --no-tests --formats xztar --allow-dirty >"$work/dist.log"
	tar -xf "build-packages/native/meson-dist/gpupool-$version.tar.xz" -C "$work/dist"
	meson setup "$work/dist/build" "$work/dist/gpupool-$version" -Dparts=installed \
		"-Dtoolkit=$(scripts/toolkit.sh)" >"$work/dist.log"
	ninja -C "$work/dist/build" --quiet >"$work/dist.log"
}

# A step runs in a shell of its own, outside of a condition: there "set -e" holds, and what it started
# ends with it.
run() {
	local begin=$SECONDS status
	echo "== $1"
	set +e
	(
		set -e
		trap stop_daemon EXIT
		"step_$1"
	) >"$work/$1.log" 2>&1 </dev/null
	status=$?
	set -e
	if [ "$status" = 0 ]; then
		echo "$1: ok ($((SECONDS - begin)) s)"
		passed=$((passed + 1))
	else
		tail -40 "$work/$1.log"
		echo "$1: failed ($((SECONDS - begin)) s)"
		failed=$((failed + 1))
	fi
}

passed=0
failed=0
begin=$SECONDS
echo "== packages"
rm -rf "$out"
scripts/packages.sh "$out" || fail "the packages could not be built"
echo "packages: ok ($((SECONDS - begin)) s)"
for step in $steps; do
	run "$step"
done
echo "$((SECONDS - begin)) s in all"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
