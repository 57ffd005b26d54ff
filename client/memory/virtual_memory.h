/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management of the application (cuMemAddressReserve, cuMemMap, cuMemSetAccess):
 * maps physical memory (physical_memory.h) at reserved addresses.
 *
 * Reservations belong to no context. Those of up to 1 GiB are in the session's address window;
 * larger ones are outside of the window, at addresses that the daemon chooses and that are free in
 * this process (virtual_address.c). If one place has no addresses, the other is tried.
 *
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note). gpc_virtual_memory_find() takes a lock of its
 * own.
 * Units: bytes.
 */
#ifndef GPC_VIRTUAL_MEMORY_H
#define GPC_VIRTUAL_MEMORY_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_address;
struct gpc_context;

/* A reservation; for virtual_*.c only. */
struct gpc_virtual_address {
	uint64_t base; /* address that the application gets */
	/* start and size of the whole range that is reserved, which may be larger because of the
	 * alignment */
	uint64_t whole, whole_size;
	bool outside_window; /* the range is not in the session's window */
};

/* For virtual_memory.c: reserves `size` bytes of addresses of the context's session and fills in
 * *address; gpc_virtual_address_free() frees them. alignment: a power of two; 0: none. Waits for
 * the daemon if the range is outside of the window. Returns CUDA_SUCCESS; CUDA_ERROR_OUT_OF_MEMORY
 * if no addresses are available; or another error of a call that waits (client/session/call.h).
 * *address is undefined after an error. */
CUresult gpc_virtual_address_reserve(struct gpc_context *context, uint64_t size, uint64_t alignment,
				     struct gpc_virtual_address *address);
/* For virtual_memory.c: frees a reservation in which nothing is mapped. context: of the same
 * session. Does not wait. */
void gpc_virtual_address_free(struct gpc_context *context,
			      const struct gpc_virtual_address *address);

/* Returns whether the application has reserved the address. If so, fills in *found with the
 * accessible memory there; device memory is extended over adjacent accessible mappings. Its kind is
 * GPC_ADDRESS_INVALID if there is none. Otherwise *found is unchanged. */
bool gpc_virtual_memory_find(uint64_t address, struct gpc_address *found);

/* Acquires the lock that serializes calls about physical and virtual memory. It is held during
 * their round trips, so this may block as long. Returns CUDA_SUCCESS with the lock held, or an
 * error of gpc_enter_initialized() (client/context/context.h) without it. */
CUresult gpc_virtual_memory_lock(void);
/* Releases the lock and returns `result`. */
CUresult gpc_virtual_memory_unlock(CUresult result);

#endif /* GPC_VIRTUAL_MEMORY_H */
