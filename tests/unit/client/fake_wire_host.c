/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory of the fake wire layer: the pages that kernels access, and the contents that both
 * sides have agreed on. */
#include "client/memory/host_memory.h"
#include "client/session/session.h"
#include "gpc_calls.h"
#include "protocol/host_consistent_copy.h"
#include "protocol/host_merge.h"
#include "tests/unit/client/fake_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARENAS 64
#define RANGE (512 * FAKE_WIRE_MIB)

struct arena {
	uint64_t base, size;
	uint8_t *memory, *shadow;
};

static struct arena arenas[ARENAS];
static int taken_fd = -1;
static uint64_t writes;
static bool merges; /* gpHostMerge has been received */
/* The gpHostTakeBehind request, which is answered when the work is done. */
static struct {
	struct gpc_request *request;
	struct gp_changes_range ranges[GP_HOST_AFTER_RANGES];
	size_t count;
} behind;

void
fake_wire_allow_host(void)
{
	fake.facts->unknown_calls[GP_CALL_gpHostReserve / 8] &=
		(uint8_t) ~(1u << GP_CALL_gpHostReserve % 8);
}

void
fake_wire_forbid_host(void)
{
	fake.facts->unknown_calls[GP_CALL_gpHostReserve / 8] |=
		(uint8_t)(1u << GP_CALL_gpHostReserve % 8);
}

static struct arena *
find(uint64_t address, uint64_t size)
{
	for (int i = 0; i < ARENAS; i++) {
		if (arenas[i].size && address >= arenas[i].base &&
		    address + size <= arenas[i].base + arenas[i].size)
			return &arenas[i];
	}
	return NULL;
}

bool
fake_wire_host_has(uint64_t address, uint64_t size)
{
	return find(address, size) != NULL;
}

uint8_t *
fake_wire_host_at(uint64_t address)
{
	struct arena *arena = find(address, 1);

	assert_non_null(arena);
	return arena->memory + (address - arena->base);
}

uint64_t
fake_wire_host_mapped(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < ARENAS; i++)
		sum += arenas[i].size;
	return sum;
}

static CUresult
complete(struct gpc_request *request, CUresult result)
{
	if (request->before)
		request->before(request);
	request->result = result;
	__atomic_store_n(&request->complete, true, __ATOMIC_RELEASE);
	if (request->done)
		request->done(request);
	return CUDA_SUCCESS;
}

static void *
encoded(struct gpc_request *request, size_t size)
{
	request->reply = calloc(1, size);
	request->reply_size = size;
	assert_non_null(request->reply);
	return request->reply;
}

CUresult
gpc_start_gpHostReserve(struct gpc_context *c, const struct gp_args_gpHostReserve *args,
			struct gpc_request *request)
{
	const struct gp_reply_gpHostReserve reply = {
		.address = FAKE_WIRE_HOST + (uint64_t)fake.host_reserves * RANGE, .room = RANGE
	};
	size_t size = gp_reply_gpHostReserve_size(&reply);
	struct gp_enc enc;

	assert_true(args->size >= RANGE);
	fake.host_reserves++;
	gp_enc_init(&enc, encoded(request, size), size);
	gp_reply_gpHostReserve_encode(&enc, &reply);
	return complete(request, CUDA_SUCCESS);
}

/* Memory of the device side; a file if the client maps it too. */
static uint8_t *
make_memory(uint64_t size, bool shared)
{
	int fd = shared ? memfd_create("host", MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1;
	uint8_t *memory;

	if (shared) {
		assert_int_equal(ftruncate(fd, (off_t)size), 0);
		assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
				 0);
	}
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
	assert_true(memory != MAP_FAILED);
	taken_fd = fd;
	return memory;
}

static void
make_arena(uint64_t address, uint64_t size, bool shared)
{
	struct arena *arena = arenas;

	while (arena->size)
		arena++;
	assert_true(arena < arenas + ARENAS);
	assert_null(find(address, 1));
	*arena = (struct arena){
		.base = address,
		.size = size,
		.memory = make_memory(size, shared),
		.shadow = mmap(NULL, size, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
	};
}

static void
drop_arena(struct arena *arena)
{
	(void)munmap(arena->memory, arena->size);
	(void)munmap(arena->shadow, arena->size);
	*arena = (struct arena){ 0 };
}

CUresult
gpc_wait_gpHostPlace(struct gpc_context *c, const struct gp_args_gpHostPlace *args)
{
	if (fake_wire_host_mapped() + args->size > fake.host_quota)
		return CUDA_ERROR_OUT_OF_MEMORY;
	assert_true(args->address >= fake.window &&
		    args->address + args->size <= fake.window + FAKE_WIRE_WINDOW);
	make_arena(args->address, args->size, false);
	return CUDA_SUCCESS;
}

bool
fake_wire_host_displace(uint64_t address, uint64_t size)
{
	struct arena *arena = find(address, size);

	if (arena)
		drop_arena(arena);
	return arena != NULL;
}

CUresult
gpc_start_gpHostMap(struct gpc_context *c, const struct gp_args_gpHostMap *args,
		    struct gpc_request *request)
{
	fake.host_maps++;
	if (fake.host_busy > 0 && fake.host_busy--)
		return complete(request, CUDA_ERROR_NOT_READY);
	if (fake_wire_host_mapped() + args->size > fake.host_quota)
		return complete(request, CUDA_ERROR_OUT_OF_MEMORY);
	make_arena(args->address, args->size, args->shared);
	assert_int_equal(args->shared, fake.shares_memory);
	return complete(request, CUDA_SUCCESS);
}

CUresult
gpc_start_gpHostUnmap(struct gpc_context *c, const struct gp_args_gpHostUnmap *args,
		      struct gpc_request *request)
{
	struct arena *arena = find(args->address, args->size);

	assert_non_null(arena);
	assert_int_equal(arena->base, args->address);
	assert_int_equal(arena->size, args->size);
	drop_arena(arena);
	return complete(request, CUDA_SUCCESS);
}

static void
store(void *arg, const struct gp_change *change)
{
	struct arena *arena = find(change->address, change->size);

	assert_non_null(arena);
	fake.host_written += change->size;
	gp_merge_copy(arena->memory + (change->address - arena->base), change->bytes, change->size,
		      change->same);
	gp_merge_copy(arena->shadow + (change->address - arena->base), change->bytes, change->size,
		      change->same);
}

CUresult
gpc_post_gpHostMerge(struct gpc_context *c, const struct gp_args_gpHostMerge *args)
{
	merges = true;
	return CUDA_SUCCESS;
}

CUresult
gpc_post_gpHostWrite(struct gpc_context *c, const struct gp_args_gpHostWrite *args)
{
	assert_true(args->changes.size > 0);
	assert_true(gp_changes_are_valid(args->changes.data, args->changes.size));
	gp_changes_for_each(args->changes.data, args->changes.size, store, NULL);
	writes++;
	return CUDA_SUCCESS;
}

CUresult
gpc_post_gpHostPublish(struct gpc_context *c, const struct gp_args_gpHostPublish *args)
{
	assert_true(fake.shares_memory);
	return CUDA_SUCCESS;
}

/* Returns the number of ranges in the bytes, and the addresses of those that are mapped. */
static size_t
find_ranges(struct gp_bytes bytes, struct gp_changes_range *ranges)
{
	size_t count = bytes.size / 16;
	struct gp_dec dec;

	assert_true(count <= GP_HOST_RANGES_MAX);
	gp_dec_init(&dec, bytes.data, bytes.size);
	for (size_t i = 0; i < count; i++) {
		struct arena *arena;

		ranges[i].address = gp_dec_u64(&dec);
		ranges[i].size = gp_dec_u64(&dec);
		arena = find(ranges[i].address, ranges[i].size);
		assert_non_null(arena);
		ranges[i].copy = arena->memory + (ranges[i].address - arena->base);
		ranges[i].shadow = arena->shadow + (ranges[i].address - arena->base);
	}
	return count;
}

/* The copy is taken now, because the work is done. */
void
fake_wire_host_look(struct gpc_request *request)
{
	struct gp_consistent_copy picture = { .merges = merges };
	struct gp_reply_gpHostTakeBehind reply = { .writes = writes };
	struct gp_enc enc;
	size_t size;

	if (!request || request != behind.request)
		return;
	behind.request = NULL;
	assert_true(gp_consistent_copy_build(&picture, behind.ranges, behind.count,
					     GP_CONSISTENT_COPY_ALL) > 0);
	reply.changes = (struct gp_bytes){ picture.ordered.bytes, picture.ordered.size };
	size = gp_reply_gpHostTakeBehind_size(&reply);
	gp_enc_init(&enc, encoded(request, size), size);
	gp_reply_gpHostTakeBehind_encode(&enc, &reply);
	gp_enc_pad(&enc);
	request->reply_size = gp_enc_size(&enc);
	gp_consistent_copy_fini(&picture);
}

CUresult
gpc_start_gpHostTakeBehind(struct gpc_context *c, const struct gp_args_gpHostTakeBehind *args,
			   struct gpc_request *request)
{
	bool lazy = fake.lazy;

	assert_null(behind.request);
	assert_true(args->ranges.size / 16 <= GP_HOST_AFTER_RANGES);
	fake.host_behinds++;
	behind.count = find_ranges(args->ranges, behind.ranges);
	behind.request = request;
	fake.lazy = true;
	fake_wire_start(request, NULL, 0, CUDA_SUCCESS);
	fake.lazy = lazy;
	return CUDA_SUCCESS;
}

/* Only the thread gpupool-mirror uses this call, and the fake has no such thread. */
CUresult
gpc_start_gpHostTakeChanged(struct gpc_context *c, const struct gp_args_gpHostTakeChanged *args,
			    struct gpc_request *request)
{
	fail_msg("nobody would tell what has changed");
	return CUDA_ERROR_UNKNOWN;
}

CUresult
gpc_start_gpHostTake(struct gpc_context *c, const struct gp_args_gpHostTake *args,
		     struct gpc_request *request)
{
	static struct gp_changes_range ranges[GP_HOST_RANGES_MAX];
	size_t count = find_ranges(args->ranges, ranges), size;
	struct gp_consistent_copy picture = { .merges = merges };
	bool lazy = fake.lazy;
	struct gp_reply_gpHostTake reply;
	struct gp_enc enc;

	fake.host_fetches++;
	reply.done = gp_consistent_copy_build(&picture, ranges, count, args->part);
	reply.changes = (struct gp_bytes){ picture.ordered.bytes, picture.ordered.size };
	size = gp_reply_gpHostTake_size(&reply);
	gp_enc_init(&enc, encoded(request, size), size);
	gp_reply_gpHostTake_encode(&enc, &reply);
	gp_enc_pad(&enc);
	request->reply_size = gp_enc_size(&enc);
	gp_consistent_copy_fini(&picture);
	/* The reply arrives when the client waits for it. */
	fake.lazy = true;
	fake_wire_start(request, NULL, 0, CUDA_SUCCESS);
	fake.lazy = lazy;
	return CUDA_SUCCESS;
}

bool
gpc_session_shares_memory(const struct gpc_session *s)
{
	return fake.shares_memory;
}

int
gpc_session_recv_fd(struct gpc_session *s)
{
	int fd = taken_fd;

	taken_fd = -1;
	return fd < 0 ? -ENOENT : fd;
}

void
gpc_session_set_callbacks(struct gpc_session *s, const struct gpc_session_callbacks *callbacks)
{
	fake.callbacks = callbacks;
}
