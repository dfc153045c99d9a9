# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # some is for who reads this
#
# environment.sh - sourced by integrations/NAME/run. A stack runs in a Python environment of
# its own, with the versions that its requirements.txt pins, below HOCKET_VENVS or
# ~/.cache/hocket/venvs. It is made once, and again when the file changes.
#
# Sets root (the repository), build (BUILD, or build/ of it), here (the folder of the script),
# hocket (the command) and, after environment NAME, python.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[1]}")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${BUILD:-$root/build}
hocket=$build/hocket

if [[ ! -x $hocket ]]; then
	echo "${0#"$root/"}: $hocket is not there: run make first" >&2
	exit 1
fi
venvs=${HOCKET_VENVS:-${XDG_CACHE_HOME:-$HOME/.cache}/hocket/venvs}
unset HOCKET_VENVS # ranks would say that the library does not know it
export PYTHONPATH=$root/bindings/python${PYTHONPATH:+:$PYTHONPATH}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

# environment NAME [FILE [PIP-OPTION...]] - the Python environment of that name, from FILE or
# $here/requirements.txt.
environment() {
	local name=$1 file=${2:-$here/requirements.txt} folder
	shift $(($# < 2 ? $# : 2))
	folder=$venvs/$name
	python=$folder/bin/python
	if ! cmp -s "$file" "$folder/requirements.txt"; then
		echo "making $folder" >&2
		rm -rf "$folder"
		python3 -m venv "$folder"
		"$python" -m pip install --quiet --disable-pip-version-check "$@" \
			-r "$file"
		cp "$file" "$folder/requirements.txt"
	fi
}

# free_port - a port of this machine that nothing listens at.
free_port() {
	python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}

# torch_environment - the one of stacks on PyTorch. A machine that has CUDA's libraries needs no
# 2 GB of them from pip, though torch's package asks for them.
torch_environment() {
	local -a options=()
	if ldconfig -p | grep -q libcublas.so.13; then
		options=(--no-deps)
	fi
	environment torch-stacks "$root/integrations/torch.txt" "${options[@]}"
}

# torchrun N PROGRAM [ARGUMENT...]
torchrun() {
	local n=$1
	shift
	timeout 600 "$python" -m torch.distributed.run --nnodes 1 --nproc-per-node "$n" \
		--rdzv-backend c10d --rdzv-endpoint 127.0.0.1:0 "$@"
}

# same_losses FILE - lines "losses BACKEND LAYOUT LOSS...": all are equal, within what sums in
# another order differ by, and they fall.
same_losses() {
	awk '
		$1 == "losses" {
			lines++
			for (i = 4; i <= NF; i++) {
				if (lines == 1)
					first[i] = $i
				off = $i - first[i]
				if (off > 2e-5 * (1 + first[i]) || -off > 2e-5 * (1 + first[i])) {
					printf "%s %s: loss %d is %s, not %s\n", $2, $3, i - 3, $i, first[i]
					bad = 1
				}
			}
			if (NF < 5 || $NF >= $4) {
				print $2, $3 ": the loss does not fall"
				bad = 1
			}
		}
		END {
			if (lines < 2)
				bad = 1
			if (!bad)
				printf "%d runs have the same losses\n", lines
			exit bad
		}' "$1"
}
