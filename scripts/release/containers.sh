# SPDX-License-Identifier: Apache-2.0
# The step of scripts/check_release.sh, which reads this file, that builds the images of packaging/container and runs
# them: by buildah, which needs no daemon, and is content with a root in place of a machine's own engine.  The image
# that both begin with is the clean root, so no registry is asked.

images() {
	buildah --root "$work/images" --runroot "$work/images-run" --storage-driver vfs "$@"
}

# in_image CONTAINER -- COMMAND...: in the network of this step, with what an engine would mount.
in_image() {
	local container=$1
	shift
	nsenter -t "$network" --net buildah --root "$work/images" --runroot "$work/images-run" --storage-driver vfs \
		run --isolation chroot --volume "$work/pool:/etc/gpupool" --volume "$work/token:/run/secrets/token" "$container" "$@"
}

# print_entry IMAGE: prints its command, a word a line.
print_entry() {
	images inspect --type image --format \
		'{{range .OCIv1.Config.Entrypoint}}{{println .}}{{end}}{{range .OCIv1.Config.Cmd}}{{println .}}{{end}}' "$1" | sed '/^$/d'
}

remove_images() {
	images rm --all
	images rmi --all --force
	rm -rf "$work/pool" "$work/token"
}

build_images() {
	local container kind archive
	remove_images
	install -m 600 /dev/null "$work/token"
	make_archive bookworm
	container=$(images from scratch)
	images add "$container" "$archive" /
	images commit --quiet "$container" docker.io/library/debian:12-slim
	for kind in server client; do
		images bud --isolation chroot --pull-never --file "packaging/container/$kind.Dockerfile" --tag "gpupool-$kind" "$out"
	done
}

# The daemon as its image starts it, with the software device; and a program in the client's image over TLS.
step_containers() {
	local server client words network engine inner
	command -v buildah || fail "there is no buildah"
	build_images
	server=$(images from --pull-never localhost/gpupool-server)
	client=$(images from --pull-never localhost/gpupool-client)
	# As an engine fills a new volume.
	cp -a "$(images mount "$server")/etc/gpupool" "$work/pool"
	unshare --net sleep 600 &
	network=$!
	daemon=$network
	sleep 0.5
	nsenter -t "$network" --net ip link set lo up
	[[ $(in_image "$server" -- gpupoold --version) == *" $version" ]] || fail "its gpupoold is of another version"
	in_image "$server" -- gpupoolctl cert init localhost
	in_image "$server" -- gpupoolctl token create alice -o - >"$work/token"
	mapfile -t words < <(print_entry localhost/gpupool-server)
	in_image "$server" -- "${words[@]}" --driver /usr/lib/gpupool/libcuda-soft.so >"$work/daemon.log" 2>&1 &
	engine=$!
	for _ in $(seq 300); do
		if grep -q 'listening on tls' "$work/daemon.log"; then
			break
		fi
		sleep 0.2
	done
	cat "$work/daemon.log"
	# It does not end with the engine that runs it.
	inner=$(sed -n 's/.*gpupoold\[\([0-9]*\)\]: info: listening on tls.*/\1/p' "$work/daemon.log")
	[ -n "$inner" ] || fail "the server's image does not start"
	trap 'kill "$inner" || true; stop_daemon' EXIT
	images copy "$client" build-packages/client/tests/portable/portable-app /app
	expect_sums in_image "$client" -- env REMOTE_GPU=tls://localhost GPUPOOL_TOKEN_FILE=/run/secrets/token /app
	in_image "$client" -- env REMOTE_GPU=tls://localhost GPUPOOL_TOKEN_FILE=/run/secrets/token gpupool check >"$work/check.txt" || true
	cat "$work/check.txt"
	! grep -E '^(wrong|note|-) ' "$work/check.txt" || fail "in the client's image not all is green"
	[ "$(grep -c '^ok ' "$work/check.txt")" -ge 10 ] || fail "gpupool check says too little there"
	echo "$(grep -c '^ok ' "$work/check.txt") lines of gpupool check are green in the client's image" >&3
	kill "$inner"
	wait "$engine" || fail "its daemon ends with $?"
	trap stop_daemon EXIT
	remove_images >"$work/images.log"
}
