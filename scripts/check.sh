#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs everything that must hold before a change goes in, or a quick part of it; usage() has both.
# Installs what is missing. The last line is the sum of all tests.
set -euo pipefail

usage() {
	cat <<-EOF
		usage: scripts/check.sh [quick]

		Without an argument: all tests under the address and undefined behavior
		sanitizers, the threaded suites under the thread sanitizer, a comparison with
		the GPU where there is one, and the format of the sources.

		quick: unit tests, generator, contract suite and one program over each
		transport, under the address and undefined behavior sanitizers. After a build
		it takes at most 3 minutes on two idle cores.
	EOF
}

quick=
case $#:${1:-} in
0:) ;;
1:quick) quick=1 ;;
1:-h | 1:--help)
	usage
	exit
	;;
1:*)
	echo "check.sh: unknown argument \"$1\"; scripts/check.sh --help lists them" >&2
	exit 2
	;;
*)
	echo "check.sh: too many arguments; scripts/check.sh --help lists them" >&2
	exit 2
	;;
esac

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
scripts/deps.sh check
toolkit=$(scripts/toolkit.sh)
if [ -z "$quick" ]; then
	scripts/runtimes.sh || echo "the tests that need these runtimes are skipped"
	scripts/smi.sh || echo "the test of nvidia-smi is skipped"
	scripts/promtool.sh || echo "the test of the alarms is skipped"
fi
passed=0
failed=0
# A finding ends the program that has it, and so fails its test.
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}
# ThreadSanitizer waits at the end of each process for other threads: a second by default.
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:atexit_sleep_ms=100}

# setup FOLDER OPTION...: a build folder for this toolkit, made once.
setup() {
	local folder=$1
	shift
	if [ ! -f "$folder/build.ninja" ] || [ "$(cat "$folder/.toolkit" 2>/dev/null)" != "$toolkit" ]; then
		echo "building in $folder (several minutes)"
		rm -rf "$folder"
		meson setup "$folder" "-Dtoolkit=$toolkit" "$@" >"$folder.log" 2>&1 || {
			cat "$folder.log" >&2
			rm -f "$folder.log"
			exit 1
		}
		mv "$folder.log" "$folder/setup.log"
		echo "$toolkit" >"$folder/.toolkit"
	fi
	rm -f "$folder"/meson-logs/*.json
}

# build FOLDER: a terminal shows the progress; a file is spared what is not a failure.
build() {
	if [ -t 1 ]; then
		ninja -C "$1" && return
	elif ninja -C "$1" --quiet >"$1/build.log" 2>&1; then
		return
	else
		cat "$1/build.log" >&2
	fi
	echo "check.sh: the build in $1 failed" >&2
	exit 1
}

echo "== tests, address and undefined behaviour sanitizers"
# Reports of the sanitizers need line numbers, and no other debug information.  With -O1 gcc takes two
# thirds of the time, and the tests are no slower; the packages and build-portable are built with more.
setup build-check -Db_sanitize=address,undefined -Db_lundef=false -Dc_args=-g1 -Doptimization=1
# A test's limit of time is there for a hang: a busy machine may need several times as long.  Most
# tests wait for two thirds of their time, so there are two more at a time than processors.
tests=(--num-processes $(($(nproc) + 2)))
if [ -n "$quick" ]; then
	# Nothing but what these tests need is built.
	meson test "${tests[@]}" -C build-check --print-errorlogs --timeout-multiplier 4 \
		--suite unit --suite codegen --suite contract --suite quick || true
	exec python3 scripts/summary.py 0 0 build-check/meson-logs/testlog.json
fi
build build-check
if scripts/portable.sh build-portable; then
	passed=$((passed + 1))
	export GP_PORTABLE=$root/build-portable
else
	failed=$((failed + 1))
fi
meson test "${tests[@]}" -C build-check --no-rebuild --print-errorlogs --timeout-multiplier 4 || true

echo "== locks"
if python3 scripts/threadsafety.py build-check; then
	passed=$((passed + 1))
else
	failed=$((failed + 1))
fi

# Nothing but what these tests need is built, and what nvcc makes is there already.
echo "== threaded suites, thread sanitizer"
setup build-tsan -Db_sanitize=thread -Db_lundef=false -Dc_args=-g1 "-Dprograms=$root/build-check"
# With more bits of randomness than Debian's kernel uses, the sanitizer does not find its addresses.
fixed=
if setarch -R true 2>/dev/null; then
	fixed="setarch -R"
fi
$fixed meson test "${tests[@]}" -C build-tsan --print-errorlogs --timeout-multiplier 8 \
	--suite unit --suite contract --suite threads || true

logs=
if [ -e /dev/nvidiactl ]; then
	echo "== comparison with the GPU"
	setup build-gpu --buildtype=release
	meson test -C build-gpu --print-errorlogs --suite gpu || true
	logs=build-gpu/meson-logs/testlog.json
fi

echo "== format"
# The generator's inputs have the layout of its description, by hand.
if find . \( -path './.?*' -o -path './build*' -o -path ./subprojects -o -path ./tests/codegen/golden \
	-o -path ./tests/codegen/errors \) -prune -o -name '*.[ch]' -print0 -o -name '*.cc' -print0 \
	-o -name '*.cu' -print0 | xargs -0 -n 50 -P "$(nproc)" clang-format --dry-run -Werror; then
	passed=$((passed + 1))
else
	failed=$((failed + 1))
fi

python3 scripts/summary.py $passed $failed build-check/meson-logs/testlog.json \
	build-tsan/meson-logs/testlog.json $logs
