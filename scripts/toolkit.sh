#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Prints the directory of a CUDA 13 toolkit to build with: $CUDA_HOME, /usr/local/cuda, or one that
# is put together from PyPI's wheels in .toolkit of this repository. A fetched toolkit is tested by
# compiling and linking a program in three ways before it is used.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
own=$root/.toolkit

usable() {
	[ -x "$1/bin/nvcc" ] && [ -e "$1/include/cudaProfiler.h" ] &&
		[ -e "$1/lib64/libcudart_static.a" ] && [ -e "$1/lib64/libcudart.so" ] &&
		[ -e "$1/lib64/stubs/libcuda.so" ] &&
		grep -q '^#define CUDA_VERSION 13' "$1/include/cuda.h" 2>/dev/null
}

# Wheels carry no library to link driver API programs with; any with the right names will do.
make_stub() {
	mkdir -p "$1/lib64/stubs"
	sed -n 's/^GP_SYMBOL[A-Z_]*(\([A-Za-z0-9_]*\),.*/int \1(void) { return 34; }/p' \
		"$root/codegen/api/symbols.h" >"$1/stub.c"
	cc -shared -fPIC -w -Wl,-soname,libcuda.so.1 "$1/stub.c" -o "$1/lib64/stubs/libcuda.so"
	rm "$1/stub.c"
}

unpack() {
	python3 - "$1" "$2" <<'PYTHON'
import glob, os, stat, sys, zipfile

wheels, target = sys.argv[1:]
prefix = 'nvidia/cu13/'
for wheel in glob.glob(wheels + '/*.whl'):
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            if not entry.filename.startswith(prefix) or entry.is_dir():
                continue
            path = os.path.join(target, os.path.normpath(entry.filename[len(prefix):]))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with archive.open(entry) as source, open(path, 'wb') as copy:
                while block := source.read(1 << 20):
                    copy.write(block)
            if '/bin/' in path:
                os.chmod(path, 0o755)
for library in glob.glob(target + '/lib/*.so.*'):
    link = library[:library.index('.so.') + 3]
    if not os.path.exists(link):
        os.symlink(os.path.basename(library), link)
PYTHON
	ln -sfn lib "$2/lib64"
}

prove() {
	cat >"$2/try.cu" <<'CUDA'
#include <cooperative_groups.h>
#include <cuda.h>
#include <cudaProfiler.h>
#include <cuda_runtime.h>
__global__ void kernel(float *x) { cooperative_groups::this_grid(); *x = rsqrtf(*x); }
int main()
{
	kernel<<<1, 1>>>(nullptr);
#ifdef DRIVER
	return cuInit(0);
#else
	return cudaDeviceSynchronize();
#endif
}
CUDA
	"$1/bin/nvcc" -cudart=static "$2/try.cu" -o "$2/try_static" &&
		"$1/bin/nvcc" -cudart=shared "$2/try.cu" -o "$2/try_shared" &&
		"$1/bin/nvcc" -rdc=true -DDRIVER "$2/try.cu" -o "$2/try_driver" -lcuda &&
		readelf -d "$2/try_shared" | grep -q libcudart.so.13 &&
		readelf -d "$2/try_driver" | grep -q libcuda.so.1
}

fetch() {
	if [ "$(uname -m)" != x86_64 ]; then
		echo "toolkit.sh: no CUDA 13 toolkit; set CUDA_HOME" >&2
		return 1
	fi
	work=$(mktemp -d "$root/.toolkit.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	echo "fetching a CUDA toolkit from PyPI (105 MB) into .toolkit" >&2
	mkdir "$work/wheels" "$work/toolkit" "$work/try"
	python3 -m pip download -q --no-deps --only-binary=:all: --require-hashes \
		-r "$root/scripts/toolkit.txt" -d "$work/wheels" >&2 &&
		unpack "$work/wheels" "$work/toolkit" &&
		make_stub "$work/toolkit" &&
		prove "$work/toolkit" "$work/try" >&2 || {
		echo "toolkit.sh: the toolkit could not be fetched from pip's index, or does not work;" \
			"CUDA_HOME=DIR names another" >&2
		return 1
	}
	rm -rf "$own"
	mv "$work/toolkit" "$own"
}

if [ -n "${CUDA_HOME:-}" ] && ! usable "$CUDA_HOME"; then
	echo "toolkit.sh: CUDA_HOME=$CUDA_HOME is no complete CUDA 13 toolkit and not used" >&2
fi
for candidate in ${CUDA_HOME:+"$CUDA_HOME"} /usr/local/cuda "$own"; do
	if usable "$candidate"; then
		echo "$candidate"
		exit 0
	fi
done
fetch
usable "$own"
echo "$own"
