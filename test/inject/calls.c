/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.c - in place of each system call that the library makes: the same call,
 * unless its turn has come to fail, in a way that it can in life.
 */
#include "inject/calls.h"

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>

static struct calls *calls; /* NULL: nothing is counted */

void calls_arm(struct calls *at, uint64_t fail_at, uint32_t variant)
{
	*at = (struct calls){ .fail_at = fail_at, .variant = variant };
	calls = at;
}

void calls_disarm(void)
{
	calls = NULL;
}

/* The error that it is to fail with, or 0. */
static int call_error(const char *name, const int *errors)
{
	uint32_t variants = 0;

	if (!calls || ++calls->count != calls->fail_at)
		return 0;
	while (errors[variants])
		variants++;
	calls->hit = true;
	calls->variants = variants;
	calls->error = errors[calls->variant % variants];
	snprintf(calls->name, sizeof(calls->name), "%s", name);
	return calls->error;
}

static bool call_fails(const char *name, const int *errors)
{
	int error = call_error(name, errors);

	if (error)
		errno = error;
	return error != 0;
}

#define ERRORS(...) ((const int[]){ __VA_ARGS__, 0 })

/* WRAP(type, name, (parameters), (arguments), errors...) */
#define WRAP(type, name, params, args, ...) \
	type __real_##name params; \
	type __wrap_##name params; \
	type __wrap_##name params \
	{ \
		return call_fails(#name, ERRORS(__VA_ARGS__)) ? (type)-1 : __real_##name args; \
	}

/* clang-format off */
WRAP(int, socket, (int domain, int kind, int protocol), (domain, kind, protocol),
     EMFILE, ENFILE, ENOBUFS, ENOMEM)
WRAP(int, bind, (int fd, const struct sockaddr *at, socklen_t len), (fd, at, len),
     EADDRINUSE, EADDRNOTAVAIL, ENOMEM)
WRAP(int, listen, (int fd, int backlog), (fd, backlog), EADDRINUSE)
WRAP(int, accept4, (int fd, struct sockaddr *at, socklen_t *len, int flags),
     (fd, at, len, flags), EINTR, EMFILE, ECONNABORTED, EAGAIN, ENOBUFS)
WRAP(int, connect, (int fd, const struct sockaddr *at, socklen_t len), (fd, at, len),
     ECONNREFUSED, ETIMEDOUT, ENETUNREACH, EADDRNOTAVAIL)
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags),
     EINTR, ECONNRESET, EPIPE, EAGAIN, ENOBUFS)
WRAP(ssize_t, send, (int fd, const void *data, size_t len, int flags), (fd, data, len, flags),
     EINTR, ECONNRESET, EPIPE, EAGAIN)
WRAP(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags),
     EINTR, ECONNRESET, EAGAIN, ENOMEM)
WRAP(ssize_t, recv, (int fd, void *data, size_t len, int flags), (fd, data, len, flags),
     EINTR, ECONNRESET, EAGAIN, ETIMEDOUT)
WRAP(ssize_t, readv, (int fd, const struct iovec *parts, int count), (fd, parts, count),
     EINTR, ECONNRESET, EAGAIN, ETIMEDOUT)
WRAP(ssize_t, read, (int fd, void *data, size_t len), (fd, data, len), EINTR, EIO)
WRAP(ssize_t, write, (int fd, const void *data, size_t len), (fd, data, len), EINTR, EAGAIN)
WRAP(void *, mmap, (void *at, size_t len, int how, int flags, int fd, off_t offset),
     (at, len, how, flags, fd, offset), ENOMEM)
WRAP(int, memfd_create, (const char *name, unsigned flags), (name, flags), EMFILE, ENOMEM)
WRAP(int, ftruncate, (int fd, off_t len), (fd, len), EINTR, ENOSPC)
WRAP(int, epoll_create1, (int flags), (flags), EMFILE, ENOMEM)
WRAP(int, epoll_ctl, (int fd, int what, int of, struct epoll_event *event),
     (fd, what, of, event), ENOSPC, ENOMEM)
WRAP(int, epoll_wait, (int fd, struct epoll_event *events, int room, int ms),
     (fd, events, room, ms), EINTR)
WRAP(int, epoll_pwait2, (int fd, struct epoll_event *events, int room,
			 const struct timespec *timeout, const sigset_t *mask),
     (fd, events, room, timeout, mask), EINTR, ENOSYS)
WRAP(int, eventfd, (unsigned value, int flags), (value, flags), EMFILE, ENOMEM)
WRAP(int, timerfd_create, (int clock, int flags), (clock, flags), EMFILE, ENOMEM)
WRAP(int, timerfd_settime, (int fd, int flags, const struct itimerspec *value,
			    struct itimerspec *old), (fd, flags, value, old), EINVAL)
WRAP(int, poll, (struct pollfd *fds, nfds_t count, int ms), (fds, count, ms), EINTR, ENOMEM)
WRAP(int, ppoll, (struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		  const sigset_t *mask), (fds, count, timeout, mask), EINTR, ENOMEM)
WRAP(int, getsockname, (int fd, struct sockaddr *at, socklen_t *len), (fd, at, len), ENOBUFS)
WRAP(int, getpeername, (int fd, struct sockaddr *at, socklen_t *len), (fd, at, len), ENOTCONN)
WRAP(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *len),
     (fd, level, name, value, len), ENOBUFS, ENOPROTOOPT)
WRAP(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t len),
     (fd, level, name, value, len), ENOBUFS, ENOPROTOOPT)
WRAP(ssize_t, process_vm_readv, (pid_t pid, const struct iovec *to, unsigned long nto,
				 const struct iovec *from, unsigned long nfrom,
				 unsigned long flags),
     (pid, to, nto, from, nfrom, flags), EPERM, ENOMEM)
WRAP(int, getifaddrs, (struct ifaddrs **all), (all), EMFILE, ENOMEM)
WRAP(int, gethostname, (char *name, size_t len), (name, len), ENAMETOOLONG)
WRAP(ssize_t, readlink, (const char *path, char *to, size_t size), (path, to, size), ENOMEM)
WRAP(int, madvise, (void *at, size_t len, int advice), (at, len, advice), ENOMEM)
WRAP(int, stat, (const char *path, struct stat *status), (path, status), ENOMEM)
WRAP(int, fstat, (int fd, struct stat *status), (fd, status), ENOMEM)
WRAP(int, fstatat, (int dir, const char *path, struct stat *status, int flags),
     (dir, path, status, flags), ENOMEM)
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode), ENOSPC)
WRAP(int, fchmod, (int fd, mode_t mode), (fd, mode), EIO)
WRAP(int, renameat, (int from_dir, const char *from, int to_dir, const char *to),
     (from_dir, from, to_dir, to), ENOSPC)
WRAP(int, unlinkat, (int dir, const char *path, int flags), (dir, path, flags), EIO)
WRAP(int, getrlimit, (int what, struct rlimit *limit), (what, limit), EINVAL)
/* clang-format on */

/* ---- those that are not so plain ---- */

/* It says that it failed, and has closed. */
int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	bool fails = call_fails("close", ERRORS(EINTR, EIO));
	int error = errno, closed = __real_close(fd);

	if (fails)
		errno = error;
	return fails ? -1 : closed;
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *ctx);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *ctx);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *ctx)
{
	int error = call_error("pthread_create", ERRORS(EAGAIN));

	return error ? error : __real_pthread_create(thread, attr, run, ctx);
}

int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **found);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **found);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **found)
{
	int error = call_error("getaddrinfo", ERRORS(EAI_AGAIN, EAI_MEMORY, EAI_NONAME));

	return error ? error : __real_getaddrinfo(node, service, hints, found);
}

int __real_posix_fallocate(int fd, off_t offset, off_t len);
int __wrap_posix_fallocate(int fd, off_t offset, off_t len);
int __wrap_posix_fallocate(int fd, off_t offset, off_t len)
{
	int error = call_error("posix_fallocate", ERRORS(ENOSPC, EINTR));

	return error ? error : __real_posix_fallocate(fd, offset, len);
}

/* Those with a variable number of arguments: all are passed on, asked for or not. */

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (call_fails("open", ERRORS(EINTR, EMFILE, ENFILE, ENOMEM)))
		return -1;
	return __real_open(path, flags, mode);
}

int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (call_fails("openat", ERRORS(EINTR, EMFILE, ENOSPC)))
		return -1;
	return __real_openat(dir, path, flags, mode);
}

int __real_fcntl(int fd, int what, ...);
int __wrap_fcntl(int fd, int what, ...);
int __wrap_fcntl(int fd, int what, ...)
{
	va_list args;

	va_start(args, what);
	void *arg = va_arg(args, void *);
	va_end(args);
	if (call_fails("fcntl", ERRORS(ENOLCK, EINTR)))
		return -1;
	return __real_fcntl(fd, what, arg);
}

int __real_ioctl(int fd, unsigned long what, ...);
int __wrap_ioctl(int fd, unsigned long what, ...);
int __wrap_ioctl(int fd, unsigned long what, ...)
{
	va_list args;

	va_start(args, what);
	void *arg = va_arg(args, void *);
	va_end(args);
	return call_fails("ioctl", ERRORS(ENODEV)) ? -1 : __real_ioctl(fd, what, arg);
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	long all[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		all[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_futex ? call_fails("futex", ERRORS(EINTR, EAGAIN))
				: call_fails("syscall", ERRORS(ENOSYS, EPERM, ENOMEM)))
		return -1;
	return __real_syscall(number, all[0], all[1], all[2], all[3], all[4], all[5]);
}
