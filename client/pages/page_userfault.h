/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory by userfaultfd: the way of page_faults.h that leaves SIGSEGV to the program.
 *
 * The program may close the descriptor, and the kernel would then resolve faults with bytes that
 * are not the newest.  So a thread that reads the faults has a table of descriptors of its own,
 * which keeps the descriptor open; where the program has closed its number, that thread does what
 * the descriptor is needed for.
 *
 * Errors: -errno.
 * Units: bytes; whole pages.
 * Threads: any, but no handler of a signal.
 */
#ifndef GPC_PAGE_USERFAULT_H
#define GPC_PAGE_USERFAULT_H

#include "client/pages/page_faults.h"

/* A fault of this thread; gpc_page_userfault_refuse(), or what maps the page, ends its wait. */
typedef void gpc_page_userfault_report(uint64_t address, enum gpc_page_access access, int thread);

/* Once for the process.  *in_kernel_p: faults within system calls are reported, too. */
GP_MUST_CHECK int gpc_page_userfault_start(gpc_page_userfault_report *report, bool *in_kernel_p);

/* The program's mapping of memory; gp_userfault_*() of base/userfault.h. */
GP_MUST_CHECK int gpc_page_userfault_register(uint64_t base, uint64_t size);
GP_MUST_CHECK int gpc_page_userfault_unregister(uint64_t base, uint64_t size);
GP_MUST_CHECK int gpc_page_userfault_map(uint64_t base, uint64_t size);
GP_MUST_CHECK int gpc_page_userfault_map_protected(uint64_t base, uint64_t size, const void *bytes);
GP_MUST_CHECK int gpc_page_userfault_protect(uint64_t base, uint64_t size, bool is_writable);

/* The page becomes inaccessible, so that its thread gets SIGSEGV, or EFAULT of a system call; until
 * it is restored.  by_reader: of the thread that reports. */
void gpc_page_userfault_refuse(uint64_t address, bool by_reader);
/* Whether a page is refused; restores all; drops those of [base, base + size). */
bool gpc_page_userfault_has_refused(void);
void gpc_page_userfault_restore(void);
void gpc_page_userfault_drop_refused(uint64_t base, uint64_t size);

/* The child of a fork has neither thread nor descriptor. */
void gpc_page_userfault_forked(void);

#endif /* GPC_PAGE_USERFAULT_H */
