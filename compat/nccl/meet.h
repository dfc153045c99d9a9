/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meet.h - what is said at a meeting point.
 *
 * Any process may make an id, and any rank may be 0: so the process that made it
 * listens, rank 0 tells it where it will be, and the others are told. Both ends
 * prove that they hold the id's key:
 *
 *	host  -> guest	nonce
 *	guest -> host	hello, MAC of the host's nonce and the hello
 *	host  -> guest	answer, MAC of the guest's nonce and the answer
 *
 * Then they make a Hocket group, with the same key, at rank 0's address.
 */
#ifndef HK_COMPAT_NCCL_MEET_H
#define HK_COMPAT_NCCL_MEET_H

#include "comm.h"

#define MEET_NONCE_BYTES 32
#define MEET_MAC_BYTES 32
#define MEET_WORD 0x484b4e31u		/* "HKN1" */
#define MEET_GUESTS_MAX 65536u
#define MEET_MANNERS_NS UINT64_C(30000000000) /* until a guest must have said hello */

/* An id, as it travels. */
struct meet_id {
	char magic[8];			/* "HOCKETN" */
	char place[HK__NCCL_PLACE_MAX];	/* "address:port" of the meeting, or of rank 0 */
	unsigned char key[HK__NCCL_KEY_BYTES];
	unsigned char direct;		/* rank 0 listens there itself: NCCL_COMM_ID */
	unsigned char rest[7];
};
_Static_assert(sizeof(struct meet_id) == NCCL_UNIQUE_ID_BYTES, "an id is 128 bytes");

struct meet_hello {
	uint32_t word;
	uint32_t rank, nranks;
	char address[HK__NCCL_PLACE_MAX]; /* of rank 0, from rank 0 */
	unsigned char nonce[MEET_NONCE_BYTES];
	unsigned char mac[MEET_MAC_BYTES];
};

struct meet_answer {
	uint32_t word;
	uint32_t refused;		/* `text` says why */
	char text[160];			/* else: rank 0's address */
	unsigned char mac[MEET_MAC_BYTES];
};

/* Of what stands before the MAC of a hello or an answer. */
void meet_mac(const unsigned char *key, const unsigned char *nonce, const void *message, size_t len,
	      unsigned char *mac_out);
/* Listens, by a thread that ends when all ranks have been answered. */
ncclResult_t meet_host(int listen_fd, const unsigned char *key);
uint64_t meet_now_ns(void);

#endif
