#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# old_toolkit.sh 11.8|12.4: fetches the compiler, the headers and the static runtime of an older CUDA for the
# test 'old_toolkit' into .toolkit/old/VERSION of this repository, from Debian (scripts/debian.sh): 860 MB or
# 1 GB, of which 120 MB stay, and some minutes. Nothing else needs it. Silent when it is there.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/scripts/debian.sh"
case ${1:-} in
11.8) release=bookworm ;;
12.4) release=trixie ;;
*)
	sed -n '3,5s/^# //p' "$0" >&2
	exit 2
	;;
esac
own=$root/.toolkit/old/$1
if [ -x "$own/bin/nvcc" ]; then
	exit 0
fi
mkdir -p "$root/.toolkit/old"
work=$(mktemp -d "$root/.toolkit/old/.work.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "fetching CUDA $1 from Debian into $own" >&2
debian_open "$work" "$release"
debian_fetch "$work" nvidia-cuda-toolkit nvidia-cuda-dev

# unpack PACKAGE PATTERN...
unpack() {
	local package=$1
	shift
	dpkg-deb --fsys-tarfile "$work/$package"_*.deb | tar -x -C "$work/files" --wildcards "$@"
}

mkdir "$work/files"
unpack nvidia-cuda-dev './usr/include/*' './usr/lib/x86_64-linux-gnu/libcuda*.a' './usr/lib/x86_64-linux-gnu/libculibos.a' \
	'./usr/lib/x86_64-linux-gnu/stubs/libcuda.so'
unpack nvidia-cuda-toolkit './usr/bin/*' './usr/lib/nvidia-cuda-toolkit/*'
files=$work/files/usr
bin=$files/lib/nvidia-cuda-toolkit/bin
tree=$work/tree
mkdir -p "$tree/nvvm/bin" "$tree/bin"
mv "$bin/nvcc" "$bin/crt" "$files"/bin/{cudafe++,fatbinary,nvlink,ptxas} "$tree/bin"
mv "$bin/cicc" "$tree/nvvm/bin"
mv "$files/lib/nvidia-cuda-toolkit/libdevice" "$tree/nvvm"
mv "$files/include" "$tree/include"
mv "$files/lib/x86_64-linux-gnu" "$tree/lib64"
cat >"$tree/bin/nvcc.profile" <<'PROFILE'
TOP = $(_HERE_)/..
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
PATH += $(TOP)/nvvm/bin:$(_HERE_):
INCLUDES += "-I$(TOP)/include" $(_SPACE_)
LIBRARIES =+ $(_SPACE_) "-L$(TOP)/lib64/stubs" "-L$(TOP)/lib64"
PROFILE
echo '__global__ void kernel() {} int main() { kernel<<<1, 1>>>(); }' >"$work/try.cu"
"$tree/bin/nvcc" -allow-unsupported-compiler -cudart=static "$work/try.cu" -o "$work/try" >&2
mv "$tree" "$own"
