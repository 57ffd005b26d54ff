#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# packages.sh OUTDIR [deb|rpm|tar|wheel]...: builds the packages into OUTDIR, all kinds unless some
# are named: .deb and .rpm of server, client and tools, a tarball and a Python wheel of the client.
# Which file is in which package is said by the install_tag of the build files.  The client is the
# portable one (scripts/portable.sh).  Builds in build-packages.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ $# -lt 1 ]; then
	echo "usage: packages.sh OUTDIR [deb|rpm|tar|wheel]..." >&2
	exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
kinds=${*:-deb rpm tar wheel}
cd "$root"
scripts/deps.sh packages
work=$root/build-packages
version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" meson.build)
if [ -n "$(git status --porcelain 2>/dev/null)" ]; then
	echo "packages.sh: the tree has changes that are not committed; they are packed, too" >&2
fi
# The date of the last change: the same tree gives the same packages.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

quiet() {
	"$@" >"$work/log" 2>&1 || {
		cat "$work/log" >&2
		echo "packages.sh: $1 failed" >&2
		exit 1
	}
}

build_native() {
	if [ ! -f "$work/native/build.ninja" ]; then
		quiet meson setup "$work/native" --prefix=/usr --libdir=lib --buildtype=release \
			-Ddebug=true -Dparts=installed "-Dtoolkit=$(scripts/toolkit.sh)"
	fi
	quiet ninja -C "$work/native"
}

# stage NAME: what is installed of one package.
stage() {
	rm -rf "$work/stage/$1"
	mkdir -p "$work/stage/$1"
	DESTDIR=$work/stage/$1 quiet meson install -C "$work/native" --no-rebuild --tags "$1"
	find "$work/stage/$1" -name 'lib*.so' -type l -delete
}

build_deb() {
	local tree=$work/deb/gpupool-$version
	rm -rf "$work/deb"
	mkdir -p "$tree"
	cp -a packaging/debian "$tree/debian"
	cp -a "$work/stage" CHANGELOG.md "$tree/"
	printf 'gpupool (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n' \
		"$version" "$(sed -n 's/^Maintainer: //p' packaging/debian/control)" \
		"$(date -R -u -d "@$SOURCE_DATE_EPOCH")" >"$tree/debian/changelog"
	(cd "$tree" && quiet dpkg-buildpackage -b -us -uc)
	rm -f "$out"/gpupool-*.deb
	cp "$work/deb"/*.deb "$out/"
}

build_rpm() {
	rm -rf "$work/rpm"
	quiet rpmbuild -bb --nodeps --define "_topdir $work/rpm" --define "stage $work/stage" \
		--define "version_of_ours $version" --define "licence $root/LICENSE" packaging/gpupool.spec
	rm -f "$out"/gpupool-*.rpm
	cp "$work/rpm"/RPMS/*/*.rpm "$out/"
}

# The portable client alone, stripped: it may lie anywhere.
build_tar() {
	local name=gpupool-client-$version-x86_64
	rm -rf "$work/tar"
	mkdir -p "$work/tar"
	cp -a "$work/client/stage/usr" "$work/tar/$name"
	cp LICENSE docs/install.md "$work/tar/$name/"
	strip_all "$work/tar/$name"
	tar -C "$work/tar" --sort=name --owner=0 --group=0 --numeric-owner \
		--mtime="@$SOURCE_DATE_EPOCH" -cJf "$out/$name.tar.xz" "$name"
}

strip_all() {
	find "$1" -type f \( -name '*.so.*' -o -path '*/bin/*' \) -exec strip --strip-unneeded {} +
}

build_wheel() {
	rm -rf "$work/wheel"
	mkdir -p "$work/wheel"
	cp -a "$work/client/stage/usr" "$work/wheel/usr"
	strip_all "$work/wheel/usr"
	python3 packaging/wheel.py "$work/wheel/usr" "$version" LICENSE "$out"
}

mkdir -p "$work"
scripts/portable.sh "$work/client"
case $kinds in
*deb* | *rpm*)
	build_native
	stage server
	stage tools
	rm -rf "$work/stage/client"
	cp -a "$work/client/stage" "$work/stage/client"
	;;
esac
for kind in $kinds; do
	"build_$kind"
done
ls "$out"
