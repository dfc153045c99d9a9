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

# environment NAME [PIP-OPTION...] - the Python environment of that name, from
# $here/requirements.txt.
environment() {
	local name=$1 folder
	shift
	folder=$venvs/$name
	python=$folder/bin/python
	if ! cmp -s "$here/requirements.txt" "$folder/requirements.txt"; then
		echo "making $folder" >&2
		rm -rf "$folder"
		python3 -m venv "$folder"
		"$python" -m pip install --quiet --disable-pip-version-check "$@" \
			-r "$here/requirements.txt"
		cp "$here/requirements.txt" "$folder/requirements.txt"
	fi
}

# free_port - a port of this machine that nothing listens at.
free_port() {
	python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}
