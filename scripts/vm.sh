#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# vm.sh DIR COMMAND [ARG...]: runs COMMAND in DIR in a virtual machine (QEMU without KVM, Debian's
# kernel). It sees the files of this machine and none of its devices; files written outside of DIR are gone
# afterwards. Standard output gets all that COMMAND prints. Exit status: COMMAND's;
# 77: it cannot run here, and one line has the reason; 124: the time was over; 125: the machine failed.
# vm.sh --kit FOLDER: makes FOLDER, with which VM_KIT=FOLDER vm.sh ... runs on a machine without
# QEMU, packages and network.
#
# VM_SECONDS  the time limit, 120         VM_MEMORY  1G         VM_CPUS  2
# VM_NET      user: this machine's loopback is 10.0.2.2 there; a -netdev of QEMU that joins several
#             machines: each is 10.9.0.VM_ID (1); empty: so is a dummy interface
# VM_RDMA     not empty: rdma_rxe is loaded, and rxe0 is a device on eth0
# VM_LOG      file for the kernel's log; without it, it is kept when the machine fails
set -euo pipefail

START_SECONDS=60
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/gpupool-vm
# In the order in which they are loaded.
modules="virtio/virtio_ring virtio/virtio virtio/virtio_pci_modern_dev
	virtio/virtio_pci_legacy_dev virtio/virtio_pci fs/netfs/netfs fs/fscache/fscache 9p/9pnet
	fs/9p/9p 9p/9pnet_virtio overlayfs/overlay firmware/qemu_fw_cfg core/failover
	net/net_failover net/virtio_net net/dummy"
rdma_modules="crypto/crc32_generic ipv4/udp_tunnel ipv6/ip6_udp_tunnel core/ib_core core/ib_uverbs
	rxe/rdma_rxe fs/configfs/configfs core/ib_cm core/iw_cm core/rdma_cm core/rdma_ucm"

cannot() {
	echo "vm.sh: no virtual machine here: $*" >&2
	exit 77
}

# Package lists and downloads of its own: the system's may be old, and take root.
own_apt() {
	local command=$1
	shift
	"$command" -qq -o APT::Sandbox::User=root -o Dir::State::Lists="$cache/apt/lists" \
		-o Dir::Cache="$cache/apt" "$@" 2>>"$cache/errors"
}

# fetch: kernel, modules and busybox come into the cache; nothing is installed.
fetch() {
	local kernel module offset package root=$cache/root
	echo "fetching Debian's kernel and busybox (72 MB) into $cache" >&2
	rm -rf "$cache"
	mkdir -p "$cache"/{apt/lists/partial,apt/archives/partial,mod}
	type apt-get dpkg-deb xz >"$cache/errors" 2>&1 ||
		cannot "no apt-get, dpkg-deb or xz to fetch a kernel with"
	own_apt apt-get update || true
	kernel=$(own_apt apt-cache depends linux-image-amd64 | sed -n 's/^ *Depends: //p') || true
	(cd "$cache/apt" && own_apt apt-get download busybox-static "${kernel:-linux-image}") ||
		cannot "no kernel from Debian: $(sed -n '/^[EW]: /{p;q}' "$cache/errors")"
	for package in "$cache"/apt/*.deb; do
		dpkg-deb -x "$package" "$root"
	done
	# QEMU starts an unpacked kernel directly; to unpack it takes an emulated machine seconds.
	kernel=$(echo "$root"/boot/vmlinuz-*)
	offset=$(LC_ALL=C grep -abom1 $'\xfd7zXZ' "$kernel" | head -n 1 | cut -d: -f1)
	# For xz, what follows in the file is rubbish.
	tail -c "+$((offset + 1))" "$kernel" | xz -dcq >"$cache/vmlinux" 2>>"$cache/errors" || true
	for module in $modules $rdma_modules; do
		cp "$(find "$root/lib/modules" -path "*/$module.ko")" "$cache/mod" ||
			cannot "${kernel##*/} has no module $module"
	done
	cp "$root/bin/busybox" "$cache"
	rm -rf "$root" "$cache/apt"
	echo "$modules $rdma_modules" >"$cache/complete"
}

prepare() {
	mkdir -p "$(dirname "$cache")"
	exec 9>"$cache.lock"
	flock 9
	if [ "$(cat "$cache/complete" 2>/dev/null)" != "$modules $rdma_modules" ]; then
		fetch
	fi
	exec 9>&-
}

# One archive: QEMU with its libraries and C library, so that an older system will do.
make_kit() {
	local kit=$work/kit file
	mkdir -p "$kit"/{lib,rom} "$1"
	cp --sparse=never -r "$cache"/{vmlinux,busybox,mod} "$kit"
	cp -L "$(command -v qemu-system-x86_64)" "$kit/qemu"
	cp -L "$(find /usr/lib -name accel-tcg-x86_64.so)" "$kit/lib"
	ldd "$kit/qemu" | grep -o '/[^ ]*' | xargs cp -Lt "$kit/lib"
	for file in bios-256k.bin kvmvapic.bin pvh.bin; do
		cp -L "$(find /usr/share/{qemu,seabios} -name "$file" | head -n 1)" "$kit/rom"
	done
	tar -C "$kit" -c . | gzip -9 >"$1/vm.tar.gz"
	echo "$1: $(du -h "$1/vm.tar.gz" | cut -f1); VM_KIT=$1 uses it"
}

make_initramfs() {
	local number=10 module
	mkdir -p "$work/ird"/{bin,mod,proc,sys,dev,lower,upper,r}
	cp "$cache/busybox" "$work/ird/bin"
	for module in $modules ${VM_RDMA:+$rdma_modules}; do
		cp "$cache/mod/${module##*/}.ko" "$work/ird/mod/$((number++))-${module##*/}.ko"
	done
	cat >"$work/ird/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox mkdir -p /usr/bin /usr/sbin /sbin && /bin/busybox --install -s
mount -t proc proc /proc && mount -t sysfs sys /sys && mount -t devtmpfs dev /dev
for m in /mod/*; do insmod $m || echo "$m could not be loaded"; done
f=/sys/firmware/qemu_fw_cfg/by_name/opt/vm
o=trans=virtio,version=9p2000.L,msize=512000
mount -t 9p -o $o,ro,cache=loose root /lower && mount -t tmpfs tmp /upper
mkdir /upper/files /upper/work
mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work root /r
for d in proc sys dev; do mkdir -p /r/$d && mount --bind /$d /r/$d; done
mkdir -p /r/dev/shm /r/dev/pts && mount -t tmpfs -o mode=1777 shm /r/dev/shm
mount -t devpts pts /r/dev/pts
mount -t 9p -o $o,cache=mmap share "/r$(cat $f/folder/raw)"
ip link set lo up
[ -e /sys/class/net/eth0 ] || ip link add eth0 type dummy
ip addr add $VM_ADDRESS/24 dev eth0 && ip link set eth0 up
[ -z "$VM_RDMA" ] || chroot /r rdma link add rxe0 type rxe netdev eth0
stty -F /dev/ttyS1 raw -echo
echo started >/dev/ttyS2
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb \
	setsid chroot /r /bin/bash -c "$(cat $f/command/raw)" </dev/null >/dev/ttyS1 2>&1
echo $? >/dev/ttyS2
sync && poweroff -f
INIT
	chmod +x "$work/ird/init"
	(cd "$work/ird" && find . | "$cache/busybox" cpio -o -H newc >"$work/initramfs" 2>/dev/null)
}

# watch_start MACHINE LOG: kills a machine that prints nothing for START_SECONDS before it runs the
# command. An emulated kernel with two processors stops now and then while it starts.
watch_start() {
	local size=-1 since=$SECONDS now
	while [ ! -s "$work/status" ] && kill -0 "$1" 2>/dev/null; do
		now=$(stat -c %s "$2" 2>/dev/null || echo 0)
		if [ "$now" != "$size" ]; then
			size=$now since=$SECONDS
		elif [ $((SECONDS - since)) -ge "$START_SECONDS" ]; then
			touch "$work/hangs"
			kill "$1"
			return
		fi
		sleep 1
	done
}

run() {
	local attempt status=0 log=${VM_LOG:-$work/log} address=10.9.0.${VM_ID:-1} network=()
	local files=security_model=none,multidevs=remap
	local card=netdev=net,romfile=,mac=52:54:00:12:34
	local words="console=ttyS0 panic=-1 tsc=reliable mitigations=off random.trust_cpu=on"
	# On a busy machine the emulated timer may not tick while the kernel looks whether it does.
	words="$words no_timer_check"
	case ${VM_NET:-} in
	'') ;;
	user) address=10.0.2.15 ;&
	*) network=(-netdev "$VM_NET,id=net"
		-device "virtio-net-pci,$card:$(printf %02x "${VM_ID:-1}")") ;;
	esac
	for attempt in 1 2 3; do
		status=0
		rm -f "$work/hangs" "$work/status"
		timeout --foreground --kill-after=5 "${VM_SECONDS:-120}" \
			"${qemu[@]}" -M pc -nodefaults -no-reboot -display none \
			-accel tcg,thread=multi -cpu max -smp "${VM_CPUS:-2}" -m "${VM_MEMORY:-1G}" \
			-kernel "$cache/vmlinux" -initrd "$work/initramfs" \
			-append "$words VM_ADDRESS=$address VM_RDMA=${VM_RDMA:-}" -serial "file:$log" \
			-chardev stdio,id=out,signal=off -serial chardev:out -serial "file:$work/status" \
			-virtfs "local,path=/,mount_tag=root,readonly=on,$files" \
			-virtfs "local,path=${folder//,/,,},mount_tag=share,$files" \
			-fw_cfg "name=opt/vm/command,file=$work/command" \
			-fw_cfg "name=opt/vm/folder,file=$work/folder" "${network[@]}" </dev/null &
		machine=$!
		watch_start "$machine" "$log" </dev/null >/dev/null 2>&1 &
		wait "$machine" || status=$?
		machine=
		[ -e "$work/hangs" ] || break
		echo "vm.sh: the virtual machine hangs while it starts (attempt $attempt of 3)" >&2
	done
	if [ "$status" = 124 ]; then
		echo "vm.sh: ended after ${VM_SECONDS:-120} s" >&2
	elif [ "$status" = 0 ] && grep -q '[0-9]' "$work/status"; then
		exit "$(tr -dc 0-9 <"$work/status")"
	else
		echo "vm.sh: the virtual machine failed (QEMU's status is $status)" >&2
		status=125
	fi
	if [ -z "${VM_LOG:-}" ]; then
		log=$(mktemp "${TMPDIR:-/tmp}/vm-log.XXXXXX")
		cp "$work/log" "$log"
	fi
	echo "vm.sh: the kernel's log is $log, and ends so:" >&2
	tail -n 20 "$log" >&2
	exit "$status"
}

if [ $# -lt 2 ]; then
	echo "usage: vm.sh DIR COMMAND [ARG...], or vm.sh --kit FOLDER" >&2
	exit 2
fi
[ "$(uname -m)" = x86_64 ] || cannot "this is no x86-64"
work=$(mktemp -d)
machine=
trap 'if [ -n "$machine" ]; then kill "$machine" || true; fi; rm -rf "$work"' EXIT
qemu=(qemu-system-x86_64)
if [ -n "${VM_KIT:-}" ]; then
	cache=$work/kit lib=$work/kit/lib
	mkdir "$cache"
	tar -C "$cache" -xzf "$VM_KIT/vm.tar.gz" 2>"$work/log" || cannot "$VM_KIT has no vm.tar.gz"
	export QEMU_MODULE_DIR=$lib
	qemu=("$lib/ld-linux-x86-64.so.2" --library-path "$lib" "$cache/qemu" -L "$cache/rom")
else
	type "${qemu[0]}" >"$work/log" 2>&1 || cannot "no QEMU; scripts/deps.sh check installs it"
	prepare
fi
if [ "$1" = --kit ]; then
	make_kit "$2"
	exit
fi
folder=$(realpath "$1")
shift
echo "cd ${folder@Q} && ${*@Q}" >"$work/command"
printf %s "$folder" >"$work/folder"
make_initramfs
run
