/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal.h - what two ranks say to each other, encrypted: a stream of bytes as
 * records that nobody else can read, change, leave out, repeat or make.
 *
 * A record is its length (4 bytes, little-endian, of the bytes inside), these
 * bytes encrypted, and a tag of 16. Each direction has a key of its own, made
 * of the run's key and both nonces of the connection, so a record is of no use
 * elsewhere; its number is the nonce of the cipher, so neither is it twice or
 * at another place. Keys are replaced by keys made of them long before a cipher
 * has seen too much of one.
 *
 * The ciphers are libsodium's: AES-256-GCM where both machines have it built
 * in, else XChaCha20-Poly1305.
 */
#ifndef HK_NET_SEAL_H
#define HK_NET_SEAL_H

#include "net/auth.h"

#define HK__SEAL_BYTES 32768u	/* inside of a record, at most */
#define HK__SEAL_HEAD 4u
#define HK__SEAL_TAG 16u
#define HK__SEAL_MAX (HK__SEAL_HEAD + HK__SEAL_BYTES + HK__SEAL_TAG)

struct hk__seal;		/* of one end of a connection */

bool hk__seal_has_aes(void);
/* auth: both nonces and what was said, as both ends know it; self: which this one is. */
struct hk__seal *hk__seal_create(const struct hk_alloc *alloc, const struct hk__auth *auth,
				 enum hk__auth_role self, bool aes);
void hk__seal_destroy(struct hk__seal *seal);	/* accepts NULL; leaves no key behind */

/* ---- out: one record at a time ---- */

/* Where the next HK__SEAL_BYTES go; nothing is pending. */
unsigned char *hk__seal_room(struct hk__seal *seal);
void hk__seal_close(struct hk__seal *seal, uint32_t len);
/* What of it is still to be written; 0: nothing. */
size_t hk__seal_pending(const struct hk__seal *seal, const unsigned char **at_out);
void hk__seal_wrote(struct hk__seal *seal, size_t len);

/* ---- in ---- */

/* Where what arrives goes, and how much of it fits; never 0 after HK_INPROGRESS. */
unsigned char *hk__seal_space(struct hk__seal *seal, size_t *len_out);
void hk__seal_got(struct hk__seal *seal, size_t len);
/*
 * The next record: its bytes, valid until hk__seal_space. HK_INPROGRESS: it is
 * not complete. HK_EIO: it is none that the other end has made; no other follows.
 */
enum hk_status hk__seal_next(struct hk__seal *seal, unsigned char **at_out, uint32_t *len_out);

/* For tests: as if so many records had passed, in both directions. */
void hk__seal_skip(struct hk__seal *seal, uint64_t count);

#endif
