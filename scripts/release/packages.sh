# SPDX-License-Identifier: Apache-2.0
# The steps of scripts/check_release.sh, which reads this file, that look at each package alone.

step_lint() {
	lintian --fail-on error --suppress-tags bad-distribution-in-changes-file "$out"/*.deb >&2
	rpmlint -c packaging/rpmlint.toml "$out"/*.rpm >"$work/rpmlint" 2>&1 || true
	cat "$work/rpmlint" >&2
	grep -q ' 0 errors' "$work/rpmlint"
}

step_deb() {
	make_root
	in_root apt-get -qq update >&2
	cp "$out"/*_amd64.deb "$clean/tmp/"
	in_root sh -c 'apt-get -qq -y --no-install-recommends install /tmp/gpupool-server_*.deb /tmp/gpupool-client_*_amd64.deb /tmp/gpupool-tools_*.deb' >&2
	for program in gpupoold gpupoolctl; do
		[[ $(in_root $program --version) == *" $version"* ]] || fail "$program is of another version"
	done
	[ "$(in_root stat -c %G:%a /etc/gpupool)" = gpupool:2750 ] || fail "/etc/gpupool is not the group's"
	[ "$(in_root stat -c %G:%a /etc/gpupool/gpupoold.conf)" = gpupool:640 ] || fail "there is no gpupoold.conf"
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
	rpm --root "$place" --nodeps --noscripts -i "$out"/*.x86_64.rpm >&2
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
	"$env/bin/pip" install -q --no-index "$out"/gpupool_client-*_x86_64.whl
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
