#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# openssl.sh BUILD_FOLDER MACHINE: libssl.so.3 and libcrypto.so.3 into BUILD_FOLDER/openssl, by the compiler with
# which scripts/portable.sh has built in BUILD_FOLDER for that machine, so for an old C library, which Debian's own
# are not. From Debian's sources, with what TLS 1.3 wants and little else. The client opens them where the system has
# no OpenSSL 3. Quick when they are there.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=$(cd "$1" && pwd)
machine=$2
place=$folder/openssl
"$root/subprojects/fetch.sh" openssl
source=$root/subprojects/openssl
recipe=$(cat "$0" "$folder/tools/cc" "$source/VERSION.dat" | sha256sum)
if [ "$(cat "$place/recipe" 2>/dev/null)" = "$recipe" ]; then
	exit
fi
echo "building OpenSSL for $machine (5 to 15 minutes)" >&2
. "$root/scripts/progress.sh"
rm -rf "$place"
mkdir -p "$place/build"
cd "$place/build"
{
	"$source/Configure" "linux-$machine" shared no-tests no-engine no-legacy no-dtls no-comp no-cms no-ts no-ocsp \
		no-ct no-srp no-psk no-srtp no-ssl3 no-tls1 no-tls1_1 no-tls1_2 no-idea no-seed no-rc2 no-rc4 no-md4 \
		no-mdc2 no-rmd160 no-whirlpool no-blake2 no-bf no-cast no-camellia no-aria no-sm2 no-sm3 no-sm4 no-des \
		no-siphash no-gost no-ec2m no-dso no-async no-ui-console no-cmp no-rfc3779 no-nextprotoneg no-afalgeng \
		no-autoload-config no-scrypt no-dsa no-ocb no-siv \
		--openssldir=/etc/ssl --libdir=lib CC="$folder/tools/cc" AR="$folder/tools/ar" RANLIB=true CFLAGS=-O2 &&
		make -s -j"${JOBS:-$(nproc)}" build_generated &&
		make -s -j"${JOBS:-$(nproc)}" libcrypto.so.3 libssl.so.3
} >"$place/log" 2>&1 &
show_while $! OpenSSL 'echo "$(find . -name "*.o" | wc -l) files compiled"'
wait $! || {
	tail -30 "$place/log" >&2
	exit 1
}
cp libssl.so.3 libcrypto.so.3 "$place/"
sed -n 's/^\(MAJOR\|MINOR\|PATCH\)=//p' "$source/VERSION.dat" | paste -sd. >"$place/version"
rm -rf "$place/build"
echo "$recipe" >"$place/recipe"
