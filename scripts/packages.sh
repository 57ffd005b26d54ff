#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# packages.sh OUTDIR [deb|rpm|tar|wheel|arm]...: builds the packages into OUTDIR, all kinds unless some
# are named: .deb and .rpm of server, client and tools, a tarball and a Python wheel of the client; with
# arm, which comes last, the client of those kinds for aarch64, too.
# Installs the build dependencies of the chosen kinds first. A first build takes 10 to 30 minutes on two cores;
# its progress is printed.
# The install_tag of the build files assigns each file to a package.  The client is the
# portable one (scripts/portable.sh).  Builds in build-packages.  PACKAGE_VERSION replaces the project's in
# the packages' names, not in the programs.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ $# -lt 1 ]; then
	echo "usage: packages.sh OUTDIR [deb|rpm|tar|wheel|arm]..." >&2
	exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
kinds=${*:-deb rpm tar wheel arm}
cd "$root"
scripts/deps.sh packages $kinds
. scripts/progress.sh
work=$root/build-packages
version=${PACKAGE_VERSION:-}
if [ -z "$version" ]; then
	version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" meson.build)
fi
if [ -n "$(git status --porcelain 2>/dev/null)" ]; then
	echo "packages.sh: the tree has changes that are not committed; they are packed, too" >&2
fi
# The date of the last change: the same tree gives the same packages.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

run_logged() {
	"$@" >"$work/log" 2>&1 || {
		cat "$work/log" >&2
		echo "packages.sh: $1 failed" >&2
		exit 1
	}
}

# list_packed BUILD: the targets built there for packages, without the client, which has its own build.
list_packed() {
	meson introspect --install-plan "$1" | python3 -c 'import json, os, sys
for file, how in json.load(sys.stdin)["targets"].items():
    if how["tag"] != "client":
        print(os.path.relpath(file, sys.argv[1]))' "$1"
}

build_native() {
	if [ ! -f "$work/native/build.ninja" ]; then
		run_logged meson setup "$work/native" --prefix=/usr --libdir=lib --buildtype=release \
			-Ddebug=true -Dparts=installed "-Dtoolkit=$(scripts/toolkit.sh)"
	fi
	build_with_progress "$work/native" "$work/log" $(list_packed "$work/native")
}

# stage NAME: installs the files of one package into its staging folder.
stage() {
	rm -rf "$work/stage/$1"
	mkdir -p "$work/stage/$1"
	DESTDIR=$work/stage/$1 run_logged meson install -C "$work/native" --no-rebuild --tags "$1"
	find "$work/stage/$1" -name 'lib*.so' -type l -delete
}

build_deb() {
	local tree=$work/deb/gpupool-$version
	rm -rf "$work/deb"
	mkdir -p "$tree"
	cp -a packaging/debian "$tree/debian"
	sed -i -e '/^#UPGRADE#$/r packaging/upgrade.sh' -e '//d' "$tree/debian/gpupool-server.prerm"
	cp -a "$work/stage" CHANGELOG.md "$tree/"
	printf 'gpupool (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n' \
		"$version" "$(sed -n 's/^Maintainer: //p' packaging/debian/control)" \
		"$(date -R -u -d "@$SOURCE_DATE_EPOCH")" >"$tree/debian/changelog"
	(cd "$tree" && run_logged dpkg-buildpackage -b -us -uc)
	rm -f "$out"/gpupool-*.deb
	cp "$work/deb"/*.deb "$out/"
}

# pack_rpm FOLDER PARTS OPTION...: of what is staged in that folder.
pack_rpm() {
	local folder=$1 parts=$2
	shift 2
	rm -rf "$folder/rpm"
	run_logged rpmbuild -bb --nodeps "$@" --define "_topdir $folder/rpm" --define "stage $folder/stage" \
		--define "parts $parts" --define "version_of_ours $version" --define "licence $root/LICENSE" \
		--define "upgrade $root/packaging/upgrade.sh" packaging/gpupool.spec
	cp "$folder/rpm"/RPMS/*/*.rpm "$out/"
}

build_rpm() {
	rm -f "$out"/gpupool-*.rpm
	pack_rpm "$work" "server client tools"
}

# strip_all FOLDER MACHINE
strip_all() {
	local strip=strip
	if [ "$2" != "$(uname -m)" ]; then
		strip=$2-linux-gnu-strip
	fi
	find "$1" -type f \( -name '*.so.*' -o -path '*/bin/*' \) -exec "$strip" --strip-unneeded {} +
}

# stage_client MACHINE FOLDER: the portable client, stripped, with all licences and for x86-64 a copy of OpenSSL: it
# may lie anywhere, and needs nothing of the system's packages.
stage_client() {
	local build=$work/client papers=$2/share/doc/gpupool-client
	if [ "$1" != x86_64 ]; then
		build=$work/client-$1
	fi
	rm -rf "$2"
	mkdir -p "$(dirname "$2")"
	cp -a "$build/stage/usr" "$2"
	mkdir -p "$papers"
	cp LICENSE packaging/debian/copyright "$papers/"
	if [ "$1" = x86_64 ]; then
		packaging/openssl.sh "$build" "$1"
		mkdir "$2/lib/gpupool/openssl"
		cp "$build/openssl"/lib*.so.3 "$2/lib/gpupool/openssl/"
		{
			printf '\nFiles: lib/gpupool/openssl/*\n'
			printf 'Comment: OpenSSL %s, built by packaging/openssl.sh from the sources in Debian\n' \
				"$(cat "$build/openssl/version")"
			printf 'Copyright: 1998-2026 The OpenSSL Project\nLicense: Apache-2.0\n'
		} >>"$papers/copyright"
	fi
	strip_all "$2" "$1"
}

# build_tar [MACHINE]
build_tar() {
	local name=gpupool-client-$version-${1:-x86_64}
	stage_client "${1:-x86_64}" "$work/tar/$name"
	cp LICENSE docs/install.md "$work/tar/$name/"
	tar -C "$work/tar" --sort=name --owner=0 --group=0 --numeric-owner \
		--mtime="@$SOURCE_DATE_EPOCH" -cJf "$out/$name.tar.xz" "$name"
}

# build_wheel [MACHINE]
build_wheel() {
	stage_client "${1:-x86_64}" "$work/wheel/usr"
	python3 packaging/wheel.py "$work/wheel/usr" "$version" "${1:-x86_64}" LICENSE "$out"
}

# The client for aarch64.  Its .deb is the one for amd64 with other programs: all else is the same.
build_arm() {
	local tree=$work/arm/deb
	scripts/portable.sh "$work/client-aarch64" aarch64
	rm -rf "$work/arm"
	mkdir -p "$work/arm/stage"
	cp -a "$work/client-aarch64/stage" "$work/arm/stage/client"
	strip_all "$work/arm/stage/client" aarch64
	if [[ $kinds == *deb* ]]; then
		dpkg-deb -R "$out/gpupool-client_${version}_amd64.deb" "$tree"
		cp -a "$work/arm/stage/client/usr/bin" "$work/arm/stage/client/usr/lib" "$tree/usr/"
		# As debhelper has it.
		find "$tree/usr/lib" -type f -exec chmod 644 {} +
		sed -i 's/^Architecture: amd64$/Architecture: arm64/' "$tree/DEBIAN/control"
		(cd "$tree" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
		find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
		run_logged dpkg-deb -Zxz --root-owner-group -b "$tree" "$out"
	fi
	if [[ $kinds == *rpm* ]]; then
		pack_rpm "$work/arm" "client" --target aarch64
	fi
	if [[ $kinds == *tar* ]]; then
		build_tar aarch64
	fi
	if [[ $kinds == *wheel* ]]; then
		build_wheel aarch64
	fi
}

report() {
	echo "packages.sh: $*" >&2
}

mkdir -p "$work"
report "building the client (portable, in ${work##*/}/client)"
scripts/portable.sh "$work/client"
case $kinds in
*deb* | *rpm*)
	report "building daemon and tools (in ${work##*/}/native)"
	build_native
	stage server
	stage tools
	rm -rf "$work/stage/client"
	cp -a "$work/client/stage" "$work/stage/client"
	;;
esac
for kind in $kinds; do
	report "packing: $kind"
	"build_$kind"
done
ls "$out"
