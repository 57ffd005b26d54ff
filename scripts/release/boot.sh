#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# boot.sh FOLDER NAME: becomes the first process of a machine, as a container has them, whose files
# are FOLDER: Debian's systemd, with real units, a network of its own, and no device but null and
# its like.  In new namespaces of processes, mounts, names and network, as root
# (scripts/release/machine.sh).  The kernel's settings are read-only there.
set -euo pipefail

root=$1
name=$2
if [ "${3:-}" != inside ]; then
	# A control group of its own is the root of what systemd there sees.
	mount --bind "$root" "$root"
	mount -t cgroup2 cgroup2 "$root/mnt"
	mkdir -p "$root/mnt/$name"
	echo 0 >"$root/mnt/$name/cgroup.procs"
	umount "$root/mnt"
	exec unshare --cgroup "$0" "$root" "$name" inside
fi
hostname "$name"
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
	touch "$root/dev/$device"
	mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mkdir -p "$root/.outside"
cd "$root"
pivot_root . .outside
umount -l /.outside
cd /
exec env -i container=gpupool PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd
