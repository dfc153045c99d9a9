/* SPDX-License-Identifier: Apache-2.0 */
/* addr.c - addresses and sockets. */
#include "net/tcp/link.h"
#include "base/fork.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define TCP_BACKLOG 4096

static socklen_t addr_len(int family)
{
	return family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

void hk__tcp_where(const struct sockaddr_storage *addr, char where_out[TCP_WHERE_MAX])
{
	char host[INET6_ADDRSTRLEN] = "?";
	struct sockaddr_in6 six;
	struct sockaddr_in four;

	if (addr->ss_family == AF_INET6) {
		memcpy(&six, addr, sizeof(six));
		inet_ntop(AF_INET6, &six.sin6_addr, host, sizeof(host));
		snprintf(where_out, TCP_WHERE_MAX, "[%s]:%u", host, ntohs(six.sin6_port));
	} else if (addr->ss_family == AF_INET) {
		memcpy(&four, addr, sizeof(four));
		inet_ntop(AF_INET, &four.sin_addr, host, sizeof(host));
		snprintf(where_out, TCP_WHERE_MAX, "%s:%u", host, ntohs(four.sin_port));
	} else {
		snprintf(where_out, TCP_WHERE_MAX, "an unknown address");
	}
}

void hk__tcp_port_set(struct sockaddr_storage *addr, uint16_t port)
{
	if (addr->ss_family == AF_INET6)
		((struct sockaddr_in6 *)(void *)addr)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)(void *)addr)->sin_port = htons(port);
}

/* By the interface's name, or by this very address. */
static bool iface_is(const struct ifaddrs *one, const char *iface)
{
	const void *addr = one->ifa_addr;
	const struct sockaddr_in6 *six = addr;
	const struct sockaddr_in *four = addr;
	unsigned char wanted[sizeof(struct in6_addr)];

	if (!addr || (four->sin_family != AF_INET && four->sin_family != AF_INET6))
		return false;
	if (strcmp(one->ifa_name, iface) == 0)
		return true;
	if (inet_pton(four->sin_family, iface, wanted) != 1)
		return false;
	if (four->sin_family == AF_INET)
		return memcmp(wanted, &four->sin_addr, sizeof(four->sin_addr)) == 0;
	return memcmp(wanted, &six->sin6_addr, sizeof(six->sin6_addr)) == 0;
}

enum hk_status hk__tcp_iface(const char *iface, struct sockaddr_storage from_out[2])
{
	struct ifaddrs *all;
	bool found = false;

	memset(from_out, 0, 2 * sizeof(from_out[0]));
	if (getifaddrs(&all) != 0)
		return HK_EIO;
	for (const struct ifaddrs *one = all; one; one = one->ifa_next) {
		if (!iface_is(one, iface))
			continue;
		int family = one->ifa_addr->sa_family;
		struct sockaddr_storage *from = &from_out[family == AF_INET6];
		if (!from->ss_family)
			memcpy(from, one->ifa_addr, addr_len(family));
		found = true;
	}
	freeifaddrs(all);
	return found ? HK_OK : HK_EINVAL;
}

static int seconds(uint64_t ns)
{
	return ns < UINT64_C(1000000000) ? 1 : (int)(ns / UINT64_C(1000000000));
}

static bool congestion_set(int fd, const char *name)
{
	return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0;
}

/*
 * BBR is for the internet: it spreads what is sent over time, and every ten seconds
 * sends next to nothing for 200 ms to see how long the way is. Collectives of 0.4 ms
 * took up to 100 ms with it. Everybody may use Reno; CUBIC is what systems have that
 * do not have BBR.
 */
enum hk_status hk__tcp_congestion(struct tcp *tcp)
{
	const char *wanted = tcp->spec.congestion;
	char found[sizeof(tcp->congestion)] = "";
	socklen_t len = sizeof(found) - 1;

	if (!wanted) {
		if (getsockopt(tcp->listen_fd, IPPROTO_TCP, TCP_CONGESTION, found, &len) != 0 ||
		    strncmp(found, "bbr", 3) != 0)
			return HK_OK;
		wanted = congestion_set(tcp->listen_fd, "cubic") ? "cubic" : "reno";
	}
	if (strlen(wanted) >= sizeof(tcp->congestion) || !congestion_set(tcp->listen_fd, wanted))
		return HK_EINVAL;
	memcpy(tcp->congestion, wanted, strlen(wanted) + 1);
	return HK_OK;
}

/*
 * What a socket may hold grows with what is read from it, but late: a rank that is
 * not at once there to read stops its sender meanwhile. Who asks to be woken for much
 * has it grow now; that it shall be for little after all lets it as it is. Memory is
 * taken only by what arrives, which slots limit.
 */
#define TUNE_WINDOW (4 << 20)

/*
 * TCP_USER_TIMEOUT would be the simpler way to have it all, but takes a rank that
 * is stopped, and reads nothing, for one whose host is gone: the system of a
 * stopped process answers, and that is enough. What was sent and is not
 * acknowledged is looked after by watch (peer.c).
 */
void hk__tcp_tune(const struct tcp *tcp, int fd)
{
	static const int one = 1, much = TUNE_WINDOW;
	uint64_t silence_ns = tcp->spec.silence_ns;
	int quarter = seconds(silence_ns / 4), times = (seconds(silence_ns) - quarter) / quarter;

	times = times < 1 ? 1 : times;
	/* Where one of them cannot be had, connections still work. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &much, sizeof(much));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one));
	if (tcp->congestion[0])
		(void)congestion_set(fd, tcp->congestion); /* it was on another socket */
	/* A host that is gone, or cut off, is noticed when nothing moves. */
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &quarter, sizeof(quarter));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &quarter, sizeof(quarter));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
}

uint32_t hk__tcp_silent_ms(int fd, uint64_t silence_ns)
{
	uint32_t idle_ms = (uint32_t)seconds(silence_ns / 4) * 1000, quiet_ms;
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
		return 0;
	quiet_ms = hk__min(info.tcpi_last_ack_recv, info.tcpi_last_data_recv);
	/* Where this end has no way there any more, not even a probe is counted as sent. */
	if (!info.tcpi_unacked && !info.tcpi_probes && quiet_ms < 2 * idle_ms)
		return 0;
	return quiet_ms ? quiet_ms : 1;
}

static bool connect_from(const struct tcp *tcp, int fd, int family)
{
	static const int one = 1;
	const struct sockaddr_storage *from = &tcp->from[family == AF_INET6];

	if (!tcp->spec.iface || !from->ss_family)
		return true;
	/* The port is chosen with the destination in view: there are enough then. */
	(void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	return bind(fd, (const struct sockaddr *)from, addr_len(family)) == 0;
}

int hk__tcp_connect(const struct tcp *tcp, const struct tcp_link *link, bool *done_out)
{
	int family = link->addr.ss_family;
	int fd = hk__fd_open(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));

	if (fd < 0)
		return -1;
	hk__tcp_tune(tcp, fd);
	if (connect_from(tcp, fd, family)) {
		int rc = connect(fd, (const struct sockaddr *)&link->addr, link->addr_len);

		/* Interrupted, it goes on by itself. */
		*done_out = rc == 0;
		if (rc == 0 || errno == EINPROGRESS || errno == EINTR)
			return fd;
	}
	int error = errno;
	hk__fd_close(fd);
	errno = error;
	return -1;
}

enum hk_status hk__tcp_listen(const struct sockaddr *addr, socklen_t len, int *fd_out)
{
	static const int one = 1;
	int fd =
		hk__fd_open(socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));

	if (fd < 0)
		return HK_EIO;
	/* A job that starts again where one has just ended. */
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, addr, len) != 0 || listen(fd, TCP_BACKLOG) != 0) {
		hk__fd_close(fd);
		return HK_EIO;
	}
	*fd_out = fd;
	return HK_OK;
}

enum hk_status hk__tcp_watch(const struct tcp *tcp, int fd, uint32_t events,
			     struct tcp_source *source, bool add)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	return epoll_ctl(tcp->epoll_fd, add ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event) ? HK_EIO
											 : HK_OK;
}
