# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # some is for who reads this
#
# common.bash BUILD - what the scripts beside it share: $ranks is the program,
# $work a folder that goes when they end, $failed how they end.
set -euo pipefail
build=$(cd "$1" && pwd)
ranks=$build/test/launch_ranks
work=$(mktemp -d)
failed=0
begun=()
trap 'kill "${begun[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
unset "${!HOCKET_@}" "${!SLURM_@}" "${!OMPI_@}" "${!PMI@}" RANK WORLD_SIZE
export HOCKET_TIMEOUT=100 # of every call: a rank that is lost ends the test

skip() {
	echo "skipped: $1"
	exit 77
}

# begin COMMAND... - in the background, its output to $work.
begin() {
	"$@" >>"$work/out" 2>>"$work/err" </dev/null &
	begun+=($!)
}

# finish WHAT - everything that was begun ends well.
finish() {
	local pid
	for pid in "${begun[@]}"; do
		wait "$pid" || {
			echo "FAILED: $1: a rank ends with status $?"
			failed=1
		}
	done
	begun=()
}

# right WHAT N COUNTS PATTERN - $work/out has one line for each of N ranks, with
# the sum that is due, and the rest of every line is as the pattern says.
right() {
	local what=$1 n=$2 counts=$3 pattern=$4 r bad=0
	for ((r = 0; r < n; r++)); do
		[ "$(grep -Ecx "rank $r of $n: sum $((n * (n + 1) / 2)), right for $counts, $pattern" \
			"$work/out")" -eq 1 ] || bad=1
	done
	if ((bad)) || [ "$(wc -l <"$work/out")" -ne "$n" ]; then
		echo "FAILED: $what: not a line for each of $n ranks: right for $counts, $pattern"
		sed 's/^/  out: /' "$work/out" | head -20
		sed 's/^/  err: /' "$work/err" | head -20
		failed=1
	fi
	: >"$work/out"
	: >"$work/err"
}
