/* SPDX-License-Identifier: Apache-2.0 */
#include "client/copy/copy_between.h"

#include "client/array/array.h"
#include "client/base/unsupported_feature.h"
#include "client/context/context.h"
#include "client/copy/copy_in.h"
#include "client/copy/copy_out.h"
#include "client/host/coherence.h"
#include "client/memory/address.h"
#include "client/session/session.h"
#include "client/stream/stream.h"

#include <stdlib.h>

#define PIECE_SIZE ((uint64_t)4 << 20)

/* Returns the context of device memory or of device-mapped host memory, or NULL for other
 * memory. */
static struct gpc_context *
address_get_context(uint64_t address)
{
	struct gpc_address found;

	gpc_address_lookup(address, &found);
	return found.kind == GPC_ADDRESS_DEVICE || found.device_mapped ? found.context : NULL;
}

static CUresult
stream_route(struct gpc_stream **stream_p, const struct gpc_context *context, bool *changed_p)
{
	CUresult result;

	if (!context || context->scope.session == (*stream_p)->context->scope.session)
		return CUDA_SUCCESS;
	result = gpc_stream_fence(*stream_p);
	if (result != CUDA_SUCCESS)
		return result;
	*stream_p = context->legacy;
	*changed_p = true;
	return *stream_p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult
gpc_copy_route(struct gpc_stream **stream_p, uint64_t address, bool *changed_p)
{
	*changed_p = false;
	if (__builtin_expect(gpc_session_count() < 2, 1))
		return CUDA_SUCCESS;
	return stream_route(stream_p, address_get_context(address), changed_p);
}

CUresult
gpc_copy_route_array(struct gpc_stream **stream_p, const struct gpc_copy *copy, bool *changed_p)
{
	const struct gpc_side *side = copy->dst.array ? &copy->dst : &copy->src;
	const struct gpc_side *other = copy->dst.array ? &copy->src : &copy->dst;
	const struct gpc_context *context = side->array->context, *beyond = NULL;

	*changed_p = false;
	if (__builtin_expect(gpc_session_count() < 2, 1))
		return CUDA_SUCCESS;
	if (other->array)
		beyond = other->array->context;
	else if (!other->host)
		beyond = address_get_context(other->base);
	if (beyond && beyond->device->session != context->scope.session)
		return gpc_not_supported(GPC_UNSUPPORTED_ARRAYS_OF_DAEMONS);
	return stream_route(stream_p, context, changed_p);
}

bool
gpc_copy_is_between(const struct gpc_copy *copy)
{
	const struct gpc_context *dst, *src;

	if (__builtin_expect(gpc_session_count() < 2, 1) || copy->dst.host || copy->src.host)
		return false;
	dst = address_get_context(copy->dst.base);
	src = address_get_context(copy->src.base);
	return dst && src && dst->device->session != src->device->session;
}

/* Copies a part of a row. */
static CUresult
piece_copy(struct gpc_stream *to, uint64_t dst, struct gpc_stream *from, uint64_t src,
	   uint64_t size, void *piece)
{
	const struct gpc_side piece_side = { .base = (uintptr_t)piece, .host = true };
	struct gpc_copy out = { piece_side, { .base = src }, size, 1, 1 };
	struct gpc_copy in = { { .base = dst }, piece_side, size, 1, 1 };
	CUresult result = gpc_copy_out(from, &out);

	return result == CUDA_SUCCESS ? gpc_copy_in(to, &in, true) : result;
}

static CUresult
row_copy(struct gpc_stream *to, uint64_t dst, struct gpc_stream *from, uint64_t src, uint64_t width,
	 void *piece)
{
	CUresult result = CUDA_SUCCESS;

	for (uint64_t at = 0; at < width && result == CUDA_SUCCESS; at += PIECE_SIZE) {
		uint64_t size = width - at < PIECE_SIZE ? width - at : PIECE_SIZE;

		result = piece_copy(to, dst + at, from, src + at, size, piece);
	}
	return result;
}

CUresult
gpc_copy_between(struct gpc_stream *stream, const struct gpc_copy *copy)
{
	const struct gpc_context *dst = address_get_context(copy->dst.base);
	const struct gpc_context *src = address_get_context(copy->src.base);
	CUresult result = gpc_stream_fence(stream);
	void *piece = malloc(PIECE_SIZE);

	if (!piece)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (!dst || !src || !dst->legacy || !src->legacy)
		result = CUDA_ERROR_INVALID_CONTEXT;
	if (result == CUDA_SUCCESS)
		result = gpc_coherence_before_work(src->scope.session);
	if (result == CUDA_SUCCESS)
		result = gpc_coherence_before_work(dst->scope.session);
	for (uint64_t slice = 0; slice < copy->depth; slice++) {
		for (uint64_t row = 0; row < copy->height && result == CUDA_SUCCESS; row++)
			result = row_copy(dst->legacy, gpc_side_row(&copy->dst, slice, row),
					  src->legacy, gpc_side_row(&copy->src, slice, row),
					  copy->width, piece);
	}
	free(piece);
	/* Other streams of the receiving daemon may continue only after the data has arrived. */
	return result == CUDA_SUCCESS ? gpc_stream_fence(dst->legacy) : result;
}
