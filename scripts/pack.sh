#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# pack.sh BUILD FILE: writes a .tar.xz (or .tar.gz) with one flat folder, gpupool, of what a release
# build made and bench/*.py look for: the daemon, the client, gpupoolctl, the test programs and, in
# lib/, the libraries that another machine may lack. OpenSSL is to be that machine's own (reason:
# bench/README.md). Unpack it on a machine with a GPU and give the folder's name where a BUILD is asked for.
set -euo pipefail

if [ $# != 2 ] || [ ! -f "$1/build.ninja" ]; then
	sed -n '3,7s/^# //p' "$0" >&2
	exit 2
fi
build=$(realpath "$1")
pack=$(realpath "$2")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
flat=$folder/gpupool
mkdir -p "$flat/lib"

ninja -C "$build" --quiet
cp -L "$build"/server/gpupoold "$build"/client/libcuda.so.1 "$build"/nvml/libnvidia-ml.so.1 "$build"/ctl/gpupoolctl "$build"/cli/gpupool "$flat"
for sub in bench bench/nbody bench/network bench/tenants bench/driver tests tests/apps tests/integration; do
	find "$build/$sub" -maxdepth 1 -type f -perm -u+x ! -name '*.so*' -exec cp -t "$flat" {} +
done
cp "$build"/tests/apps/saxpy.fatbin "$build"/tests/apps/saxpy.ptx "$build"/tests/integration/sass.fatbin \
	"$build"/scripts/gpupoold.service "$flat"
# The tests look for one another where they are in the repository.
(cd "$root" && cp --parents -r bench/*.py bench/libraries/*.py bench/network/*.py bench/tenants/*.py tests/integration/*.py tests/apps/expected protocol/abi.lock scripts/vm.py scripts/vm.sh "$flat")
# Programs and libraries name one another; the files of the C library are on every machine.
for file in "$flat"/*; do
	[ ! -f "$file" ] || ldd "$file" 2>/dev/null || true
done | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | sort -u |
	grep -Ev '/(libstdc\+\+|libgcc_s|libc|libm|libdl|librt|libpthread|libresolv|ld-linux.*|libssl|libcrypto|libcuda|libnvidia-ml)\.so' |
	xargs cp -L -t "$flat/lib"
cp -L "$("$root/scripts/toolkit.sh")"/lib64/libcudart.so.13 "$flat"
find "$flat" -type f -exec strip --strip-debug {} + 2>/dev/null || true
tar -C "$folder" -caf "$pack" gpupool
newest=$(objdump -T "$flat"/gpupoold "$flat"/libcuda.so.1 "$flat"/libnvidia-ml.so.1 "$flat"/lib/* 2>/dev/null |
	grep -o 'GLIBC_[0-9.]*[0-9]' | sort -uV | tail -1)
echo "$pack: $(du -h "$pack" | cut -f1), for ${newest/GLIBC_/glibc } and later"
