/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status.h - status codes.
 *
 * One table defines the enumeration, the names and the texts. A status does not tell
 * what a failure leaves usable, since that depends on the call; for a group,
 * hk_group_state() does.
 */
#ifndef HOCKET_STATUS_H
#define HOCKET_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HK_API __attribute__((visibility("default")))
#define HK_NODISCARD __attribute__((warn_unused_result))
#define HK_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define HK_API
#define HK_NODISCARD
#define HK_PRINTF(fmt, args)
#endif

/*	name          value text */
#define HK_STATUS_MAP(X) \
	X(OK,           0, "success") \
	X(INPROGRESS,   1, "not finished yet") \
	X(EINVAL,      -1, "argument out of range") \
	X(ENOMEM,      -2, "out of memory") \
	X(ESYNTAX,     -4, "malformed input") \
	X(ELIMIT,      -5, "larger than a documented limit") \
	X(EIO,         -6, "input or output failed") \
	X(EREFUSED,    -7, "the plan could not be proved") \
	X(ETIMEDOUT,   -8, "not finished in the time given") \
	X(EPEER,       -9, "a peer is gone") \
	X(EMISMATCH,  -10, "ranks made mismatching calls") \
	X(EDENIED,    -11, "the other end does not hold the job key") \
	X(EREVOKED,   -12, "the group was revoked")

enum hk_status {
#define HK_STATUS_ENUM(name, value, text) HK_##name = value,
	HK_STATUS_MAP(HK_STATUS_ENUM)
#undef HK_STATUS_ENUM
};

#define HK_WHY_MAX 768

/*
 * Why a call failed: one line without a newline that says what, where and what
 * to do. It is written only on failure. As a parameter it may always be NULL.
 */
struct hk_why {
	char text[HK_WHY_MAX];
};

/* Name ("HK_EINVAL") and text of a status. Thread-safe. */
HK_API const char *hk_status_name(enum hk_status status);
HK_API const char *hk_status_text(enum hk_status status);

#ifdef __cplusplus
}
#endif
#endif
