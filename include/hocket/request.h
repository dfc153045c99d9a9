/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - nonblocking operations: a call whose options ask for a request (group.h)
 * only starts its operation. The threading rules of the group apply to its requests.
 */
#ifndef HOCKET_REQUEST_H
#define HOCKET_REQUEST_H

#include <hocket/base.h>
#include <hocket/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hk_request;		/* opaque */
struct hk_group;		/* group.h */

/*
 * Waits for completion, at most timeout_ns (0: until the deadline of the call).
 * Returns the status of the operation; HK_INPROGRESS if timeout_ns passed first.
 */
HK_API HK_NODISCARD enum hk_status hk_request_wait(struct hk_request *request,
						   uint64_t timeout_ns);
/*
 * Waits until one of n requests is over, or for timeout_ns (0: until then; each keeps
 * the deadline of its call). NULL entries are skipped. The status of the first entry that
 * is over, and its index; HK_INPROGRESS and HK_NONE if the time given was shorter; HK_OK
 * and HK_NONE if there is no request. HK_EINVAL where one cannot be waited for; all
 * belong to groups that were made of one another by split, dup or shrink.
 */
HK_API HK_NODISCARD enum hk_status hk_request_wait_any(struct hk_request *const *requests,
						       uint32_t n, uint64_t timeout_ns,
						       uint32_t *index_out);
/*
 * The same until all are over, those that fail too. HK_OK, or the status of the first entry
 * that failed; HK_INPROGRESS if the time given was shorter.
 */
HK_API HK_NODISCARD enum hk_status hk_request_wait_all(struct hk_request *const *requests,
						       uint32_t n, uint64_t timeout_ns);
/* Makes progress without blocking; HK_INPROGRESS, or the status of the operation. */
HK_API HK_NODISCARD enum hk_status hk_request_test(struct hk_request *request);
/*
 * Ends waits for requests of a group early, those with a timeout_ns: they return
 * HK_INPROGRESS, if nothing is over. If no thread waits, the next such wait ends. For a
 * thread that shares a group with one that waits, and has something else to do with it.
 * Thread-safe, until the group is freed. Accepts NULL.
 */
HK_API void hk_request_wake(struct hk_group *group);
/*
 * A descriptor that becomes readable, for poll(2), once the request completes; the
 * request owns it. The first such call starts the group's progress thread.
 */
HK_API HK_NODISCARD enum hk_status hk_request_fd(struct hk_request *request, int *fd_out);
/* Waits for completion first. Accepts NULL. */
HK_API void hk_request_free(struct hk_request *request);

#ifdef __cplusplus
}
#endif
#endif
