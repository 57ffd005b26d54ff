# SPDX-License-Identifier: Apache-2.0
# Clean roots of Debian for scripts/check_release.sh, which reads this file.

# in_root COMMAND...: in the clean root, which has a /proc for that long, and nothing of this
# environment.  Where it has a folder for a toolkit, that is this machine's.  inside: a command that runs it.
in_root() {
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive \
		${REMOTE_GPU:+"REMOTE_GPU=$REMOTE_GPU"} ${inside:-} unshare --mount sh -c \
		'mount -t proc proc "$0/proc"
		[ ! -d "$0/usr/local/cuda" ] || mount --bind "$1" "$0/usr/local/cuda"
		place=$0
		shift
		exec chroot "$place" "$@"' "$clean" "$(scripts/toolkit.sh)" "$@"
}

# make_archive SUITE [PACKAGE...]: a clean root of this Debian with these packages, as a file: sets $archive.
make_archive() {
	local include suite=$1
	shift
	archive=$work/root-$suite${1:+-$1}.tar
	include=$(IFS=, && echo "$*")
	if [ ! -f "$archive" ]; then
		mmdebstrap --quiet --format=tar --variant=apt ${include:+"--include=$include"} "$suite" "$archive.new" >&2
		mv "$archive.new" "$archive"
	fi
}

# make_root [FOLDER [SUITE [PACKAGE...]]]: a new clean root, by default of Debian 12.
make_root() {
	local archive
	make_archive "${2:-bookworm}" "${@:3}"
	unpack_root "$archive" "${1:-$clean}"
}

# unpack_root ARCHIVE FOLDER
unpack_root() {
	local archive=$1 folder=$2 device file
	rm -rf "$folder"
	mkdir -p "$folder"
	# Its few devices are those of this machine.
	tar -xf "$archive" -C "$folder" --exclude='./dev/*'
	for device in null zero random urandom; do
		cp -a "/dev/$device" "$folder/dev/"
	done
	mkdir -p "$folder/dev/shm"
	for file in resolv.conf hosts; do
		cp "/etc/$file" "$folder/etc/"
	done
	for file in /etc/apt/apt.conf.d/*; do
		if grep -qi proxy "$file"; then
			cp "$file" "$folder/etc/apt/apt.conf.d/"
		fi
	done
}

# Lists the project's files in the root, without lists and logs of the package manager.
ours_in_root() {
	(cd "$clean" && find . -xdev \( -path ./var/lib/apt -o -path ./var/cache -o -path ./var/log \
		-o -path ./tmp \) -prune -o \( -name '*gpupool*' -o -name '*libcuda*' -o -name '*nvidia*' \) -print)
}
