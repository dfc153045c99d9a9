/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meet.h - how the ranks of a group meet: by the store that torch has. Rank 0 takes a free
 * port and makes a random job key, and puts both into the store; the others read them.
 *
 * A store may be older than the group: after destroy_process_group the next group has the
 * same prefix. So every rank counts itself in first, and each `size` of them are a meeting
 * of their own, with keys of its own.
 */
#ifndef HOCKET_TORCH_MEET_H
#define HOCKET_TORCH_MEET_H

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <arpa/inet.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

namespace hocket {

/* A descriptor that is closed at the end of its scope. */
class Descriptor
{
public:
	explicit Descriptor(int fd = -1) : fd_(fd)
	{
	}
	Descriptor(const Descriptor &) = delete;
	Descriptor &operator=(const Descriptor &) = delete;
	Descriptor(Descriptor &&other) noexcept : fd_(other.fd_)
	{
		other.fd_ = -1;
	}
	~Descriptor()
	{
		if (fd_ >= 0)
			close(fd_);
	}
	int get() const
	{
		return fd_;
	}

private:
	int fd_;
};

/* The host of the store, or of MASTER_ADDR; "": neither is known. */
inline std::string store_host(const c10::intrusive_ptr<c10d::Store> &given)
{
	c10::intrusive_ptr<c10d::Store> store = given;

	while (auto *prefix = dynamic_cast<c10d::PrefixStore *>(store.get()))
		store = prefix->getUnderlyingStore();
	if (auto *tcp = dynamic_cast<c10d::TCPStore *>(store.get()))
		return tcp->getHost();
	const char *master = getenv("MASTER_ADDR");
	return master ? master : "";
}

inline std::string address_text(const sockaddr_storage &address, socklen_t len)
{
	char host[NI_MAXHOST];

	if (getnameinfo(reinterpret_cast<const sockaddr *>(&address), len, host, sizeof(host), nullptr,
			0, NI_NUMERICHOST) != 0)
		return "";
	return host;
}

/* The address of this host on the way to another; "": there is no way. Nothing is sent. */
inline std::string address_toward(const std::string &host)
{
	addrinfo hints = {}, *list = nullptr;
	std::string found;

	hints.ai_socktype = SOCK_DGRAM;
	if (getaddrinfo(host.c_str(), "9", &hints, &list) != 0)
		return "";
	for (addrinfo *info = list; info && found.empty(); info = info->ai_next) {
		Descriptor fd(socket(info->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
		sockaddr_storage own = {};
		socklen_t len = sizeof(own);

		if (fd.get() >= 0 && connect(fd.get(), info->ai_addr, info->ai_addrlen) == 0 &&
		    getsockname(fd.get(), reinterpret_cast<sockaddr *>(&own), &len) == 0)
			found = address_text(own, len);
	}
	freeaddrinfo(list);
	return found;
}

/* Where rank 0 is reached. With a store in files, a rank may be on any host: a way out. */
inline std::string address_own(const c10::intrusive_ptr<c10d::Store> &store)
{
	std::string host = store_host(store);
	std::string own = host.empty() ? "" : address_toward(host);

	if (own.empty())
		own = address_toward("192.0.2.1"); /* of no host: for examples (RFC 5737) */
	return own.empty() ? "127.0.0.1" : own;
}

/*
 * A socket that has a free port of an address, and does not listen: rank 0 of Hocket can
 * bind the same port, and nobody else gets it by chance. place_out: "address:port".
 */
inline Descriptor port_hold(const std::string &address, std::string &place_out)
{
	addrinfo hints = {}, *info = nullptr;
	sockaddr_storage own = {};
	socklen_t len = sizeof(own);
	const int yes = 1;

	hints.ai_socktype = SOCK_STREAM;
	hints.ai_flags = AI_NUMERICHOST;
	int wrong = getaddrinfo(address.c_str(), "0", &hints, &info);
	TORCH_CHECK(wrong == 0, "hocket: the address of this host, ", address,
		    ", is not understood: ", gai_strerror(wrong));
	Descriptor fd(socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
	bool held = fd.get() >= 0 &&
		    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
		    bind(fd.get(), info->ai_addr, info->ai_addrlen) == 0 &&
		    getsockname(fd.get(), reinterpret_cast<sockaddr *>(&own), &len) == 0;
	int error = errno;
	freeaddrinfo(info);
	TORCH_CHECK(held, "hocket: no free port at ", address, ": ", strerror(error));
	bool six = own.ss_family == AF_INET6;
	in_port_t port = six ? reinterpret_cast<sockaddr_in6 *>(&own)->sin6_port
			     : reinterpret_cast<sockaddr_in *>(&own)->sin_port;
	place_out = (six ? "[" + address + "]" : address) + ":" + std::to_string(ntohs(port));
	return fd;
}

inline std::string key_random()
{
	unsigned char bytes[32];
	std::string text;
	char hex[3];

	TORCH_CHECK(getrandom(bytes, sizeof(bytes), 0) == sizeof(bytes),
		    "hocket: the system provides no random numbers: ", strerror(errno));
	for (unsigned char byte : bytes) {
		snprintf(hex, sizeof(hex), "%02x", byte);
		text += hex;
	}
	return text;
}

/* What all ranks of a meeting know. */
struct Meeting {
	std::string place; /* "address:port" of rank 0 */
	std::string key;
	Descriptor held;   /* on rank 0, until the group is there */
};

inline std::vector<uint8_t> bytes_of(const std::string &text)
{
	return std::vector<uint8_t>(text.begin(), text.end());
}

/* What rank 0 has put into the store: "address:port key", or "! why not". */
inline Meeting meet(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
		    std::chrono::milliseconds timeout)
{
	Meeting meeting;
	int64_t number = (store->add("hocket/ranks", 1) - 1) / size;
	std::string key = "hocket/" + std::to_string(number);

	if (rank == 0) {
		try {
			Descriptor held = port_hold(address_own(store), meeting.place);
			meeting.key = key_random();
			store->set(key, bytes_of(meeting.place + " " + meeting.key));
			return { meeting.place, meeting.key, std::move(held) };
		} catch (const std::exception &error) {
			store->set(key, bytes_of(std::string("! ") + error.what()));
			throw;
		}
	}
	store->wait({ key }, timeout);
	std::vector<uint8_t> value = store->get(key);
	std::string text(value.begin(), value.end());
	size_t space = text.find(' ');
	TORCH_CHECK(space != std::string::npos && text[0] != '!',
		    "hocket: rank 0 opened no group: ", text);
	meeting.place = text.substr(0, space);
	meeting.key = text.substr(space + 1);
	return meeting;
}

/* ---- a barrier by the store ---- */

inline void monitored_lead(const c10::intrusive_ptr<c10d::Store> &store, int size,
			   const std::string &key, std::chrono::milliseconds timeout, bool all)
{
	auto deadline = std::chrono::steady_clock::now() + timeout;
	std::string missing;
	int number = 0;

	for (int rank = 1; rank < size; rank++) {
		auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
			deadline - std::chrono::steady_clock::now());
		try {
			store->wait({ key + std::to_string(rank) },
				     std::max(left, std::chrono::milliseconds(1)));
			continue;
		} catch (const std::exception &) {
			missing += (number++ ? ", " : "") + std::to_string(rank);
		}
		if (!all)
			break;
	}
	store->set(key + "over", bytes_of(missing.empty() ? "ok" : missing));
	TORCH_CHECK(missing.empty(), "[Rank 0]: Rank", number > 1 ? "s " : " ", missing,
		    " failed to pass monitoredBarrier in ", timeout.count(), " ms");
}
inline void monitored_follow(const c10::intrusive_ptr<c10d::Store> &store, int rank,
			     const std::string &key, std::chrono::milliseconds timeout)
{
	/* Rank 0 may have waited as long as that, and answers then. */
	auto patience = timeout + std::chrono::seconds(1);
	std::string text;

	try {
		store->wait({ key + "over" }, patience);
		std::vector<uint8_t> value = store->get(key + "over");
		text.assign(value.begin(), value.end());
	} catch (const std::exception &) {
		TORCH_CHECK(false, "[Rank ", rank, "]: Rank 0 failed to pass ",
			    "monitoredBarrier in ", timeout.count(), " ms");
	}
	TORCH_CHECK(text == "ok", "[Rank ", rank, "]: Rank ", text,
		    " failed to pass monitoredBarrier in ", timeout.count(), " ms");
}

} /* namespace hocket */

#endif
