#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fetches Prometheus' promtool for tests/integration/test_metrics.py into .toolkit/promtool of this repository,
# from the package of the Debian archive that this machine uses. The package is not installed: it would start
# a Prometheus server, now and at each boot. Quick and silent when promtool is there, or installed.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
own=$root/.toolkit/promtool

if [ -x "$own/promtool" ] || command -v promtool >/dev/null; then
	exit 0
fi
echo "fetching promtool (19 MB) into .toolkit/promtool" >&2
mkdir -p "$own"
work=$(mktemp -d "$own/.work.XXXXXX")
trap 'rm -rf "$work"' EXIT

cd "$work"
if ! timeout 900 apt-get -qq -o APT::Sandbox::User= download prometheus >&2; then
	echo "promtool.sh: the package prometheus could not be fetched; 'apt-get update' may help" >&2
	exit 1
fi
dpkg-deb -x ./*.deb .
cp usr/bin/promtool "$own/"
