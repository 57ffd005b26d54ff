/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page fault mechanism based on userfaultfd (base/userfault.h), for page_faults.h; it leaves
 * SIGSEGV to the program.
 *
 * If the program closes the descriptor, the kernel would resolve faults with stale data. So the
 * reader, the thread that reads the faults, has a descriptor table of its own, in which the
 * descriptor stays open. A command is an operation on the descriptor. Threads execute their
 * commands themselves; once the program has closed its descriptor, the reader executes them while
 * the threads wait.
 *
 * Ownership: descriptor and reader exist until the process ends.
 * Threads: any, but not in a signal handler.
 * Errors: functions that return an int return 0 or -errno.
 * Units: bytes; multiples of the page size.
 */
#ifndef GPC_PAGE_USERFAULT_H
#define GPC_PAGE_USERFAULT_H

#include "client/pages/page_faults.h"

/* Type of the function that handles a fault of a thread. Called by the reader; must not wait.
 * thread: its thread ID. The faulting thread waits until the page is mapped or
 * gpc_page_userfault_refuse() is called. */
typedef void gpc_page_userfault_report(uint64_t address, enum gpc_page_access access, int thread);

/* Opens the descriptor and starts the reader. Called by page_faults.c, at most once successfully.
 * Sets *in_kernel_p to whether faults within system calls are reported, too; it is undefined after
 * a failure. */
GP_MUST_CHECK int gpc_page_userfault_start(gpc_page_userfault_report *reports, bool *in_kernel_p);

/* Commands, possible after a successful gpc_page_userfault_start(). Each calls the function of
 * base/userfault.h with the same name, whose errors it returns, and may wait for the reader. */

/* Reports later faults in the range. */
GP_MUST_CHECK int gpc_page_userfault_register(uint64_t base, uint64_t size);
/* Lets the kernel resolve faults in the range by itself again. */
GP_MUST_CHECK int gpc_page_userfault_unregister(uint64_t base, uint64_t size);
/* Maps existing pages of the memory, writable, and wakes the threads that wait for them. Returns
 * -EFAULT if a page does not exist yet. */
GP_MUST_CHECK int gpc_page_userfault_map(uint64_t base, uint64_t size);
/* Does the same, but maps the pages write-protected. bytes: address of the same pages in the
 * backing (page_memory.h). Returns 1 if the pages are writable instead, because one of them was
 * written during the call. */
GP_MUST_CHECK int gpc_page_userfault_map_protected(uint64_t base, uint64_t size, const void *bytes);
/* Clears write protection of the range if is_writable is set, otherwise sets it. */
GP_MUST_CHECK int gpc_page_userfault_protect(uint64_t base, uint64_t size, bool is_writable);

/* Refuses a fault at the address: makes its page inaccessible and wakes the faulting thread, which
 * then gets SIGSEGV, or EFAULT from a system call. by_reader: true if called by the reader. The
 * page stays inaccessible until gpc_page_userfault_restore(). At most 16 refused pages are recorded
 * at a time; others stay inaccessible. */
void gpc_page_userfault_refuse(uint64_t address, bool by_reader);
/* Returns whether any refused page is recorded. */
bool gpc_page_userfault_has_refused(void);
/* Makes all recorded refused pages accessible again, so that later faults there are reported, and
 * drops the records. */
void gpc_page_userfault_restore(void);
/* Drops the records of refused pages in [base, base + size), which is about to be unmapped. */
void gpc_page_userfault_drop_refused(uint64_t base, uint64_t size);

/* Called in the child of a fork, which has no reader: closes the inherited descriptor. The child
 * must not call other functions of this header afterwards: they would wait for the reader for
 * ever. */
void gpc_page_userfault_forked(void);

#endif /* GPC_PAGE_USERFAULT_H */
