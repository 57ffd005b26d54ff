# SPDX-License-Identifier: Apache-2.0
# The steps of scripts/check_release.sh, which reads this file, that build: the portable client, and what
# is published as source.

# build_check TARGET...: of the build with tests.
build_check() {
	if [ ! -f build-check/build.ninja ]; then
		meson setup build-check -Db_sanitize=address,undefined -Db_lundef=false \
			"-Dtoolkit=$(scripts/toolkit.sh)" >"$work/setup.log"
	fi
	ninja -C build-check --quiet "$@" >"$work/ninja.log" || {
		cat "$work/ninja.log" >&2
		return 1
	}
}

step_portable() {
	scripts/portable.sh build-packages/client-aarch64 aarch64
	build_check server/gpupoold softgpu/driver/libcuda-soft.so tests/makecertificates
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
