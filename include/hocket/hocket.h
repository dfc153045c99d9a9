/* SPDX-License-Identifier: Apache-2.0 */
/* hocket.h - everything of the library that is installed. */
#ifndef HOCKET_HOCKET_H
#define HOCKET_HOCKET_H

#include <hocket/base.h>
#include <hocket/check.h>
#include <hocket/coll.h>
#include <hocket/device.h>
#include <hocket/device_ops.h>
#include <hocket/env.h>
#include <hocket/fabric.h>
#include <hocket/group.h>
#include <hocket/log.h>
#include <hocket/plan.h>
#include <hocket/record.h>
#include <hocket/request.h>
#include <hocket/sim.h>
#include <hocket/status.h>
#include <hocket/trace.h>
#include <hocket/type.h>
#include <hocket/win.h>

#endif
