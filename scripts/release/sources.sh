# SPDX-License-Identifier: Apache-2.0
# The steps of scripts/check_release.sh, which reads this file, that build: programs to try the packages with, the
# version before this one, and what is published as source.

# programs TARGET...: of a build of the tests, of which nothing is shipped.
programs() {
	local build=$work/programs
	if [ ! -f "$build/build.ninja" ]; then
		meson setup "$build" --buildtype=release "-Dtoolkit=$(scripts/toolkit.sh)" >"$work/setup.log"
	fi
	ninja -C "$build" --quiet "$@" >"$work/ninja.log" || {
		cat "$work/ninja.log" >&2
		return 1
	}
}

# packaged COMMAND...: runs it with the environment of the integration tests, for the packaged programs.
packaged() {
	env PYTHONDONTWRITEBYTECODE=1 GP_SANITIZE=none GP_DAEMON="$root/build-packages/native/server/gpupoold" \
		GP_CTL="$root/build-packages/native/ctl/gpupoolctl" \
		GP_DRIVER="$root/build-packages/native/softgpu/driver/libcuda-soft.so" \
		GP_CLIENT="$root/build-packages/client/client" GP_APPS="$work/programs/tests/apps" \
		GP_CERTIFICATES="$work/programs/tests/makecertificates" "$@"
}

# expect_tap FILE: fails unless all cases of this test output have run and passed.
expect_tap() {
	cat "$1"
	grep -q '^ok ' "$1" || fail "nothing was tried"
	! grep -E '^not ok|# SKIP' "$1" || fail "a case failed, or was skipped"
	echo "$(grep -c '^ok ' "$1") cases" >&3
}

step_portable() {
	programs tests/makecertificates
	GP_PORTABLE=$root/build-packages/client GP_PORTABLE_ARM=$root/build-packages/client-aarch64 \
		packaged python3 tests/portable/test_portable.py >"$work/portable.txt" || true
	grep '^# Debian 11' "$work/portable.txt" >&3 || true
	expect_tap "$work/portable.txt"
}

# The shapes of the memory model over each transport, many more rounds than a change needs.
step_litmus() {
	programs tests/makecertificates tests/apps/litmus
	packaged env GP_LITMUS_ROUNDS=10000 GP_LITMUS_SECONDS=1800 python3 tests/integration/test_litmus.py \
		>"$work/litmus.txt" || true
	expect_tap "$work/litmus.txt"
}

step_neighbours() {
	local part built=$work/this
	programs tests/makecertificates $(scripts/neighbours.sh --targets)
	rm -rf "$built"
	mkdir -p "$built"
	for part in server ctl softgpu; do
		ln -s "$root/build-packages/native/$part" "$built/$part"
	done
	ln -s "$root/build-packages/client/client" "$built/client"
	ln -s "$work/programs/tests" "$built/tests"
	NEIGHBOUR_BUILT=$built scripts/neighbours.sh >"$work/neighbours.txt" || {
		cat "$work/neighbours.txt"
		return 1
	}
	cat "$work/neighbours.txt"
	grep '^neighbours.sh: ' "$work/neighbours.txt" >&3
}

# Configures and builds the installed parts of the source archive on a machine that has only
# the dependencies which it installs itself.  The toolkit, of gigabytes, is this machine's.
step_dist() {
	local suite archive=build-packages/native/meson-dist/gpupool-$version.tar.xz
	rm -f "$archive"
	meson dist -C build-packages/native --no-tests --formats xztar --allow-dirty >"$work/dist.txt"
	for suite in bookworm trixie; do
		make_root "$clean" "$suite"
		mkdir "$clean/usr/local/cuda"
		tar -xf "$archive" -C "$clean/root"
		in_root sh -c 'cd ~/gpupool-* && apt-get -qq update && scripts/deps.sh && scripts/toolkit.sh &&
			meson setup build -Dparts=installed && ninja -C build --quiet && build/server/gpupoold --version' >&2
		echo "$suite: $(in_root sh -c 'cd ~/gpupool-* && build/cli/gpupool --version')" >&3
	done
}
