/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wrapper of userfaultfd(2) for shared memory that is mapped twice: faults at one mapping are
 * reported to a descriptor and resolved with the pages of the other mapping.
 *
 * Needs Linux 5.19 (minor faults and write protection of shared memory). Faults of user-mode
 * instructions need no privilege; faults within system calls are also reported where the kernel
 * allows it (CAP_SYS_PTRACE, /dev/userfaultfd, vm.unprivileged_userfaultfd).
 *
 * Ownership: the caller closes the descriptor of gp_userfault_open(), which also unregisters its
 * ranges.
 * Threads: any. gp_userfault_read() waits. gp_userfault_map(), gp_userfault_map_protected() and
 * gp_userfault_protect() poll while another thread moves a registered mapping with mremap(), until
 * a thread has read the event of the move.
 * Errors: functions without another comment return 0 or a negative errno. If a function that maps
 * or protects fails, a part of the range may have changed.
 * Units: bytes; addresses and sizes are multiples of the page size.
 */
#ifndef GP_USERFAULT_H
#define GP_USERFAULT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A page fault. The faulting thread waits in the kernel until its page is mapped or unprotected,
 * its range is unregistered, or gp_userfault_wake() is called. */
struct gp_userfault_event {
	uint64_t address; /* beginning of the page */
	int thread;       /* ID of the faulting thread, as gettid() returns it */
	bool is_write;    /* a write, also to a page that is mapped write-protected */
};
/* Capacity of the array that gp_userfault_read() fills. */
#define GP_USERFAULT_EVENTS 16

/* Returns a descriptor (blocking, close-on-exec), which the caller closes; or a negative errno,
 * such as -ENOSYS, -EPERM or -EINVAL if the kernel lacks userfaultfd, the permission or a feature.
 * *in_kernel_p is set to whether faults within system calls are reported; it is undefined after a
 * failure. */
GP_MUST_CHECK int gp_userfault_open(bool *in_kernel_p);

/* Reports all later faults in [base, base + size) of shared memory: accesses to pages that are not
 * mapped, even if the memory object does not have them yet, and writes to protected pages. Existing
 * mappings stay. */
GP_MUST_CHECK int gp_userfault_register(int fd, uint64_t base, uint64_t size);
/* Reports faults in a range of private memory, only at pages that do not exist yet. */
GP_MUST_CHECK int gp_userfault_register_missing(int fd, uint64_t base, uint64_t size);
/* Lets the kernel resolve faults in the range by itself again, and wakes the threads that wait
 * there. */
GP_MUST_CHECK int gp_userfault_unregister(int fd, uint64_t base, uint64_t size);

/* Maps the existing pages of the memory object and wakes the threads that wait for them; pages that
 * are already mapped stay. Returns 0, -EFAULT if a page does not exist in the memory object, or
 * another negative errno. */
GP_MUST_CHECK int gp_userfault_map(int fd, uint64_t base, uint64_t size);
/* Like gp_userfault_map(), but maps the pages write-protected. bytes: the other mapping's address
 * of the same pages. Returns 0; 1 if a page was written during the call, and then all pages of the
 * range are mapped writable; or a negative errno. 1 is only possible before Linux 6.4. */
GP_MUST_CHECK int gp_userfault_map_protected(int fd, uint64_t base, uint64_t size,
					     const void *bytes);
/* Clears (is_writable) or sets write protection of the range, for pages that are mapped and for
 * pages that the program maps later. Clearing it wakes the threads that wait to write. */
GP_MUST_CHECK int gp_userfault_protect(int fd, uint64_t base, uint64_t size, bool is_writable);
/* Wakes the threads that wait for pages of the range, so that they repeat the access. An access to
 * a page that is still not mapped is reported again. */
int gp_userfault_wake(int fd, uint64_t base, uint64_t size);
/* For tests, after gp_userfault_open(): makes gp_userfault_map_protected() of the whole process map
 * pages as before Linux 6.4, where they are writable for a moment. */
void gp_userfault_set_emulate_old(bool is_old);
/* Maps zero pages into a range of private memory (gp_userfault_register_missing()) and wakes the
 * threads that wait for them. Returns 0; -EEXIST: a page is already mapped; -EAGAIN: another thread
 * moves a registered mapping; or another negative errno. */
int gp_userfault_map_zeros(int fd, uint64_t base, uint64_t size);

/* Waits without limit until a page fault is reported. Stores at most GP_USERFAULT_EVENTS faults in
 * events, which has that capacity, and returns their number, which is 0 if only another event was
 * read (a mapping was moved). Returns -EINTR or another negative errno on failure. */
GP_MUST_CHECK int gp_userfault_read(int fd, struct gp_userfault_event *events);

#endif /* GP_USERFAULT_H */
