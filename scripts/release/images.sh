# SPDX-License-Identifier: Apache-2.0
# Steps of check_release.sh: what the files of containers' images say, and the neighbouring version.
# build_image ROLE: what the file of a container's image says, in the clean root, which stands for the
# image that it begins with.
build_image() {
	local word rest source recipe=packaging/container/$1.Dockerfile
	make_root
	while read -r word rest; do
		case $word in
		COPY)
			for source in ${rest% *}; do
				cp "$out"/$source "$clean${rest##* }"
			done
			;;
		RUN) in_root sh -ec "$rest" </dev/null ;;
		ARG | FROM | ENV | EXPOSE | STOPSIGNAL | ENTRYPOINT | CMD) ;;
		*) fail "$recipe: $word is not known here" ;;
		esac
	done < <(grep -v -e '^#' -e '^$' "$recipe" | sed -e ':more' -e '/\\$/{N;s/\\\n//;b more' -e '}')
}

step_container() {
	local command
	build_image server
	command=$(sed -nE 's/^(ENTRYPOINT|CMD) //p' packaging/container/server.Dockerfile |
		python3 -c 'import json, sys; print(*(word for line in sys.stdin for word in json.loads(line)))')
	in_root gpupoolctl cert init 127.0.0.1
	start_daemon in_root ${command/0.0.0.0:4833/127.0.0.1:0} --driver /usr/lib/gpupool/libcuda-soft.so
	stop_daemon
	build_image client
	cp build-packages/client/tests/portable/portable-app "$clean/tmp/app"
	start_daemon build-packages/native/server/gpupoold --driver build-packages/native/softgpu/driver/libcuda-soft.so
	expect_sums in_root /tmp/app
	expect_sums in_root gpupool run /tmp/app
	stop_daemon
}

step_neighbours() {
	scripts/neighbours.sh
}

