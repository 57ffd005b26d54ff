# SPDX-License-Identifier: Apache-2.0
# For scripts that fetch NVIDIA's files from the part non-free of the Debian archive that this machine
# uses; to be sourced. apt checks its signature; nothing is installed, and the machine's own sources stay
# as they are.

keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# debian_open FOLDER RELEASE...: after it debian_fetch works, with its own files in FOLDER.
debian_open() {
	local archive= folder=$1 release
	if [ "$(uname -m)" = x86_64 ] && [ -f "$keyring" ] && command -v apt-get >/dev/null; then
		archive=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
			'Origin: Debian' 'Label: Debian' 'Component: main' | sed -n 1p)
	fi
	if [ -z "$archive" ]; then
		echo "${0##*/}: needs Debian on x86-64, after 'apt-get update'" >&2
		return 1
	fi
	debian=$folder
	mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial"
	shift
	for release in "$@"; do
		echo "deb [signed-by=$keyring] $archive $release non-free"
	done >"$folder/sources"
	debian_apt update
}

debian_apt() {
	timeout 900 apt-get -qq -o Dir::Etc::sourcelist="$debian/sources" -o Dir::Etc::sourceparts=- \
		-o Dir::State::lists="$debian/lists" -o Dir::Cache="$debian/cache" -o APT::Sandbox::User= "$@" >&2
}

# debian_fetch FOLDER PACKAGE...: the packages' files, in the folder.
debian_fetch() {
	local folder=$1
	shift
	mkdir -p "$folder"
	(cd "$folder" && debian_apt download "$@")
}
