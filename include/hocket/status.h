/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status.h - what a call can answer, and what died when it did not succeed.
 *
 * One table makes the enumeration, the names and the texts. The scope says
 * what the caller has lost, because that is the decision the caller has to
 * make: only this call, one request, one peer, or the whole group.
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

/*	name          value scope text */
#define HK_STATUS_MAP(X) \
	X(OK,           0,  CALL, "success") \
	X(INPROGRESS,   1,  CALL, "not finished yet") \
	X(EINVAL,      -1,  CALL, "argument out of range") \
	X(ENOMEM,      -2,  CALL, "out of memory") \
	X(ESYNTAX,     -4,  CALL, "malformed input") \
	X(ELIMIT,      -5,  CALL, "larger than a documented limit") \
	X(EIO,         -6,  CALL, "input or output failed") \
	X(EREFUSED,    -7,  CALL, "the plan could not be proved") \
	X(ETIMEDOUT,   -8,  CALL, "not finished in the time given") \
	X(EPEER,       -9,  PEER, "a peer is gone") \
	X(EMISMATCH,  -10, GROUP, "ranks called different things") \
	X(EDENIED,    -11,  CALL, "the other end does not hold the job's key") \
	X(EREVOKED,   -12, GROUP, "a rank gave the group up")

enum hk_status {
#define HK_STATUS_ENUM(name, value, scope, text) HK_##name = value,
	HK_STATUS_MAP(HK_STATUS_ENUM)
#undef HK_STATUS_ENUM
};

enum hk_scope {
	HK_SCOPE_CALL,		/* this call; everything else stands */
	HK_SCOPE_REQUEST,	/* the request it was about */
	HK_SCOPE_PEER,		/* one peer is lost */
	HK_SCOPE_GROUP		/* the group is lost */
};

#define HK_WHY_MAX 768

/*
 * Why a call was refused: one line without a newline, that says what, where
 * and what to do. Written only when the call fails. May be NULL wherever it
 * is a parameter.
 */
struct hk_why {
	char text[HK_WHY_MAX];
};

/* Name ("HK_EINVAL"), text and scope of a status. Thread-safe. */
HK_API const char *hk_status_name(enum hk_status status);
HK_API const char *hk_status_text(enum hk_status status);
HK_API enum hk_scope hk_status_scope(enum hk_status status);

#ifdef __cplusplus
}
#endif
#endif
