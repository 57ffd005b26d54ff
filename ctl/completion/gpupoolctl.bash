# SPDX-License-Identifier: Apache-2.0
# Completion of gpupoolctl(1) for bash: commands and options, as "gpupoolctl help" has them.

_gpupoolctl() {
	local current=${COMP_WORDS[COMP_CWORD]} first=${COMP_WORDS[1]} all
	COMPREPLY=()

	# A line for each command, of one word or two.
	all=$("${COMP_WORDS[0]}" help 2>/dev/null | sed -nE 's/^  ([a-z]+( [a-z]+)?)( .*)?$/\1/p')
	if [ "$COMP_CWORD" -eq 1 ]; then
		COMPREPLY=($(compgen -W "$(cut -d ' ' -f 1 <<<"$all" | sort -u)" -- "$current"))
	elif [ "$COMP_CWORD" -eq 2 ] && [ "$first" = help ]; then
		COMPREPLY=($(compgen -W "$(cut -d ' ' -f 1 <<<"$all" | sort -u)" -- "$current"))
	elif [ "$COMP_CWORD" -eq 2 ] && grep -q "^$first " <<<"$all"; then
		COMPREPLY=($(compgen -W "$(sed -n "s/^$first //p" <<<"$all")" -- "$current"))
	elif [[ $current == -* ]]; then
		[[ $'\n'$all$'\n' == *$'\n'"$first ${COMP_WORDS[2]}"$'\n'* ]] && first="$first ${COMP_WORDS[2]}"
		COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" help $first 2>/dev/null | head -1 | grep -oE -e '--?[a-z]+') --format=" -- "$current"))
	else
		COMPREPLY=($(compgen -f -- "$current"))
	fi
}

complete -o filenames -F _gpupoolctl gpupoolctl
