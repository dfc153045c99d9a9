# SPDX-License-Identifier: Apache-2.0
# bash completion for hocket(1)

_hocket()
{
	local cur prev words cword
	local collectives='allreduce allgather reducescatter alltoall broadcast reduce gather
		scatter barrier sendrecv'

	if declare -F _init_completion >/dev/null; then
		_init_completion || return
	else
		cur=${COMP_WORDS[COMP_CWORD]}
		prev=${COMP_WORDS[COMP_CWORD - 1]}
		words=("${COMP_WORDS[@]}")
		cword=$COMP_CWORD
	fi

	if ((cword == 1)); then
		mapfile -t COMPREPLY < <(compgen -W 'plan check list --help --version' -- "$cur")
		return
	fi

	case $prev in
	--algo)
		# Of the collective that was named; `hocket list` knows them.
		mapfile -t COMPREPLY < <(compgen -W "$("${words[0]}" list --json 2>/dev/null |
			tr -d '\n' | tr '{' '\n' | sed -n "s/.*\"collective\": *\"${words[2]}\".*\"name\": *\"\([^\"]*\)\".*/\1/p")" -- "$cur")
		return
		;;
	-n | --nodes | --root | --rank | --pairs)
		return
		;;
	esac

	case ${words[1]} in
	plan)
		if ((cword == 2)); then
			mapfile -t COMPREPLY < <(compgen -W "$collectives" -- "$cur")
		else
			mapfile -t COMPREPLY < <(compgen -W '-n --algo --nodes --root --pairs --rank
				--json --dot --picture' -- "$cur")
		fi
		;;
	check)
		if [[ $cur != -* ]] && ((cword == 2)); then
			mapfile -t COMPREPLY < <(compgen -W "$collectives" -- "$cur"
				compgen -f -- "$cur")
			compopt -o filenames 2>/dev/null
		else
			mapfile -t COMPREPLY < <(compgen -W '-n --algo --nodes --root --all
				--json' -- "$cur")
		fi
		;;
	list)
		mapfile -t COMPREPLY < <(compgen -W '--json' -- "$cur")
		;;
	esac
}

complete -F _hocket hocket
