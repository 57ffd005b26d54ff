/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/image/image_bytes.h"

#include "gpd_calls.h"
#include "image/fatbin.h"
#include "server/common/base/clock.h"
#include "server/common/ledger/code_memory.h"
#include "server/worker/code/image_cache.h"
#include "server/worker/image/image.h"
#include "server/worker/image/image_arrival.h"
#include "server/worker/session/session.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

/* Of all images of a session. */
#define IMAGES_SIZE_MAX ((uint64_t)8 << 30)
#define IMAGES_MAX 16384
#define RECEIVE_SIZE ((size_t)1 << 20)
/* How long a load waits, in all, for what those that came after it give back. */
#define ROOM_NS UINT64_C(5000000000)
#define NAP_NS 2000000

/* What a session holds of the worker's memory. */
struct sum {
	uint64_t size;
	unsigned int count;
};

static void
add_up(struct gpd_handle *handle, void *arg)
{
	struct sum *sum = arg;

	sum->size += gpd_blob_size(((struct gpd_image *)handle)->blob);
	sum->count++;
}

static bool
within_limits(struct gpd_session *session, const struct sum *held, uint64_t size)
{
	if (size > GP_IMAGE_SIZE_MAX)
		gpd_session_log(session, GPD_LOG_WARNING,
				"an image of %" PRIu64 " bytes is refused: one may have %" PRIu64,
				size, (uint64_t)GP_IMAGE_SIZE_MAX);
	else if (held->size + size > IMAGES_SIZE_MAX || held->count >= IMAGES_MAX)
		gpd_session_log(session, GPD_LOG_WARNING,
				"an image of %" PRIu64 " KiB is refused: it has %u of %" PRIu64
				" KiB already",
				(size + 1023) >> 10, held->count, held->size >> 10);
	else
		return true;
	return false;
}

/* How much beyond the limit will do, as each session has its least in any case. */
static uint64_t
allowance(const struct gpd_session *session, const struct sum *held, uint64_t size)
{
	return held->size + size <= GPD_CODE_MIN
		       ? gpd_ledger_sessions(session->account.ledger) * GPD_CODE_MIN
		       : 0;
}

static CUresult
refuse_memory(struct gpd_session *session, uint64_t size)
{
	const struct gpd_ledger *ledger = session->account.ledger;

	gpd_session_log(session, GPD_LOG_WARNING,
			"an image of %" PRIu64 " KiB is refused: device code has %" PRIu64
			" of %" PRIu64 " KiB (code-memory)",
			(size + 1023) >> 10, gpd_code_used(&ledger->code) >> 10,
			atomic_load(&ledger->code.max) >> 10);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Whether to try once more: what this worker has unloaded is about to go, or, if this session loads
 * (`loads`), another one has begun after it, which is what ends first if there is not enough for
 * all: none of them would be loaded if all ended.  *until: 0 at first. */
static bool
may_wait(struct gpd_session *session, bool loads, uint64_t *until)
{
	const struct gpd_ledger *ledger = session->account.ledger;
	uint64_t now = gpd_now_ns();

	if (!*until)
		*until = now + ROOM_NS;
	return now < *until && !atomic_load(&session->closing) &&
	       (gpd_image_cache_is_dropping() ||
		(loads && !gpd_ledger_loads_last(ledger, session->account.line)));
}

static bool
take(struct gpd_session *session, uint64_t bytes, uint64_t more, uint64_t *until)
{
	bool wait;

	if (gpd_image_cache_take(bytes, more))
		return true;
	do {
		/* Before it is tried: who gives up gives back first. */
		wait = may_wait(session, true, until);
		if (gpd_image_cache_take(bytes, more))
			return true;
		if (wait)
			gpd_nap(NAP_NS);
	} while (wait);
	return false;
}

static bool
could_take(struct gpd_session *session, uint64_t bytes, uint64_t more)
{
	uint64_t until = 0;

	while (!gpd_image_cache_could_take(bytes, more)) {
		if (!may_wait(session, false, &until))
			return false;
		gpd_nap(NAP_NS);
	}
	return true;
}

/* The hash is made as the bytes arrive, and so is the memory taken: what is only announced is not
 * in the way of others.  `taken`: how much that was, also if it fails. */
static CUresult
receive(struct gpd_session *session, uint8_t *bytes, size_t size, uint64_t more, uint64_t *taken,
	uint8_t *sha256)
{
	EVP_MD_CTX *digest = EVP_MD_CTX_new();
	bool good = digest && EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1;
	CUresult result = good ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	uint64_t until = 0;

	*taken = 0;
	for (size_t at = 0; result == CUDA_SUCCESS && at < size; at += RECEIVE_SIZE) {
		size_t part = size - at < RECEIVE_SIZE ? size - at : RECEIVE_SIZE;

		if (!take(session, part, more, &until)) {
			result = refuse_memory(session, size);
			break;
		}
		*taken += part;
		gpd_image_arrival_goes_on(session);
		if (gpd_session_recv_bulk(session, bytes + at, part) ||
		    EVP_DigestUpdate(digest, bytes + at, part) != 1)
			result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (result == CUDA_SUCCESS && EVP_DigestFinal_ex(digest, sha256, NULL) != 1)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	EVP_MD_CTX_free(digest);
	return result;
}

static CUresult
blob_receive(struct gpd_session *session, const struct gp_args_gpImageLoad *args, uint64_t more,
	     struct gpd_blob **blob_p)
{
	uint8_t sha256[EVP_MAX_MD_SIZE];
	uint64_t taken;
	CUresult result;
	void *bytes;

	/* Better now than at its end. */
	if (!could_take(session, args->size, more))
		return refuse_memory(session, args->size);
	bytes = gpd_image_bytes_alloc(args->size);
	if (!bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = receive(session, bytes, args->size, more, &taken, sha256);
	if (result == CUDA_SUCCESS && memcmp(sha256, args->sha256.data, GPD_SHA256_SIZE)) {
		gpd_session_violation(session, "an image does not have the SHA-256 it was sent by");
		result = CUDA_ERROR_INVALID_IMAGE;
	}
	if (result != CUDA_SUCCESS) {
		free(bytes);
		gpd_image_cache_give(taken);
		return result;
	}
	*blob_p = gpd_image_cache_add(sha256, bytes, args->size);
	return *blob_p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* NULL with CUDA_SUCCESS: the client has to send it, and there is room for it. */
static CUresult
blob_look_up(struct gpd_session *session, const struct gp_args_gpImageLoad *args, uint64_t more,
	     struct gpd_blob **blob_p)
{
	struct gpd_image_name name = { .size = args->size };
	bool full;

	memcpy(name.sha256, args->sha256.data, sizeof(name.sha256));
	/* What another session brings need not come twice. */
	do
		*blob_p = gpd_image_cache_get(&name, more, &full);
	while (!*blob_p && !full && !gpd_image_arrival_begin(session, name.sha256));
	if (!*blob_p && !full)
		*blob_p = gpd_image_cache_find(&name, more, &full);
	if (!*blob_p && !full && could_take(session, args->size, more))
		return CUDA_SUCCESS;
	gpd_image_arrival_end(session);
	return *blob_p ? CUDA_SUCCESS : refuse_memory(session, args->size);
}

CUresult
gpd_image_bytes(struct gpd_session *session, const struct gp_args_gpImageLoad *args,
		struct gpd_blob **blob_p)
{
	uint64_t bulk = gpd_session_bulk_size(session), more;
	struct sum held = { 0 };
	CUresult result;

	*blob_p = NULL;
	if (args->sha256.size != GPD_SHA256_SIZE || (bulk && bulk != args->size)) {
		gpd_session_violation(session,
				      "an image of %lu bytes with a tail of %lu and a hash of %zu",
				      args->size, bulk, args->sha256.size);
		return CUDA_ERROR_INVALID_VALUE;
	}
	gpd_handle_each(&session->handles, GPD_KIND_IMAGE, add_up, &held);
	held.size += gpd_image_leaving(session);
	if (!within_limits(session, &held, args->size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	more = allowance(session, &held, args->size);
	if (!bulk)
		return blob_look_up(session, args, more, blob_p);
	gpd_ledger_load_begin(session->account.ledger, session->account.line);
	result = blob_receive(session, args, more, blob_p);
	gpd_ledger_load_end(session->account.line);
	gpd_image_arrival_end(session);
	return result;
}
