#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# portable.sh BUILD_FOLDER [x86_64|aarch64]: builds the client (libcuda.so.1, libnvidia-ml.so.1,
# gpupool) so that it runs on every Linux with glibc 2.27 or later and needs nothing else: by zig's C
# compiler, which has the older glibc's symbols and comes from PyPI into .zig; with the libraries of
# subprojects/list.txt linked in; with OpenSSL opened only for TLS. The build in
# BUILD_FOLDER is incremental. BUILD_FOLDER/stage has the files as they are installed
# below /usr.
set -euo pipefail

glibc=2.27
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ $# -lt 1 ] || [ $# -gt 2 ]; then
	echo "usage: portable.sh BUILD_FOLDER [x86_64|aarch64]" >&2
	exit 2
fi
folder=$1
machine=${2:-x86_64}
case $machine in
x86_64 | aarch64) ;;
*)
	echo "portable.sh: built for x86_64 and aarch64, not for $machine" >&2
	exit 2
	;;
esac

fetch_zig() {
	if cmp -s "$root/packaging/zig.txt" "$root/.zig/zig.txt"; then
		return
	fi
	echo "fetching a C compiler from PyPI (90 MB) into .zig" >&2
	rm -rf "$root/.zig"
	python3 -m pip install -q --no-deps --only-binary=:all: --require-hashes \
		-r "$root/packaging/zig.txt" --target "$root/.zig" >&2
	cp "$root/packaging/zig.txt" "$root/.zig/zig.txt"
}

# link_headers NAME FOLDER...: the headers of one library, without those of the machine's glibc,
# and its pkg-config file.
link_headers() {
	local name=$1 from file
	shift
	for from in "$@"; do
		for file in "/usr/include/$from"/*.h "/usr/include/$(uname -m)-linux-gnu/$from"/*.h; do
			if [ -e "$file" ]; then
				mkdir -p "$tools/include/$from"
				ln -sf "$file" "$tools/include/$from/"
			fi
		done
	done
	printf 'Name: %s\nDescription: headers\nVersion: %s\nCflags: -isystem %s/include\n' "$name" \
		"$(pkg-config --modversion "$name")" "$tools" >"$tools/$name.pc"
}

# The compiler as Meson 1.0 wants it: its linker is LLVM's, by a name that Meson does not know, and
# it does not take the version of a glibc when it lists macros.  Its linker cannot read
# archives that only name their objects, and finds what libraries need by itself.
describe() {
	cat >"$tools/cc" <<CC
#!/bin/bash
target=$machine-linux-gnu.$glibc
args=()
for arg; do
	case \$arg in
	-Wl,--version) echo "LLD (compatible with GNU linkers)" && exit ;;
	-Wl,-rpath-link,*) continue ;;
	-dM) target=$machine-linux-gnu ;;
	esac
	args+=("\$arg")
done
exec "$root/.zig/ziglang/zig" cc -target "\$target" "\${args[@]}"
CC
	cat >"$tools/ar" <<AR
#!/bin/bash
exec "$root/.zig/ziglang/zig" ar "\${1//T/}" "\${@:2}"
AR
	chmod +x "$tools/cc" "$tools/ar"
	cat >"$tools/cross.txt" <<CROSS
[binaries]
c = [$(command -v ccache >/dev/null && echo "'ccache', ")'$tools/cc']
ar = '$tools/ar'
strip = '$(command -v llvm-strip-14 || command -v llvm-strip || command -v strip)'
pkgconfig = 'pkg-config'
[built-in options]
c_link_args = ['-Wl,--build-id=sha1']
[properties]
pkg_config_libdir = ['$tools']
needs_exe_wrapper = true
[host_machine]
system = 'linux'
cpu_family = '$machine'
cpu = '$machine'
endian = 'little'
CROSS
}

toolkit=$("$root/scripts/toolkit.sh")
fetch_zig
"$root/subprojects/fetch.sh"
if [ ! -f "$folder/build.ninja" ]; then
	mkdir -p "$folder/tools"
	tools=$(cd "$folder/tools" && pwd)
	link_headers libssl openssl
	link_headers libcrypto openssl
	link_headers libibverbs infiniband
	link_headers librdmacm rdma
	ln -s /usr/include/uthash.h /usr/include/utlist.h "$tools/include/"
	describe
	meson setup "$folder" "$root" --cross-file "$tools/cross.txt" --wrap-mode=forcefallback \
		--buildtype=release -Ddebug=true -Db_lundef=true --prefix=/usr --libdir=lib -Dparts=client \
		"-Dtoolkit=$toolkit" >"$folder/setup.log" 2>&1 || {
		cat "$folder/setup.log" >&2
		rm -f "$folder/build.ninja"
		exit 1
	}
fi
. "$root/scripts/progress.sh"
build_with_progress "$folder" "$folder/build.log"
rm -rf "$folder/stage"
DESTDIR=$(cd "$folder" && pwd)/stage meson install -C "$folder" --no-rebuild \
	--tags client --quiet
# Only linking programs needs these links, and NVIDIA's toolkit has them.
find "$folder/stage" -name 'lib*.so' -type l -delete
