/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills of the fake wire layer, and waits for them. */
#include "gpc_calls.h"
#include "protocol/frame.h"
#include "tests/unit/client/fake_wire.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

CUresult
gpc_wait_gpFence(struct gpc_context *c, const struct gp_args_gpFence *args)
{
	fake_wire_count(&fake.waits);
	fake_wire_deliver();
	return CUDA_SUCCESS;
}

CUresult
gpc_start_gpFence(struct gpc_context *c, const struct gp_args_gpFence *args,
		  struct gpc_request *request)
{
	fake_wire_count(&fake.fences);
	fake_wire_start(request, NULL, 0, CUDA_SUCCESS);
	return CUDA_SUCCESS;
}

CUresult
gpc_wait_cuStreamSynchronize(struct gpc_context *c, const struct gp_args_cuStreamSynchronize *args)
{
	fake_wire_count(&fake.syncs);
	fake_wire_deliver();
	return CUDA_SUCCESS;
}

uint8_t *
fake_wire_gather(const struct iovec *bulk, int bulk_count, uint64_t size)
{
	uint8_t *packed = malloc(size);
	uint64_t at = 0;

	assert_non_null(packed);
	for (int i = 0; i < bulk_count; i++) {
		assert_true(bulk[i].iov_len <= size - at);
		memcpy(packed + at, bulk[i].iov_base, bulk[i].iov_len);
		at += bulk[i].iov_len;
	}
	assert_int_equal(at, size);
	return packed;
}

CUresult
gpc_post_gpCopyIn(struct gpc_context *c, const struct gp_args_gpCopyIn *args,
		  const struct iovec *bulk, int bulk_count)
{
	uint64_t size = args->width * args->height;
	uint8_t *packed = fake_wire_gather(bulk, bulk_count, size);

	for (uint64_t y = 0; y < args->height; y++) {
		fake_wire_expect_mapped(args->dst + y * args->pitch, args->width);
		memcpy(fake_wire_at(args->dst + y * args->pitch), packed + y * args->width,
		       args->width);
	}
	free(packed);
	fake_wire_count(&fake.copies_in);
	if (args->flags == GP_COPY_BARRIER)
		fake_wire_count(&fake.barriers);
	if (args->flags & GP_COPY_LISTED)
		fake.last_listed = args->flags >> GP_COPY_NUMBER_SHIFT;
	(void)pthread_mutex_lock(&lock);
	if (size > fake.largest_copy_in)
		fake.largest_copy_in = size;
	(void)pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult
gpc_post_gpCopyInShort(struct gpc_context *c, const struct gp_args_gpCopyInShort *args)
{
	const struct gp_args_gpCopyIn copy = { .stream = args->stream,
					       .dst = args->dst,
					       .pitch = args->pitch,
					       .width = args->width,
					       .height = args->height,
					       .flags = args->flags };
	const struct iovec bytes = { (void *)args->data.data, args->data.size };

	fake_wire_count(&fake.copies_in_short);
	return gpc_post_gpCopyIn(c, &copy, &bytes, 1);
}

/* A replacement is only recorded, because the fake has already executed the copies. */
CUresult
gpc_post_gpCopyReplace(struct gpc_context *c, const struct gp_args_gpCopyReplace *args)
{
	assert_in_range(args->data.size, 1, GP_REPLACE_MAX);
	assert_in_range(args->copy, 1, GP_COPY_NUMBERS - 1);
	fake_wire_count(&fake.replacements);
	fake.last_replaced = args->copy;
	fake.replaced_bytes += args->data.size;
	fake.last_replaced_byte = ((const uint8_t *)args->data.data)[args->data.size - 1];
	fake.replaced_before = fake.host_written;
	return CUDA_SUCCESS;
}

CUresult
gpc_start_gpCopyOut(struct gpc_context *c, const struct gp_args_gpCopyOut *args,
		    struct gpc_request *request)
{
	uint64_t size = args->width * args->height;
	bool empty = fake.copy_out_short || fake.copy_out_result != CUDA_SUCCESS;
	uint8_t *packed = malloc(size);

	for (uint64_t y = 0; y < args->height; y++) {
		fake_wire_expect_mapped(args->src + y * args->pitch, args->width);
		memcpy(packed + y * args->width, fake_wire_at(args->src + y * args->pitch),
		       args->width);
	}
	fake_wire_count(&fake.copies_out);
	fake_wire_start(request, packed, empty ? 0 : size, fake.copy_out_result);
	return CUDA_SUCCESS;
}

CUresult
gpc_post_gpCopyDevice(struct gpc_context *c, const struct gp_args_gpCopyDevice *args)
{
	for (uint64_t z = 0; z < args->depth; z++) {
		for (uint64_t y = 0; y < args->height; y++) {
			uint64_t dst = args->dst + z * args->dst_slice + y * args->dst_pitch;
			uint64_t src = args->src + z * args->src_slice + y * args->src_pitch;

			fake_wire_expect_mapped(dst, args->width);
			fake_wire_expect_mapped(src, args->width);
			memmove(fake_wire_host_has(dst, 1) ? fake_wire_host_at(dst)
							   : fake_wire_at(dst),
				fake_wire_at(src), args->width);
		}
	}
	fake_wire_count(&fake.copies_device);
	return CUDA_SUCCESS;
}

CUresult
gpc_post_gpFill(struct gpc_context *c, const struct gp_args_gpFill *args)
{
	for (uint64_t y = 0; y < args->height; y++) {
		uint64_t row = args->dst + y * args->pitch;
		uint8_t *there;

		if (row - fake.window >= FAKE_WIRE_WINDOW) {
			there = fake_wire_host_at(row);
		} else {
			fake_wire_expect_mapped(row, args->width * args->element_size);
			there = fake_wire_at(row);
		}
		for (uint64_t x = 0; x < args->width; x++)
			memcpy(there + x * args->element_size, &args->value, args->element_size);
	}
	fake_wire_count(&fake.fills);
	return CUDA_SUCCESS;
}
