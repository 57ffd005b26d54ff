#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# arm.sh COMMAND...: runs the command where this machine's kernel starts programs for aarch64, too, by qemu-user: in
# namespaces of its own, so nothing is registered outside of them.  Needs root, and Linux 6.7 or later.  Its status
# is the command's.
set -euo pipefail

# As Debian's qemu-user registers it, but opened at once: a root that is entered later has no qemu.
register() {
	local magic mask qemu
	qemu=$(readlink -f "$(command -v qemu-aarch64-static)")
	magic='\x7f\x45\x4c\x46\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
	mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
	mount -t proc proc /proc
	mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc || {
		echo "arm.sh: this kernel knows no binfmt_misc of a namespace; it needs Linux 6.7" >&2
		exit 1
	}
	printf '%s' ":qemu-aarch64:M::$magic:$mask:$qemu:POF" >/proc/sys/fs/binfmt_misc/register
}

if [ "${1:-}" = --inside ]; then
	until grep -q . /proc/self/uid_map; do
		sleep 0.01
	done
	register
	exec "${@:2}"
fi
# Standard input is not that of a job in the background if it is named.
exec 3<&0
unshare --user --mount --pid --fork --kill-child "$0" --inside "$@" <&3 &
child=$!
until [ "$(readlink "/proc/$child/ns/user")" != "$(readlink /proc/self/ns/user)" ]; do
	sleep 0.01
done
# All users, as they are.
echo "0 0 4294967295" >"/proc/$child/gid_map"
echo "0 0 4294967295" >"/proc/$child/uid_map"
wait "$child"
