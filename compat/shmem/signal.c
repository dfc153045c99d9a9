/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signal.c - puts with signals. Who sees the signal sees the data of its put: near, the
 * signal is an atomic with release after the copy; far, hk_put_signal() promises it. The
 * context orders both.
 */
#include "sma.h"

static enum hk_amo op_of(int sig_op, const char *call)
{
	if (sig_op != SHMEM_SIGNAL_SET && sig_op != SHMEM_SIGNAL_ADD)
		hk__sma_die(call, "%d is neither SHMEM_SIGNAL_SET nor SHMEM_SIGNAL_ADD", sig_op);
	return sig_op == SHMEM_SIGNAL_ADD ? HK_AMO_ADD : HK_AMO_SET;
}

struct put_signal {
	void *dest;
	const void *source;
	size_t bytes;
	uint64_t *signal;
	uint64_t value;
	int op;
	bool nbi;
};

static void far_put_signal(const struct put_signal *put, const struct hk__sma_at *data,
			   const struct hk__sma_at *word, enum hk_amo op, const char *call)
{
	const struct hk_signal signal = {
		.win = word->space->win,
		.offset = word->offset,
		.value = put->value,
		.op = op,
	};
	enum hk_status status;

	if (put->bytes == 0)
		status = hk_signal(word->pe, &signal, word->ctx);
	else if (put->nbi)
		status = hk_put_signal_nbi(data->space->win, data->pe, data->offset, put->source,
					   put->bytes, &signal, data->ctx);
	else
		status = hk_put_signal(data->space->win, data->pe, data->offset, put->source,
				       put->bytes, &signal, data->ctx);
	hk__sma_must(call, status);
}

static void put_signal(shmem_ctx_t ctx, const struct put_signal *put, int pe, const char *call)
{
	enum hk_amo op = op_of(put->op, call);
	struct hk__sma_at data = { 0 };
	struct hk__sma_at word = { 0 };

	hk__sma_find(&word, ctx, put->signal, sizeof(uint64_t), pe, call);
	if (put->bytes > 0)
		hk__sma_find(&data, ctx, put->dest, put->bytes, pe, call);
	if (hk__sma.check && put->bytes > 0 &&
	    (uintptr_t)put->signal - (uintptr_t)put->dest < put->bytes)
		hk__sma_die(call, "the signal at %p lies in the data", (void *)put->signal);
	if (!word.near) {
		far_put_signal(put, &data, &word, op, call);
		return;
	}
	if (put->bytes > 0)
		memcpy(data.near, put->source, put->bytes);
	/* Pairs with the acquire of waits for signals, and of shmem_signal_fetch. */
	if (op == HK_AMO_ADD)
		__atomic_fetch_add((uint64_t *)(void *)word.near, put->value, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint64_t *)(void *)word.near, put->value, __ATOMIC_RELEASE);
	hk__sma_ring(&word);
	if (data.near && data.space != word.space)
		hk__sma_ring(&data);
}

#define PUT_SIGNAL(NAME, CTX_NAME, TYPE, SIZE, NBI) \
	FN(void, NAME, \
	   (TYPE * dest, const TYPE *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, \
	    int sig_op, int pe)) \
	{ \
		put_signal(SHMEM_CTX_DEFAULT, \
			   &(struct put_signal){ dest, source, nelems * (SIZE), sig_addr, signal, \
						 sig_op, NBI }, \
			   pe, #NAME); \
	} \
	FN(void, CTX_NAME, \
	   (shmem_ctx_t ctx, TYPE * dest, const TYPE *source, size_t nelems, uint64_t *sig_addr, \
	    uint64_t signal, int sig_op, int pe)) \
	{ \
		put_signal(ctx, \
			   &(struct put_signal){ dest, source, nelems * (SIZE), sig_addr, signal, \
						 sig_op, NBI }, \
			   pe, #CTX_NAME); \
	}
#define PUT_SIGNAL_T(F, NAME, TYPE) \
	PUT_SIGNAL(shmem_##NAME##_put_signal, shmem_ctx_##NAME##_put_signal, TYPE, sizeof(TYPE), \
		   false) \
	PUT_SIGNAL(shmem_##NAME##_put_signal_nbi, shmem_ctx_##NAME##_put_signal_nbi, TYPE, \
		   sizeof(TYPE), true)
#define PUT_SIGNAL_S(F, BITS, BYTES) \
	PUT_SIGNAL(shmem_put##BITS##_signal, shmem_ctx_put##BITS##_signal, void, BYTES, false) \
	PUT_SIGNAL(shmem_put##BITS##_signal_nbi, shmem_ctx_put##BITS##_signal_nbi, void, BYTES, \
		   true)
SHMEMX_RMA_TYPES(PUT_SIGNAL_T, )
SHMEMX_SIZES_MEM(PUT_SIGNAL_S, )

/* ---- signals alone ---- */

#define SIGNAL(OP, SIG_OP) \
	FN(void, shmem_signal_##OP, (uint64_t * sig_addr, uint64_t signal, int pe)) \
	{ \
		put_signal(SHMEM_CTX_DEFAULT, \
			   &(struct put_signal){ \
				   .signal = sig_addr, .value = signal, .op = SIG_OP }, \
			   pe, "shmem_signal_" #OP); \
	} \
	FN(void, shmem_ctx_signal_##OP, \
	   (shmem_ctx_t ctx, uint64_t * sig_addr, uint64_t signal, int pe)) \
	{ \
		put_signal(ctx, \
			   &(struct put_signal){ \
				   .signal = sig_addr, .value = signal, .op = SIG_OP }, \
			   pe, "shmem_ctx_signal_" #OP); \
	}
SIGNAL(set, SHMEM_SIGNAL_SET)
SIGNAL(add, SHMEM_SIGNAL_ADD)

FN(uint64_t, shmem_signal_fetch, (const uint64_t *sig_addr))
{
	return __atomic_load_n(sig_addr, __ATOMIC_ACQUIRE);
}
