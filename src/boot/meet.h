/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meet.h - the parts of hk__boot_join: rank 0's side, the others' side, and then
 * the memory of each host.
 */
#ifndef HK_BOOT_MEET_H
#define HK_BOOT_MEET_H

#include "boot/table.h"

/* Beyond a deadline, for the line that says why it was missed. */
#define HK__GRACE_NS HK__SECOND_NS
/* For a newcomer that has met the others to be in their group: they may have given up. */
#define HK__SETTLE_NS (60 * HK__SECOND_NS)

/*
 * boot has rank, n, alloc and room for peers, save a newcomer's, which gets all of it
 * here; each fills peers, listen_fd, quiet_fd and the run.
 */
enum hk_status hk__meet_lead(const struct hk__boot_spec *spec, uint64_t deadline_ns,
			     struct hk_why *why, struct hk__boot *boot,
			     unsigned char run_out[HK__RUN_BYTES]);
enum hk_status hk__meet_follow(const struct hk__boot_spec *spec, uint64_t deadline_ns,
			       struct hk_why *why, struct hk__boot *boot,
			       unsigned char run_out[HK__RUN_BYTES]);
/* When to look again whether there is still a point: in a while, or at the deadline. */
uint64_t hk__meet_look_at(const struct hk__boot_spec *spec, uint64_t deadline_ns);
/* HK_ETIMEDOUT at the deadline; else what spec->look says. */
enum hk_status hk__meet_look(const struct hk__boot_spec *spec, uint64_t deadline_ns,
			     struct hk_why *why);
/* All of a hello but the place and the quiet port. */
void hk__meet_hello(const struct hk__boot_spec *spec, struct hk__hello *hello_out);
/* Takes data connections at the interface of the options, else at that address. */
enum hk_status hk__meet_listen(const struct hk__boot_spec *spec, const struct hk__place *at,
			       struct hk_why *why, struct hk__place *place_out, int *fd_out);
/* Holds a quiet port of the address that data connections are taken at. */
enum hk_status hk__meet_quiet(const struct hk__boot_spec *spec, const struct hk__place *at,
			      struct hk_why *why, uint16_t *port_out, int *fd_out);

/* segment_fd and bells of boot, whose peers and locals are known. */
enum hk_status hk__hostshare(const struct hk__boot_spec *spec, uint64_t deadline_ns,
			     struct hk_why *why, struct hk__boot *boot);

#endif
