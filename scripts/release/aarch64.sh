# SPDX-License-Identifier: Apache-2.0
# The step of scripts/check_release.sh, which reads this file, for aarch64: the client's packages are installed, used and
# removed in a clean root of Debian 12 for arm64, and programs with NVIDIA's runtime for aarch64 use this machine's
# daemon, all under qemu-user (scripts/release/arm.sh).

# Those of the tests' programs whose words the software device's daemon decides, not the processor.
arm_programs='vectoradd copies memset streams events graphs symbols printf'

in_arm_root() {
	inside=scripts/release/arm.sh clean=$work/arm in_root "$@"
}

make_arm_root() {
	local archive=$work/root-bookworm-arm64.tar
	if [ ! -f "$archive" ]; then
		# As little as installs packages: all of it is set up under qemu.  dpkg need not wait for the disk
		# after each file.
		scripts/release/arm.sh mmdebstrap --quiet --format=tar --variant=essential --arch=arm64 --mode=root \
			--dpkgopt=force-unsafe-io --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr \
			bookworm "$archive.new" >&2
		mv "$archive.new" "$archive"
	fi
	unpack_root "$archive" "$work/arm"
}

# unpack_arm_wheel FOLDER: unpacks the wheel that pip on that machine would select, with the layout of an environment.
unpack_arm_wheel() {
	rm -rf "$work/arm-client" "$1"
	python3 -m pip download -q --no-index --no-deps --only-binary=:all: --platform manylinux_2_27_aarch64 \
		--find-links "$out" -d "$work/arm-client" gpupool-client
	python3 -m zipfile -e "$work"/arm-client/*_aarch64.whl "$work/arm-client/files"
	mv "$work"/arm-client/files/*.data/data "$1"
	mv "$work"/arm-client/files/*.data/scripts "$1/bin"
	chmod +x "$1"/bin/*
}

# Each package of the client, and nothing of the others.
try_arm_packages() {
	local name=gpupool-client-$version-aarch64
	cp build-packages/client-aarch64/tests/portable/portable-app "$clean/tmp/app"
	cp "$out"/gpupool-client_*_arm64.deb "$clean/tmp/"
	in_arm_root sh -c 'dpkg -i /tmp/*.deb'
	[[ $(in_arm_root gpupool --version) == *" $version" ]] || fail "gpupool is of another version"
	expect_sums in_arm_root /tmp/app
	expect_sums in_arm_root gpupool run /tmp/app
	in_arm_root dpkg -P gpupool-client
	[ -z "$(ours_in_root)" ] || fail "the removed package leaves $(ours_in_root)"
	tar -xf "$out/$name.tar.xz" -C "$clean/opt"
	expect_sums in_arm_root "/opt/$name/bin/gpupool" run /tmp/app
	rm -r "$clean/opt/$name"
	unpack_arm_wheel "$clean/opt/wheel"
	expect_sums in_arm_root /opt/wheel/bin/gpupool run /tmp/app
	echo ".deb, tarball and wheel for aarch64 are installed and used" >&3
}

# NVIDIA's runtime for aarch64, and Debian's OpenSSL, in folders of this step.
fetch_arm_runtime() {
	if [ ! -d "$work/arm-openssl" ]; then
		tests/portable/root.sh bookworm arm64 "$work/arm-openssl" libssl3
	fi
	if [ ! -d "$work/arm-runtime" ]; then
		rm -rf "$work/arm-wheel"
		python3 -m pip download -q --no-deps --only-binary=:all: --require-hashes \
			--platform manylinux2014_aarch64 -r packaging/arm-runtime.txt -d "$work/arm-wheel"
		python3 -m zipfile -e "$work"/arm-wheel/*.whl "$work/arm-wheel/files"
		mv "$work/arm-wheel/files/nvidia/cu13/lib" "$work/arm-runtime"
		ln -s libcudart.so.13 "$work/arm-runtime/libcudart.so"
	fi
}

# build_arm_program NAME: with the runtime linked statically, and shared.
build_arm_program() {
	local toolkit apps=$work/arm-apps link=(aarch64-linux-gnu-g++ "$work/arm-apps/$1.o" -L"$work/arm-runtime")
	toolkit=$(scripts/toolkit.sh)
	"$toolkit/bin/nvcc" -ccbin aarch64-linux-gnu-g++ -I"$toolkit/include" -O2 -std=c++17 -c "tests/apps/$1.cu" -o "$apps/$1.o"
	"${link[@]}" -lcudart_static -ldl -lrt -lpthread -o "$apps/$1"
	"${link[@]}" -lcudart -o "$apps/$1-shared"
}

try_arm_programs() {
	local name runtime
	mkdir -p "$work/arm-apps"
	fetch_arm_runtime
	for name in $arm_programs; do
		build_arm_program "$name"
	done
	programs tests/makecertificates
	for runtime in static shared; do
		packaged env GP_PATIENCE=600 GP_CLIENT="$root/build-packages/client-aarch64/client" GP_APPS="$work/arm-apps" \
			GP_LIBRARIES="$work/arm-runtime:$work/arm-openssl/usr/lib/aarch64-linux-gnu" QEMU_LD_PREFIX=/usr/aarch64-linux-gnu \
			scripts/release/arm.sh python3 tests/integration/test_apps.py "$runtime" $arm_programs \
			>"$work/arm-$runtime.txt" || true
		expect_tap "$work/arm-$runtime.txt"
	done
	echo "programs with NVIDIA's runtime for aarch64: $arm_programs" >&3
}

step_arm() {
	local clean=$work/arm
	make_arm_root
	start_daemon build-packages/native/server/gpupoold --driver build-packages/native/softgpu/driver/libcuda-soft.so
	try_arm_packages
	stop_daemon
	unset REMOTE_GPU
	try_arm_programs
}
