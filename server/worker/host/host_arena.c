/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/host/host_arena.h"

#include "base/clock.h"
#include "protocol/host_run_bitmap.h"
#include "server/common/base/integers.h"
#include "server/common/config/config_value.h"
#include "server/worker/device/driver.h"
#include "server/worker/session/session.h"
#include "transport/shm/sealed_memory.h"
#include "transport/transport.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utlist.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define PIECE_MIB 8
#define PIECE_MIB_MAX 64
/* Step for touching and freeing pages: 4 KiB take up to 2 us, and every other mapping operation of
 * the process waits that long. */
#define STEP (UINT64_C(256) << 10)
/* Pause between two calls that block launches: calls without a pause delayed launches by 1.7 to 3.3
 * ms (docs/measured.md). */
#define REST_NS 300000
#define REGISTER_FLAGS (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP)

/* The arenas whose files clients have. */
static struct {
	pthread_mutex_t lock;
	struct gpd_host_arena *first; /* utlist */
} arenas = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* 8 MiB are registered in 0.6 ms, 64 MiB in 4 ms. */
bool
gpd_host_registration_parse(const char *text, uint64_t *size_p)
{
	uint64_t mib = PIECE_MIB;
	bool sound = !text || !*text || gpd_value_parse_number(text, 1, PIECE_MIB_MAX, &mib);

	*size_p = mib << 20;
	return sound;
}

/* Read once from the environment. */
static uint64_t
get_registration_size(void)
{
	static _Atomic uint64_t known;
	uint64_t size = atomic_load(&known);

	if (!size) {
		(void)gpd_host_registration_parse(getenv("GPUPOOL_HOST_PIECE_MIB"), &size);
		atomic_store(&known, size);
	}
	return size;
}

static _Atomic uint64_t rest_until;

static void
rest_wait(void)
{
	uint64_t now;

	while ((now = gp_now_ns()) < atomic_load(&rest_until))
		gp_sleep_ns(atomic_load(&rest_until) - now);
}

static CUresult
driver_register(void *memory, uint64_t size)
{
	CUresult result;

	rest_wait();
	result = gpd_driver.cuMemHostRegister_v2(memory, size, REGISTER_FLAGS);
	atomic_store(&rest_until, gp_now_ns() + REST_NS);
	return result;
}

static void
driver_unregister(void *memory)
{
	rest_wait();
	(void)gpd_driver.cuMemHostUnregister(memory);
	atomic_store(&rest_until, gp_now_ns() + REST_NS);
}

/* Works in steps. Returns 0, or the errno of the first failure. */
static int
range_advise(uint64_t address, uint64_t size, int advice)
{
	for (uint64_t done = 0; done < size; done += STEP) {
		if (madvise(gpd_address_to_pointer(address + done), gpd_u64_min(STEP, size - done),
			    advice))
			return errno;
	}
	return 0;
}

/* Not by mapping over the pages, which would block the process while they are freed. */
static void
drop_pages(uint64_t address, uint64_t size)
{
	(void)range_advise(address, size, MADV_DONTNEED);
}

/* If the client has the file, the pages are removed from the file, so that pages the client touches
 * later are its own. */
static void
drop_arena_pages(const struct gpd_host_arena *arena, uint64_t address, uint64_t size)
{
	if (!arena->punches || range_advise(address, size, MADV_REMOVE))
		drop_pages(address, size);
}

/* Frees the mapping; the addresses stay reserved. */
static void
range_reserve(uint64_t address, uint64_t size)
{
	(void)mmap(gpd_address_to_pointer(address), size, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static uint64_t
registration_end(uint64_t address)
{
	return address / get_registration_size() * get_registration_size() +
	       get_registration_size();
}

uint64_t
gpd_host_arena_get_registration_rest(uint64_t address)
{
	return registration_end(address) - address;
}

bool
gpd_host_arena_shrink(struct gpd_host_arena *arena)
{
	uint64_t last, address;

	if (arena->registered > 0) {
		last = registration_end(arena->address + arena->registered - 1) -
		       get_registration_size();
		address = last > arena->address ? last : arena->address;
		driver_unregister(gpd_address_to_pointer(address));
		drop_arena_pages(arena, address, arena->address + arena->registered - address);
		range_reserve(address, arena->address + arena->registered - address);
		arena->registered = address - arena->address;
	}
	return arena->registered == 0;
}

/* Maps over the session's own reservation, where the worker has nothing else. */
static CUresult
map_pages(uint64_t address, uint64_t size, int fd)
{
	int flags = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	void *got = mmap(gpd_address_to_pointer(address), size, PROT_READ | PROT_WRITE,
			 flags | MAP_FIXED, fd, 0);

	return got == gpd_address_to_pointer(address) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Before the driver touches the pages, which would block launches. On kernels before 5.14 the
 * driver does it. */
static CUresult
pages_populate(uint64_t address, uint64_t size)
{
	int error = range_advise(address, size, MADV_POPULATE_WRITE);

	return !error || error == EINVAL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The device address must be the same; else the driver does not support this. */
static CUresult
range_register(uint64_t address, uint64_t size)
{
	CUdeviceptr device = 0;
	CUresult result = driver_register(gpd_address_to_pointer(address), size);

	if (result != CUDA_SUCCESS)
		return result;
	result = gpd_driver.cuMemHostGetDevicePointer_v2(&device, gpd_address_to_pointer(address),
							 0);
	if (result == CUDA_SUCCESS && device == address)
		return CUDA_SUCCESS;
	driver_unregister(gpd_address_to_pointer(address));
	return result == CUDA_SUCCESS ? CUDA_ERROR_NOT_SUPPORTED : result;
}

static CUresult
register_pages(struct gpd_host_arena *arena)
{
	CUresult result = CUDA_SUCCESS;

	while (result == CUDA_SUCCESS && arena->registered < arena->size) {
		uint64_t at = arena->address + arena->registered;
		uint64_t size =
			gpd_u64_min(registration_end(at) - at, arena->size - arena->registered);

		result = pages_populate(at, size);
		if (result == CUDA_SUCCESS)
			result = range_register(at, size);
		if (result == CUDA_SUCCESS)
			arena->registered += size;
	}
	return result;
}

/* Before the client can get the file. */
static void
shared_arenas_add(struct gpd_host_arena *arena)
{
	pthread_mutex_lock(&arenas.lock);
	DL_APPEND2(arenas.first, arena, prev_shared, next_shared);
	pthread_mutex_unlock(&arenas.lock);
	arena->punches = true;
}

static void
shared_arenas_remove(struct gpd_host_arena *arena)
{
	if (!arena->punches)
		return;
	pthread_mutex_lock(&arenas.lock);
	DL_DELETE2(arenas.first, arena, prev_shared, next_shared);
	pthread_mutex_unlock(&arenas.lock);
	arena->punches = false;
}

void
gpd_host_arena_empty_all(void)
{
	struct gpd_host_arena *arena;

	pthread_mutex_lock(&arenas.lock);
	DL_FOREACH2(arenas.first, arena, next_shared)
	{
		(void)range_advise(arena->address, arena->size, MADV_REMOVE);
	}
	pthread_mutex_unlock(&arenas.lock);
}

static CUresult
arena_map(struct gpd_session *session, struct gpd_host_arena *arena, int fd)
{
	CUresult result = map_pages(arena->address, arena->size, fd);

	if (result == CUDA_SUCCESS)
		result = register_pages(arena);
	if (result == CUDA_SUCCESS && fd >= 0 && gp_conn_pass_fd(session->conn, fd))
		result = CUDA_ERROR_OPERATING_SYSTEM;
	if (result == CUDA_SUCCESS)
		return result;
	while (!gpd_host_arena_shrink(arena))
		;
	drop_arena_pages(arena, arena->address, arena->size);
	range_reserve(arena->address, arena->size);
	shared_arenas_remove(arena);
	return result;
}

/* Creates the file that both ends map. */
static CUresult
arena_map_shared(struct gpd_session *session, struct gpd_host_arena *arena)
{
	CUresult result;
	int fd;

	if (!(gp_conn_caps(session->conn) & GP_CONN_CAP_PASS_FD))
		return CUDA_ERROR_NOT_SUPPORTED;
	fd = gp_sealed_create("gpupool-host", arena->size, true);
	if (fd < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	shared_arenas_add(arena);
	result = arena_map(session, arena, fd);
	(void)close(fd);
	return result;
}

CUresult
gpd_host_arena_create(struct gpd_session *session, struct gpd_host_arena *arena, bool shared)
{
	return shared ? arena_map_shared(session, arena) : arena_map(session, arena, -1);
}

void
gpd_host_arena_free(struct gpd_host_arena *arena)
{
	if (arena->shadow) {
		size_t size = arena->size + gp_run_bitmap_get_size(arena->size);

		drop_pages((uintptr_t)arena->shadow, size);
		(void)munmap(arena->shadow, size);
	}
	shared_arenas_remove(arena);
	free(arena);
}
