#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh [--seconds N] [--jobs J] [--workers W] [--out DIR] [--pack FILE] [NAME...] BUILD: builds
# the fuzzers of tests/fuzz with clang in the folder BUILD and runs them, 60 seconds each, as
# tests/fuzz/run.sh does; findings are in BUILD/fuzz-out. Fails if there is a finding.
# --pack FILE runs nothing: it writes a .tar.xz (or .tar.gz) with all that another machine needs,
# whose C library is not older than the version it prints: unpack it there, start fuzz/run.sh, same options.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
options=()
names=()
pack=
out=
while [ $# -gt 0 ]; do
	case $1 in
	--seconds | --jobs | --workers) options+=("$1" "$2") && shift ;;
	--out) out=$2 && shift ;;
	--pack) pack=$(realpath "$2") && shift ;;
	-*) sed -n '3,7s/^# //p' "$0" >&2 && exit 2 ;;
	*) names+=("$1") ;;
	esac
	shift
done
if [ ${#names[@]} = 0 ]; then
	sed -n '3,7s/^# //p' "$0" >&2
	exit 2
fi
build=$(realpath -m "${names[-1]}")
unset 'names[-1]'
# A folder that was set up otherwise has no fuzzers.
if [ -f "$build/build.ninja" ] && ! meson introspect --buildoptions "$build" |
	python3 -c 'import json, sys; sys.exit(not any(o["name"] == "fuzz" and o["value"] for o in json.load(sys.stdin)))'; then
	echo "fuzz.sh: $build is a build folder for something else" >&2
	exit 2
fi

"$root/scripts/deps.sh" check
if ! echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n); int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return 0; }' |
	clang -fsanitize=fuzzer,address,undefined -x c - -o /dev/null 2>/dev/null; then
	echo "fuzz.sh: clang with its fuzzing library is needed (packages clang and libclang-rt-14-dev)" >&2
	exit 1
fi
if [ ! -f "$build/build.ninja" ]; then
	CC=clang meson setup "$build" "$root" "-Dtoolkit=$("$root/scripts/toolkit.sh")" -Dfuzz=true \
		-Db_sanitize=address,undefined -Db_lundef=false >"$build.log" 2>&1 || {
		cat "$build.log" >&2
		rm -f "$build.log"
		exit 1
	}
	mv "$build.log" "$build/setup.log"
fi

# make TARGET...: prints output only if it fails.
make() {
	ninja -C "$build" "$@" >"$build/build.log" 2>&1 || {
		cat "$build/build.log" >&2
		exit 1
	}
}

# Reads the list of targets again: there may be new ones.
make build.ninja
mapfile -t fuzzers < <(ninja -C "$build" -t targets all |
	sed -n 's,^tests/fuzz/\(fuzz_[a-z0-9_]*\): .*_LINKER.*,\1,p' | sort)
driver=softgpu/driver/libcuda-soft.so
make "$driver" "${fuzzers[@]/#/tests/fuzz/}"

# Runs where the C library is not older than what the files ask of it.
write_pack() {
	local newest
	folder=$(mktemp -d)
	trap 'rm -rf "$folder"' EXIT
	mkdir -p "$folder/fuzz/bin" "$folder/fuzz/lib" "$folder/fuzz/corpus"
	cp "$root/tests/fuzz/run.sh" "$folder/fuzz"
	cp "${fuzzers[@]/#/$build/tests/fuzz/}" "$folder/fuzz/bin"
	cp "$build/$driver" "$folder/fuzz/lib"
	for fuzzer in "${fuzzers[@]}"; do
		cp -r "$root/tests/fuzz/corpus/${fuzzer#fuzz_}" "$folder/fuzz/corpus"
	done
	ldd "$folder"/fuzz/bin/* | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | sort -u |
		grep -Ev '/(libc|libm|libdl|librt|libpthread|ld-linux.*)\.so' |
		xargs cp -L -t "$folder/fuzz/lib"
	# A finding is looked at here, where the symbols are.
	strip --strip-debug "$folder"/fuzz/bin/* "$folder"/fuzz/lib/*
	newest=$(objdump -T "$folder"/fuzz/bin/* "$folder"/fuzz/lib/* 2>/dev/null |
		grep -o 'GLIBC_[0-9.]*[0-9]' | sort -uV | tail -1)
	tar -C "$folder" -caf "$pack" fuzz
	echo "$pack: $(du -h "$pack" | cut -f1), ${#fuzzers[@]} fuzzers, for ${newest/GLIBC_/glibc } and later"
}

if [ -n "$pack" ]; then
	write_pack
	exit
fi
FUZZ_BIN=$build/tests/fuzz FUZZ_CORPUS=$root/tests/fuzz/corpus FUZZ_LIB=$build/softgpu/driver \
	FUZZ_DRIVER=$build/$driver exec sh "$root/tests/fuzz/run.sh" --out "${out:-$build/fuzz-out}" \
	"${options[@]}" "${names[@]}"
