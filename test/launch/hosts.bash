# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # some is for, or of, who reads this
#
# hosts.bash - hosts that are network namespaces; read after common.bash.
#
# Host k is 10.77.N.k and fd77:N::k on its interface hkN (N: 0 and 1), which leads
# to a bridge in a namespace of its own: nothing is added to the machine's network.
# $work/ssh is an ssh to them, by their addresses.

prefix=hk$$-
spaces=()

hosts_cleanup() {
	local space
	kill "${begun[@]}" 2>/dev/null || true
	for space in "${spaces[@]}"; do
		ip netns del "$space" 2>/dev/null || true
	done
	rm -rf "$work"
}
trap hosts_cleanup EXIT
trap 'exit 1' INT TERM HUP

# in_host K COMMAND... - becomes the command, on host K.
in_host() {
	local host=$1
	shift
	exec ip netns exec "$prefix$host" "$@"
}

# space NAME - a new namespace, gone when this ends.
space() {
	spaces+=("$prefix$1")
	ip netns add "$prefix$1" && ip -n "$prefix$1" link set lo up
}

# The bridges, and whether all that is needed can be made.
switch_make() {
	local net
	space switch && (in_host switch true) || return 1
	for net in 0 1; do
		ip -n "${prefix}switch" link add "hk$net" type bridge &&
			ip -n "${prefix}switch" link set "hk$net" up || return 1
	done
	ip -n "${prefix}switch" link add probe0 type veth peer name probe1 &&
		ip -n "${prefix}switch" link del probe0
}

# A host with a leg in both networks.
host_make() {
	local net
	space "$1"
	for net in 0 1; do
		ip -n "${prefix}switch" link add "p$1-$net" type veth peer name "hk$net" \
			netns "$prefix$1"
		ip -n "${prefix}switch" link set "p$1-$net" master "hk$net" up
		ip -n "$prefix$1" addr add "10.77.$net.$1/24" dev "hk$net"
		[ ! -e /proc/net/if_inet6 ] ||
			ip -n "$prefix$1" addr add "fd77:$net::$1/64" dev "hk$net" nodad
		ip -n "$prefix$1" link set "hk$net" up
	done
}

# The options, the host, then what a shell there would run. A host has a name of
# its own, too.
ssh_make() {
	cat >"$work/ssh" <<-END
		#!/bin/sh
		while [ "\${1#-}" != "\$1" ]; do
			shift
		done
		host=\${1##*.}
		shift
		exec ip netns exec $prefix\$host unshare --uts sh -c \
			'hostname "\$0" && eval "\$*"' "host\$host" "\$@"
	END
	chmod +x "$work/ssh"
}

# hosts_possible - else $lack says what there is not; hosts_make N, after it.
hosts_possible() {
	lack=
	if [ "$EUID" -ne 0 ]; then
		lack='network namespaces need root'
	elif [ -z "$(type -P ip)" ]; then
		lack='network namespaces need ip(8), of iproute2'
	elif ! switch_make >"$work/lack" 2>&1; then
		lack="no network namespaces here, as without CAP_NET_ADMIN: $(head -n 1 "$work/lack")"
	fi
	[ -z "$lack" ]
}

hosts_make() {
	local k
	for ((k = 1; k <= $1; k++)); do
		host_make $k
	done
	ssh_make
}
