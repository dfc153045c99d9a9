/* SPDX-License-Identifier: Apache-2.0 */
/* seal.c - records by AEAD ciphers (libsodium). */
#include "net/seal.h"

#include <sodium.h>
#include <string.h>

/* Records under one key: 16 GiB, far below what is thought safe for AES-GCM. */
#define SEAL_KEY_RECORDS (UINT64_C(1) << 19)
#define SEAL_SPACE (2 * HK__SEAL_MAX)

_Static_assert(HK__KEY_BYTES == crypto_aead_aes256gcm_KEYBYTES, "keys of one cipher fit");
_Static_assert(HK__KEY_BYTES == crypto_aead_xchacha20poly1305_ietf_KEYBYTES, "and of the other");
_Static_assert(HK__SEAL_TAG == crypto_aead_aes256gcm_ABYTES, "tags of one cipher fit");
_Static_assert(HK__SEAL_TAG == crypto_aead_xchacha20poly1305_ietf_ABYTES, "and of the other");

/* One direction. */
struct direction {
	crypto_aead_aes256gcm_state aes; /* of key */
	unsigned char key[HK__KEY_BYTES];
	uint64_t count; /* of records */
};

struct hk__seal {
	struct direction out, in;
	const struct hk_alloc *alloc;
	void *memory; /* that this lies in */
	bool has_aes;
	bool broken;
	uint32_t out_len, out_at;
	uint32_t in_at, in_len; /* what has arrived and was not given out */
	unsigned char out_bytes[HK__SEAL_MAX];
	unsigned char in_bytes[SEAL_SPACE];
};

/* The cipher's state wants to lie at a multiple of 16, which memory may not. */
#define SEAL_ALIGN ((size_t)64)
#define SEAL_MEMORY (sizeof(struct hk__seal) + SEAL_ALIGN)

bool hk__seal_has_aes(void)
{
	return crypto_aead_aes256gcm_is_available();
}

/* ---- keys ---- */

static void direction_ready(const struct hk__seal *seal, struct direction *dir)
{
	if (seal->has_aes)
		(void)crypto_aead_aes256gcm_beforenm(&dir->aes, dir->key);
}

/* After so many records: a key that does not lead back to the one before. */
static void direction_renew(const struct hk__seal *seal, struct direction *dir)
{
	static const unsigned char purpose[] = "hocket next key 1";
	unsigned char next[HK__KEY_BYTES];

	if (dir->count == 0 || dir->count % SEAL_KEY_RECORDS)
		return;
	crypto_generichash(next, sizeof(next), purpose, sizeof(purpose), dir->key,
			   sizeof(dir->key));
	memcpy(dir->key, next, sizeof(next));
	sodium_memzero(next, sizeof(next));
	direction_ready(seal, dir);
}

struct hk__seal *hk__seal_create(const struct hk_alloc *alloc, const struct hk__auth *auth,
				 enum hk__auth_role self, bool aes)
{
	enum hk__auth_role other = self == HK__AUTH_CONNECTS ? HK__AUTH_ACCEPTS : HK__AUTH_CONNECTS;
	unsigned char *memory = hk__mem_zalloc(alloc, 1, SEAL_MEMORY);

	if (!memory)
		return NULL;
	struct hk__seal *seal = (void *)(memory + (-(uintptr_t)memory % SEAL_ALIGN));
	seal->alloc = alloc;
	seal->memory = memory;
	seal->has_aes = aes;
	hk__auth_derive(auth, self, seal->out.key);
	hk__auth_derive(auth, other, seal->in.key);
	direction_ready(seal, &seal->out);
	direction_ready(seal, &seal->in);
	return seal;
}

void hk__seal_destroy(struct hk__seal *seal)
{
	if (!seal)
		return;
	const struct hk_alloc *alloc = seal->alloc;
	void *memory = seal->memory;
	sodium_memzero(seal, sizeof(*seal));
	hk__mem_free(alloc, memory, 1, SEAL_MEMORY);
}

void hk__seal_skip(struct hk__seal *seal, uint64_t count)
{
	for (; count > 0; count--) {
		direction_renew(seal, &seal->out);
		direction_renew(seal, &seal->in);
		seal->out.count++;
		seal->in.count++;
	}
}

/* ---- numbers ---- */

#define NONCE_MAX crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
_Static_assert(NONCE_MAX >= crypto_aead_aes256gcm_NPUBBYTES, "nonces fit");

static void nonce_of(uint64_t count, unsigned char nonce_out[NONCE_MAX])
{
	memset(nonce_out, 0, NONCE_MAX);
	for (int i = 0; i < 8; i++)
		nonce_out[i] = (unsigned char)(count >> 8 * i);
}

static void head_put(unsigned char at[HK__SEAL_HEAD], uint32_t len)
{
	for (int i = 0; i < 4; i++)
		at[i] = (unsigned char)(len >> 8 * i);
}

static uint32_t head_get(const unsigned char at[HK__SEAL_HEAD])
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

/* ---- out ---- */

unsigned char *hk__seal_room(struct hk__seal *seal)
{
	hk_assert(seal->out_at == seal->out_len);
	return seal->out_bytes + HK__SEAL_HEAD;
}

void hk__seal_close(struct hk__seal *seal, uint32_t len)
{
	unsigned char *head = seal->out_bytes, *at = head + HK__SEAL_HEAD, nonce[NONCE_MAX];
	struct direction *dir = &seal->out;

	hk_assert(len > 0 && len <= HK__SEAL_BYTES);
	direction_renew(seal, dir);
	nonce_of(dir->count++, nonce);
	head_put(head, len);
	if (seal->has_aes)
		(void)crypto_aead_aes256gcm_encrypt_afternm(at, NULL, at, len, head, HK__SEAL_HEAD,
							    NULL, nonce, &dir->aes);
	else
		(void)crypto_aead_xchacha20poly1305_ietf_encrypt(at, NULL, at, len, head,
								 HK__SEAL_HEAD, NULL, nonce,
								 dir->key);
	seal->out_at = 0;
	seal->out_len = HK__SEAL_HEAD + len + HK__SEAL_TAG;
}

size_t hk__seal_pending(const struct hk__seal *seal, const unsigned char **at_out)
{
	*at_out = seal->out_bytes + seal->out_at;
	return seal->out_len - seal->out_at;
}

void hk__seal_wrote(struct hk__seal *seal, size_t len)
{
	hk_assert(len <= seal->out_len - seal->out_at);
	seal->out_at += (uint32_t)len;
}

/* ---- in ---- */

unsigned char *hk__seal_space(struct hk__seal *seal, size_t *len_out)
{
	if (seal->in_at) {
		memmove(seal->in_bytes, seal->in_bytes + seal->in_at, seal->in_len);
		seal->in_at = 0;
	}
	*len_out = SEAL_SPACE - seal->in_len;
	return seal->in_bytes + seal->in_len;
}

void hk__seal_got(struct hk__seal *seal, size_t len)
{
	hk_assert(seal->in_at == 0 && len <= SEAL_SPACE - seal->in_len);
	seal->in_len += (uint32_t)len;
}

static bool record_open(const struct hk__seal *seal, const struct direction *dir,
			unsigned char *head, uint32_t len)
{
	unsigned char *at = head + HK__SEAL_HEAD, nonce[NONCE_MAX];

	nonce_of(dir->count, nonce);
	if (seal->has_aes)
		return crypto_aead_aes256gcm_decrypt_afternm(at, NULL, NULL, at, len + HK__SEAL_TAG,
							     head, HK__SEAL_HEAD, nonce,
							     &dir->aes) == 0;
	return crypto_aead_xchacha20poly1305_ietf_decrypt(at, NULL, NULL, at, len + HK__SEAL_TAG,
							  head, HK__SEAL_HEAD, nonce,
							  dir->key) == 0;
}

enum hk_status hk__seal_next(struct hk__seal *seal, unsigned char **at_out, uint32_t *len_out)
{
	unsigned char *head = seal->in_bytes + seal->in_at;

	if (seal->broken)
		return HK_EIO;
	if (seal->in_len < HK__SEAL_HEAD)
		return HK_INPROGRESS;
	uint32_t len = head_get(head);
	if (len == 0 || len > HK__SEAL_BYTES) {
		seal->broken = true;
		return HK_EIO;
	}
	if (seal->in_len < HK__SEAL_HEAD + len + HK__SEAL_TAG)
		return HK_INPROGRESS;
	direction_renew(seal, &seal->in);
	if (!record_open(seal, &seal->in, head, len)) {
		seal->broken = true;
		return HK_EIO;
	}
	seal->in.count++;
	seal->in_at += HK__SEAL_HEAD + len + HK__SEAL_TAG;
	seal->in_len -= HK__SEAL_HEAD + len + HK__SEAL_TAG;
	*at_out = head + HK__SEAL_HEAD;
	*len_out = len;
	return HK_OK;
}
