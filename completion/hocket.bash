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
		words='plan check list run bench fabric probe sim explain trace doctor top config --help --version'
	elif [[ $prev == -a || $prev == --algo ]]; then
		words=$("$hocket" list "${COMP_WORDS[2]}" --json 2>/dev/null |
			sed -n 's/.*"algorithm": "\([^"]*\)".*/\1/p')
	elif [[ $prev =~ ^(-n|--ranks|--nodes|--root|--pairs|--rank|--timeout|--grace)$ ]]; then
		return
	elif [[ $prev == --net ]]; then
		words='auto shm tcp'
	elif [[ $command == bench && $prev =~ ^(-b|-e|-f|--minbytes|--maxbytes|--stepfactor|--iters|--warmup)$ ]]; then
		return
	elif [[ $command == bench && $prev == --type ]]; then
		words='int8 uint8 int16 uint16 int32 uint32 int64 uint64 fp16 bf16 fp8e4m3 fp8e5m2 fp32 fp64'
	elif [[ $command == bench && $prev == --op ]]; then
		words='sum prod min max avg band bor bxor premulsum'
	elif [[ $command == bench && $prev == --plan ]]; then
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	elif [[ $command =~ ^(fabric|probe)$ && $prev =~ ^(check|-o|--output)$ ]]; then
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	elif [[ $command == fabric && $prev == --what-if ]]; then
		return
	elif [[ $prev == --fabric || ($command == fabric && $prev == show) ]]; then
		compopt -o filenames -o nospace 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		words=$("$hocket" fabric list --json 2>/dev/null |
			sed -n 's/.*"name": "\([^"]*\)".*/\1:/p')
		words+=' here'
	elif [[ $command == sim && $prev == --as ]]; then
		words='hocket nccl'
	elif [[ $command == sim && $prev == --fault ]]; then
		words='slow-rank= late-rank= slow-link= lossy-link= dead-link='
	elif [[ $command == sim && $prev =~ ^(--plan|--trace|--goal|--chakra)$ ]]; then
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	elif [[ $command == sim && $prev =~ ^(-b|-e|-f|--(minbytes|maxbytes|stepfactor|what-if|also|jitter|seed|samples|slice))$ ]]; then
		return
	elif [[ $command == explain && $prev =~ ^(-s|--size)$ ]]; then
		return
	elif [[ $command == trace && $prev =~ ^(-o|--output)$ ]]; then
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	elif [[ $command == doctor && $prev == --run || $command == top && $prev == --interval ]]; then
		return
	elif [[ $command == trace && $prev == --max-events ]]; then
		return
	elif [[ $command =~ ^(run|top)$ && $prev == --hosts ]]; then
		words=$(compgen -A hostname)
	elif [[ $command == run && $prev == --join ]]; then
		return
	elif [[ $command == run && $prev == --env ]]; then
		words=$(compgen -e)
	elif [[ $cur == -* ]]; then
		words=$("$hocket" "$command" --help 2>/dev/null | grep -Eo -- '(^| )--?[a-z]+(-[a-z]+)*')
		words+=' --help'
	elif [[ $command == run || $command == trace ]]; then
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -A command -A file -- "$cur")
	elif [[ $command == doctor ]]; then
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	elif [[ $command == top ]]; then
		return
	elif [[ $command == fabric ]]; then
		((COMP_CWORD > 2)) || words='list show check discover'
	elif [[ $command == probe ]]; then
		return
	elif [[ $command == config ]]; then
		((COMP_CWORD > 2)) || words=$("$hocket" config --json 2>/dev/null |
			sed -n 's/.*"name": "\([^"]*\)".*/\1/p')
	elif ((COMP_CWORD == 2)); then
		words=$collectives
		[[ $command != bench ]] || words+=' all'
		if [[ $command == check ]]; then
			compopt -o filenames 2>/dev/null
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		fi
	fi
	mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$words" -- "$cur" | sort -u)
}

complete -F _hocket hocket
