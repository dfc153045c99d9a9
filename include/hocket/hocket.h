/* SPDX-License-Identifier: Apache-2.0 */
/* hocket.h - everything of the library that is installed. */
#ifndef HOCKET_HOCKET_H
#define HOCKET_HOCKET_H

#include <hocket/check.h>
#include <hocket/coll.h>
#include <hocket/fabric.h>
#include <hocket/group.h>
#include <hocket/plan.h>
#include <hocket/record.h>
#include <hocket/sim.h>
#include <hocket/status.h>
#include <hocket/type.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HK_VERSION_MAJOR 0
#define HK_VERSION_MINOR 1
#define HK_VERSION_PATCH 0

/* "0.1.0": of the library that is loaded, not of the header. Thread-safe. */
HK_API const char *hk_version(void);

#ifdef __cplusplus
}
#endif
#endif
