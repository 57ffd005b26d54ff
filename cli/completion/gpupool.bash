# SPDX-License-Identifier: Apache-2.0
# Completion of gpupool(1) for bash.

# The pools of the user's and of the machine's pools.conf.
_gpupool_pools() {
	local folder=${XDG_CONFIG_HOME:-$HOME/.config}/gpupool file
	for file in "$folder/pools.conf" /etc/gpupool/pools.conf; do
		[ -r "$file" ] && sed -n 's/^[[:space:]]*\[pool[[:space:]]\{1,\}\([A-Za-z0-9._-]*\)[[:space:]]*\].*/\1/p' "$file"
	done
}

_gpupool() {
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	local command=${COMP_WORDS[1]} commands='run devices check env login logout pools help' options='' at
	COMPREPLY=()

	if [ "$COMP_CWORD" -eq 1 ]; then
		COMPREPLY=($(compgen -W "$commands --version --help" -- "$current"))
		return
	fi
	case $previous in
	-p | --pool)
		COMPREPLY=($(compgen -W "$(_gpupool_pools)" -- "$current"))
		return
		;;
	--gpus | --memory | --sm | --wait)
		return
		;;
	esac
	case $command in
	run | env) options='--pool --gpus --memory --sm --wait --help' ;;
	devices) options='--pool --list --json --help' ;;
	check) options='--pool --help' ;;
	login | logout)
		case $current in -*) [ "$command" = login ] && COMPREPLY=($(compgen -W '--no-check --help' -- "$current")) ;; esac
		[ "$COMP_CWORD" -eq 2 ] && COMPREPLY=($(compgen -W "$(_gpupool_pools)" -- "$current"))
		return
		;;
	help)
		[ "$COMP_CWORD" -eq 2 ] && COMPREPLY=($(compgen -W "$commands" -- "$current"))
		return
		;;
	*) return ;;
	esac

	# Where the program stands, from which on everything is its own.
	if [ "$command" = run ] || [ "$command" = check ]; then
		for ((at = 2; at < COMP_CWORD; at++)); do
			case ${COMP_WORDS[at]} in
			-p | --pool | --gpus | --memory | --sm | --wait) ((at++)) ;;
			-*) ;;
			*)
				[ "$command" = check ] && return
				if declare -F _command_offset >/dev/null; then
					_command_offset "$at"
				else
					COMPREPLY=($(compgen -f -- "$current"))
				fi
				return
				;;
			esac
		done
	fi
	case $current in
	-*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
	*)
		case $command in
		run | check) COMPREPLY=($(compgen -c -- "$current") $(compgen -f -- "$current")) ;;
		esac
		;;
	esac
}

complete -o filenames -F _gpupool gpupool
