/* SPDX-License-Identifier: Apache-2.0 */
/* auth.c - proofs by keyed BLAKE2b (libsodium). */
#include "net/auth.h"

#include "base/fork.h"

#include <sodium.h>
#include <stdatomic.h>
#include <string.h>

_Static_assert(HK__KEY_BYTES == crypto_generichash_KEYBYTES, "keys fit");
_Static_assert(HK__PROOF_BYTES == crypto_generichash_BYTES, "proofs fit");

enum hk_status hk__auth_ready(void)
{
	static _Atomic bool ready;

	if (atomic_load(&ready))
		return HK_OK;
	hk__fork_hold(); /* it locks: no child is to find it locked */
	bool done = sodium_init() >= 0;
	hk__fork_release();
	atomic_store(&ready, done);
	return done ? HK_OK : HK_EIO;
}

void hk__auth_nonce(unsigned char nonce_out[HK__NONCE_BYTES])
{
	randombytes_buf(nonce_out, HK__NONCE_BYTES);
}

void hk__auth_key(const char *text, unsigned char key_out[HK__KEY_BYTES])
{
	static const unsigned char purpose[] = "hocket job key 1";

	crypto_generichash(key_out, HK__KEY_BYTES, (const unsigned char *)text, strlen(text),
			   purpose, sizeof(purpose));
}

/* purpose tells apart what is made of the same nonces. */
static void auth_hash(const struct hk__auth *auth, unsigned char purpose,
		      unsigned char out[HK__PROOF_BYTES])
{
	crypto_generichash_state state;

	crypto_generichash_init(&state, auth->key, HK__KEY_BYTES, HK__PROOF_BYTES);
	crypto_generichash_update(&state, &purpose, 1);
	crypto_generichash_update(&state, auth->connects, HK__NONCE_BYTES);
	crypto_generichash_update(&state, auth->accepts, HK__NONCE_BYTES);
	crypto_generichash_update(&state, auth->about, auth->about_len);
	crypto_generichash_final(&state, out, HK__PROOF_BYTES);
	sodium_memzero(&state, sizeof(state));
}

void hk__auth_prove(const struct hk__auth *auth, enum hk__auth_role role,
		    unsigned char proof_out[HK__PROOF_BYTES])
{
	auth_hash(auth, role == HK__AUTH_CONNECTS ? 'c' : 'a', proof_out);
}

void hk__auth_derive(const struct hk__auth *auth, enum hk__auth_role sends,
		     unsigned char key_out[HK__KEY_BYTES])
{
	_Static_assert(HK__KEY_BYTES == HK__PROOF_BYTES, "a key is a hash");
	auth_hash(auth, sends == HK__AUTH_CONNECTS ? 'C' : 'A', key_out);
}

bool hk__auth_holds(const struct hk__auth *auth, enum hk__auth_role role,
		    const unsigned char proof[HK__PROOF_BYTES])
{
	unsigned char expected[HK__PROOF_BYTES];

	hk__auth_prove(auth, role, expected);
	return sodium_memcmp(expected, proof, HK__PROOF_BYTES) == 0;
}
