/* SPDX-License-Identifier: Apache-2.0 */
#include "server/memory.h"

#include "gpd_calls.h"
#include "server/driver.h"
#include "server/image.h"
#include "server/session.h"
#include "server/wait.h"
#include "server/worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct chunk {
	uint64_t address;
	uint64_t size;
	int device;
	CUmemGenericAllocationHandle handle;
};

/* A chunk on its way out. */
struct leaving {
	struct leaving *next;
	struct gpd_memory *memory;
	struct chunk chunk;
	bool stuck; /* nobody can tell when no work uses it any more */
};

struct gpd_memory {
	struct gpd_session *session;
	uint64_t base;
	uint64_t size;
	struct chunk *chunks; /* by address */
	size_t count;
	size_t room;

	pthread_mutex_t lock;
	struct leaving *leaving;
};

static struct {
	pthread_mutex_t lock;
	CUstream streams[GPD_DEVICES_MAX]; /* for zeroing */
	bool plain;                        /* the driver makes no exportable memory */
} shared = { .lock = PTHREAD_MUTEX_INITIALIZER };

static CUmemAllocationProp
properties(int device)
{
	return (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = shared.plain ? CU_MEM_HANDLE_TYPE_NONE
						     : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device },
	};
}

static CUresult
zero_stream(int device, CUstream *stream_p)
{
	CUresult result = CUDA_SUCCESS;

	pthread_mutex_lock(&shared.lock);
	if (!shared.streams[device])
		result = gpd_driver.cuStreamCreateWithPriority(&shared.streams[device],
							       CU_STREAM_NON_BLOCKING, 0);
	*stream_p = shared.streams[device];
	pthread_mutex_unlock(&shared.lock);
	return result;
}

/* Another session may have had this memory. */
static CUresult
zero(uint64_t address, uint64_t size, int device)
{
	CUstream stream;
	CUresult result = gpd_device_enter(device);

	if (result == CUDA_SUCCESS)
		result = zero_stream(device, &stream);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuMemsetD32Async(address, 0, size / 4, stream);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuStreamSynchronize(stream);
	return result;
}

static CUresult
create(struct chunk *chunk, int device)
{
	CUmemAllocationProp property = properties(device);
	CUresult result = gpd_driver.cuMemCreate(&chunk->handle, chunk->size, &property, 0);

	if (result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY || shared.plain)
		return result;
	property.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
	result = gpd_driver.cuMemCreate(&chunk->handle, chunk->size, &property, 0);
	if (result == CUDA_SUCCESS)
		shared.plain = true;
	return result;
}

static void
drop(const struct chunk *chunk)
{
	gpd_driver.cuMemUnmap(chunk->address, chunk->size);
	gpd_driver.cuMemRelease(chunk->handle);
}

static CUresult
place(struct chunk *chunk, int device)
{
	CUmemAccessDesc access = {
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUresult result = create(chunk, device);

	if (result != CUDA_SUCCESS)
		return result;
	chunk->device = device;
	result = gpd_driver.cuMemMap(chunk->address, chunk->size, 0, chunk->handle, 0);
	if (result != CUDA_SUCCESS) {
		gpd_driver.cuMemRelease(chunk->handle);
		return result;
	}
	result = gpd_driver.cuMemSetAccess(chunk->address, chunk->size, &access, 1);
	if (result == CUDA_SUCCESS)
		result = zero(chunk->address, chunk->size, device);
	if (result != CUDA_SUCCESS)
		drop(chunk);
	return result;
}

/* The first chunk that ends behind address. */
static size_t
find(const struct gpd_memory *memory, uint64_t address)
{
	size_t low = 0, high = memory->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct chunk *chunk = &memory->chunks[middle];

		if (chunk->address + chunk->size <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool
inside(const struct gpd_memory *memory, uint64_t address, uint64_t size)
{
	return address >= memory->base && address - memory->base <= memory->size &&
	       size <= memory->size - (address - memory->base);
}

bool
gpd_memory_mapped(const struct gpd_session *session, uint64_t address, uint64_t size)
{
	const struct gpd_memory *memory = session->memory;
	uint64_t end;

	if (!inside(memory, address, size))
		return false;
	end = address + size;
	for (size_t i = find(memory, address); address < end; i++) {
		const struct chunk *chunk = &memory->chunks[i];

		if (i == memory->count || chunk->address > address)
			return false;
		address = chunk->address + chunk->size;
	}
	return true;
}

bool
gpd_memory_accessible(struct gpd_session *session, uint64_t address, uint64_t size)
{
	if (inside(session->memory, address, size))
		return gpd_memory_mapped(session, address, size);
	return gpd_image_owns(session, address, size);
}

static bool
room(struct gpd_memory *memory)
{
	size_t count = memory->room ? memory->room * 2 : 64;
	struct chunk *chunks;

	if (memory->count < memory->room)
		return true;
	chunks = realloc(memory->chunks, count * sizeof(*chunks));
	if (!chunks)
		return false;
	memory->chunks = chunks;
	memory->room = count;
	return true;
}

static struct leaving *
find_leaving(struct gpd_memory *memory, uint64_t address, uint64_t size)
{
	struct leaving *leaving = memory->leaving;

	while (leaving && (leaving->chunk.address >= address + size ||
			   leaving->chunk.address + leaving->chunk.size <= address))
		leaving = leaving->next;
	return leaving;
}

static CUresult
wait_unmapped(struct gpd_memory *memory, uint64_t address, uint64_t size)
{
	struct leaving *leaving;

	pthread_mutex_lock(&memory->lock);
	while ((leaving = find_leaving(memory, address, size)) && !leaving->stuck) {
		pthread_mutex_unlock(&memory->lock);
		gpd_wait_oldest(memory->session);
		pthread_mutex_lock(&memory->lock);
	}
	pthread_mutex_unlock(&memory->lock);
	return leaving ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static bool
is_leaving(struct gpd_memory *memory)
{
	bool leaving;

	pthread_mutex_lock(&memory->lock);
	leaving = memory->leaving != NULL;
	pthread_mutex_unlock(&memory->lock);
	return leaving;
}

CUresult
gpd_memory_map(struct gpd_session *session, uint64_t address, uint64_t size, int device)
{
	struct gpd_memory *memory = session->memory;
	struct chunk chunk = { .address = address, .size = size };
	const struct gpd_device *on = gpd_device_get(device);
	CUresult result;
	bool leaving;
	size_t i;

	if (!on)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!inside(memory, address, size)) {
		gpd_session_violation(session, "it maps %llu bytes at %#llx, outside its window",
				      (unsigned long long)size, (unsigned long long)address);
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (!size || (address | size) % on->granularity)
		return CUDA_ERROR_INVALID_VALUE;
	i = find(memory, address);
	if (i < memory->count && memory->chunks[i].address < address + size)
		return CUDA_ERROR_INVALID_VALUE;
	if (!room(memory))
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = wait_unmapped(memory, address, size);
	leaving = is_leaving(memory);
	if (result == CUDA_SUCCESS)
		result = place(&chunk, device);
	/* What the client has given back may still have been on its way out. */
	if (result == CUDA_ERROR_OUT_OF_MEMORY && leaving &&
	    wait_unmapped(memory, memory->base, memory->size) == CUDA_SUCCESS)
		result = place(&chunk, device);
	if (result != CUDA_SUCCESS)
		return result;
	memmove(&memory->chunks[i + 1], &memory->chunks[i], (memory->count - i) * sizeof(chunk));
	memory->chunks[i] = chunk;
	memory->count++;
	return CUDA_SUCCESS;
}

CUresult
gpd_gpMemoryMap(struct gpd_session *session, const struct gp_args_gpMemoryMap *args)
{
	return gpd_memory_map(session, args->address, args->size, args->device);
}

/* The driver unmaps without waiting for the device. */
static void
unmap(struct leaving *leaving)
{
	struct gpd_memory *memory = leaving->memory;
	struct leaving **link = &memory->leaving;

	drop(&leaving->chunk);
	pthread_mutex_lock(&memory->lock);
	while (*link != leaving)
		link = &(*link)->next;
	*link = leaving->next;
	pthread_mutex_unlock(&memory->lock);
	free(leaving);
}

static void
unused(struct gpd_session *session, void *arg, CUresult result)
{
	unmap(arg);
}

CUresult
gpd_gpMemoryUnmap(struct gpd_session *session, const struct gp_args_gpMemoryUnmap *args)
{
	struct gpd_memory *memory = session->memory;
	size_t i = find(memory, args->address);
	struct leaving *leaving;
	CUresult result;

	if (i == memory->count || memory->chunks[i].address != args->address ||
	    memory->chunks[i].size != args->size)
		return CUDA_ERROR_INVALID_VALUE;
	leaving = malloc(sizeof(*leaving));
	if (!leaving)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*leaving = (struct leaving){ .memory = memory, .chunk = memory->chunks[i] };
	gpd_account_free(&session->account, leaving->chunk.device, leaving->chunk.size);
	memory->count--;
	memmove(&memory->chunks[i], &memory->chunks[i + 1],
		(memory->count - i) * sizeof(struct chunk));
	pthread_mutex_lock(&memory->lock);
	leaving->next = memory->leaving;
	memory->leaving = leaving;
	pthread_mutex_unlock(&memory->lock);
	result = gpd_wait_add_all(session, NULL, unused, leaving);
	/* The context is lost, or close to it: the chunk goes with the session. */
	if (result != CUDA_SUCCESS)
		leaving->stuck = true;
	return result;
}

/* What the session has given back and the driver does not have yet. */
static uint64_t
leaving_size(struct gpd_memory *memory, int device)
{
	uint64_t size = 0;

	pthread_mutex_lock(&memory->lock);
	for (const struct leaving *leaving = memory->leaving; leaving; leaving = leaving->next) {
		if (leaving->chunk.device == device)
			size += leaving->chunk.size;
	}
	pthread_mutex_unlock(&memory->lock);
	return size;
}

CUresult
gpd_gpMemoryInfo(struct gpd_session *session, const struct gp_args_gpMemoryInfo *args,
		 struct gp_reply_gpMemoryInfo *reply)
{
	struct gpd_ledger_room quota;
	size_t available, total;
	/* First what is leaving: it may arrive in between, and free memory must not seem to shrink.
	 */
	uint64_t leaving = leaving_size(session->memory, args->device);
	CUresult result = gpd_account_may_use(&session->account, args->device)
				  ? gpd_device_enter(args->device)
				  : CUDA_ERROR_INVALID_DEVICE;

	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuMemGetInfo_v2(&available, &total);
	if (result != CUDA_SUCCESS)
		return result;
	available += leaving;
	if (available > total)
		available = total;
	quota = gpd_account_room(&session->account, args->device);
	reply->free = quota.left < available ? quota.left : available;
	reply->total = quota.max < total ? quota.max : total;
	return CUDA_SUCCESS;
}

int
gpd_memory_create(struct gpd_session *session, uint64_t base, uint64_t size)
{
	struct gpd_memory *memory = calloc(1, sizeof(*memory));

	if (!memory)
		return -ENOMEM;
	memory->session = session;
	memory->base = base;
	memory->size = size;
	pthread_mutex_init(&memory->lock, NULL);
	session->memory = memory;
	return 0;
}

void
gpd_memory_destroy(struct gpd_session *session)
{
	struct gpd_memory *memory = session->memory;

	if (!memory)
		return;
	while (memory->leaving)
		unmap(memory->leaving);
	for (size_t i = 0; i < memory->count; i++)
		drop(&memory->chunks[i]);
	pthread_mutex_destroy(&memory->lock);
	free(memory->chunks);
	free(memory);
	session->memory = NULL;
}
