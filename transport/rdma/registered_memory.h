/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registry of memory whose owner guarantees that it stays mapped, for backends that transfer bulk
 * directly between memories. registered_memory.c also implements gp_memory_register() and
 * gp_memory_unregister() of transport.h.
 *
 * Ownership: the registry owns the registrations of its ranges with RDMA devices (struct ibv_mr);
 * the memory stays its owner's.
 * Threads: any. A successful lookup holds the registry's lock until gp_memory_release() by the same
 * thread.
 */
#ifndef GP_REGISTERED_MEMORY_H
#define GP_REGISTERED_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gp_memory_registrations;

/* A registered range. */
struct gp_memory {
	uint8_t *base;
	size_t size;
	/* registrations by the backend, which sets this between gp_memory_acquire() and
	 * gp_memory_release(); NULL: none yet. Freed by gp_memory_unregister(), after the lock is
	 * released. */
	struct gp_memory_registrations *registrations;
	/* The range was added by gp_memory_register_fixed(): it has only the registrations that
	 * were passed there. */
	bool has_fixed_registrations;
};

/* Adds a range and its registrations, for gp_conn_register_range() (transport.h); undone by
 * gp_memory_unregister(). Returns true, or false if it overlaps another range or memory is
 * exhausted; the registrations then remain the caller's. */
bool gp_memory_register_fixed(void *base, size_t size,
			      struct gp_memory_registrations *registrations);

/* Returns the range that contains all of [base, base + size), borrowed and with the registry
 * locked. NULL: there is none, and nothing is locked. */
struct gp_memory *gp_memory_acquire(const void *base, size_t size);
/* Unlocks the registry after a successful gp_memory_acquire(); the returned range must not be used
 * afterwards. */
void gp_memory_release(void);

/* Implemented by the backend (rdma_device.c; rdma_absent.c in a build without RDMA): ends the
 * registrations of a range and frees the registrations. Called without the registry's lock. */
void gp_memory_destroy_registrations(struct gp_memory_registrations *registrations);

#endif /* GP_REGISTERED_MEMORY_H */
