/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - what the library has to say where no call can: strangers that were turned away,
 * files that could not be written, a fallback that was taken.
 */
#ifndef HOCKET_LOG_H
#define HOCKET_LOG_H

#include <hocket/base.h>

#ifdef __cplusplus
extern "C" {
#endif

enum hk_log_level {
	HK_LOG_ERROR,		/* something that was asked for is not done */
	HK_LOG_WARN,		/* something is wrong, or was lost; the job goes on */
	HK_LOG_INFO,		/* a choice that costs time */
	HK_LOG_DEBUG		/* what happens; nowhere without a callback */
};

typedef void hk_log_fn(void *ctx, enum hk_log_level level, const char *line);

/*
 * From now on lines go to fn and nowhere else: one line without a newline, which is
 * the library's. NULL: to standard error, unless HOCKET_LOG is "off". Thread-safe; once it
 * returns, the function that was set before is not running any more. fn is called by
 * whichever thread has something to say, several at once, sometimes with locks of the
 * library held: it calls nothing of the library.
 */
HK_API void hk_log_set(hk_log_fn *fn, void *ctx);

#ifdef __cplusplus
}
#endif
#endif
