/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wrapper of userfaultfd(2) for shared memory that is mapped twice: faults at one mapping are
 * reported to a descriptor and resolved with the pages of the other mapping.
 *
 * Needs Linux 5.19 (minor faults and write protection of shared memory). Faults of user-mode
 * instructions need no privilege; faults within system calls are also reported where the kernel
 * allows it (CAP_SYS_PTRACE, /dev/userfaultfd, vm.unprivileged_userfaultfd).
 *
 * Errors: negative errno.
 * Units: bytes; addresses and sizes are multiples of the page size.
 * Threads: any.
 */
#ifndef GP_USERFAULT_H
#define GP_USERFAULT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A page fault. The faulting thread waits until its page is mapped or it is woken. */
struct gp_userfault_event {
	uint64_t address;
	int thread; /* its thread ID, as gettid() returns it */
	bool is_write;
};
#define GP_USERFAULT_EVENTS 16

/* Returns a descriptor (close-on-exec), which the caller closes. *in_kernel_p: whether faults
 * within system calls are reported. */
GP_MUST_CHECK int gp_userfault_open(bool *in_kernel_p);

/* Reports all later faults in [base, base + size), also of pages that the memory object does not
 * have yet. Existing mappings stay. */
GP_MUST_CHECK int gp_userfault_register(int fd, uint64_t base, uint64_t size);
/* The same for private memory: only faults at pages that do not exist yet. */
GP_MUST_CHECK int gp_userfault_register_missing(int fd, uint64_t base, uint64_t size);
/* Lets the kernel resolve faults in the range by itself again. */
GP_MUST_CHECK int gp_userfault_unregister(int fd, uint64_t base, uint64_t size);

/* Maps the existing pages of the memory object and wakes the threads that wait for them; pages that
 * are already mapped stay. -EFAULT: a page does not exist. */
GP_MUST_CHECK int gp_userfault_map(int fd, uint64_t base, uint64_t size);
/* The same, but maps the pages write-protected. bytes: the same pages in the other mapping. Returns
 * 1 if the pages are writable instead, because one of them was written during the call. */
GP_MUST_CHECK int gp_userfault_map_protected(int fd, uint64_t base, uint64_t size,
					     const void *bytes);
/* Sets or clears write protection of the range, for pages that are mapped and for those mapped
 * later. */
GP_MUST_CHECK int gp_userfault_protect(int fd, uint64_t base, uint64_t size, bool is_writable);
/* Wakes the threads that wait for pages of the range, so that they repeat the access. */
int gp_userfault_wake(int fd, uint64_t base, uint64_t size);
/* For tests: maps pages as on kernels before Linux 6.4, where they are writable for a moment. */
void gp_userfault_set_emulate_old(bool is_old);
/* Maps zero pages into private memory. */
int gp_userfault_map_zeros(int fd, uint64_t base, uint64_t size);

/* Waits for page faults and stores them in events[GP_USERFAULT_EVENTS]; returns their number. */
GP_MUST_CHECK int gp_userfault_read(int fd, struct gp_userfault_event *events);

#endif /* GP_USERFAULT_H */
