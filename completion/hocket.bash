# SPDX-License-Identifier: Apache-2.0
# bash completion for hocket(1): options from --help, algorithms from list.

_hocket()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local hocket=${COMP_WORDS[0]} command=${COMP_WORDS[1]} words=''
	local collectives='allreduce allgather reducescatter alltoall broadcast reduce gather
		scatter barrier sendrecv'

	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		words='plan check list run --help --version'
	elif [[ $prev == -a || $prev == --algo ]]; then
		words=$("$hocket" list "${COMP_WORDS[2]}" --json 2>/dev/null |
			sed -n 's/.*"algorithm": "\([^"]*\)".*/\1/p')
	elif [[ $prev =~ ^(-n|--ranks|--nodes|--root|--pairs|--rank|--timeout|--grace)$ ]]; then
		return
	elif [[ $command == run && $prev == --net ]]; then
		words='auto shm tcp'
	elif [[ $command == run && $prev == --hosts ]]; then
		words=$(compgen -A hostname)
	elif [[ $command == run && $prev == --env ]]; then
		words=$(compgen -e)
	elif [[ $cur == -* ]]; then
		words=$("$hocket" "$command" --help 2>/dev/null | grep -Eo -- '(^| )--?[a-z]+(-[a-z]+)*')
		words+=' --help'
	elif [[ $command == run ]]; then
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -A command -A file -- "$cur")
	elif ((COMP_CWORD == 2)); then
		words=$collectives
		if [[ $command == check ]]; then
			compopt -o filenames 2>/dev/null
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		fi
	fi
	mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$words" -- "$cur" | sort -u)
}

complete -F _hocket hocket
