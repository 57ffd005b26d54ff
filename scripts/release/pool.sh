# SPDX-License-Identifier: Apache-2.0
# The step of scripts/check_release.sh, which reads this file, that follows docs/install.md: a pool from
# nothing, on two clean machines.

# print_commands HEADING: the lines of the first example below it in docs/install.md.
print_commands() {
	awk -v heading="## $1" '$0 == heading { below = 1 }
		below && /^    / { print substr($0, 5); found = 1 }
		found && !/^    / { exit }' docs/install.md
}

# follow NAME HEADING: runs the commands of the page on this machine, and prints them.
follow() {
	local command
	while read -r command; do
		commands=$((commands + 1))
		echo "$1\$ $command"
		case $command in
		apt\ *) fetching "$1" "$command" ;;
		*) on "$1" "$command" ;;
		esac || fail "$1: $command: status $?"
	done < <(print_commands "$2")
}

# Two machines with a cable between them; gpunode has a driver, which is the software device, and laptop
# may log in there.
two_machines() {
	local name
	for name in gpunode laptop; do
		make_root "$work/$name" bookworm systemd-sysv openssh-server
		fetching_lists "$work/$name"
		machine_start "$name" "$work/$name"
	done
	machine_cable gpunode laptop
	cp build-packages/native/softgpu/driver/libcuda-soft.so "$work/gpunode/usr/lib/x86_64-linux-gnu/libcuda.so.1"
	on laptop 'mkdir -p -m 700 .ssh && ssh-keygen -q -t ed25519 -N "" -f .ssh/id_ed25519 &&
		echo StrictHostKeyChecking accept-new >.ssh/config'
	mkdir -p -m 700 "$work/gpunode/root/.ssh"
	cp "$work/laptop/root/.ssh/id_ed25519.pub" "$work/gpunode/root/.ssh/authorized_keys"
	# The user's files: the packages, and a program that was built elsewhere.
	cp "$out"/gpupool-server_*.deb "$out"/gpupool-tools_*.deb "$work/gpunode/root/"
	cp "$out"/gpupool-client_*.deb "$work/laptop/root/"
	programs bench/nbody/nbody
	cp "$work/programs/bench/nbody/nbody" "$work/laptop/root/"
}

# apt's lists are a machine's own affair, and not of the five minutes.
fetching_lists() {
	clean=$1 in_root apt-get -qq update >&2
}

step_pool() {
	local commands=0 begin taken
	two_machines
	begin=$SECONDS
	follow gpunode "On the machine with a GPU" >"$work/pool.txt"
	follow laptop "On the machine of a program" >>"$work/pool.txt"
	taken=$((SECONDS - begin))
	machines_stop
	cat "$work/pool.txt"
	grep -q '^PASS$' "$work/pool.txt" || fail "nbody does not say that it is right"
	! grep -E '^(wrong|note|-) ' "$work/pool.txt" || fail "not all is green"
	[ "$(grep -c '^ok ' "$work/pool.txt")" -ge 10 ] || fail "gpupool check says too little"
	grep -E '^(gpunode|laptop)\$ ' "$work/pool.txt" >&3
	echo "$commands commands, $taken s" >&3
	[ "$commands" -ge 5 ] && [ "$commands" -le 10 ] && [ "$taken" -le 300 ]
}
