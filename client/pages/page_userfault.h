/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page fault mechanism based on userfaultfd, for page_faults.h; it leaves SIGSEGV to the program.
 *
 * If the program closes the descriptor, the kernel would resolve faults with stale data. So the
 * thread that reads the faults has a descriptor table of its own, which keeps the descriptor open;
 * once the program has closed its descriptor, that thread also executes the commands of other
 * threads.
 *
 * Errors: -errno.
 * Units: bytes; multiples of the page size.
 * Threads: any, but not in a signal handler.
 */
#ifndef GPC_PAGE_USERFAULT_H
#define GPC_PAGE_USERFAULT_H

#include "client/pages/page_faults.h"

/* Reports a fault of a thread. Its wait ends when the page is mapped or gpc_page_userfault_refuse()
 * is called. */
typedef void gpc_page_userfault_report(uint64_t address, enum gpc_page_access access, int thread);

/* Opens the descriptor and starts the reader; called once per process. *in_kernel_p is set to
 * whether faults within system calls are reported too. */
GP_MUST_CHECK int gpc_page_userfault_start(gpc_page_userfault_report *report, bool *in_kernel_p);

/* Execute gp_userfault_*() of base/userfault.h for the program's mapping. */
GP_MUST_CHECK int gpc_page_userfault_register(uint64_t base, uint64_t size);
GP_MUST_CHECK int gpc_page_userfault_unregister(uint64_t base, uint64_t size);
GP_MUST_CHECK int gpc_page_userfault_map(uint64_t base, uint64_t size);
GP_MUST_CHECK int gpc_page_userfault_map_protected(uint64_t base, uint64_t size, const void *bytes);
GP_MUST_CHECK int gpc_page_userfault_protect(uint64_t base, uint64_t size, bool is_writable);

/* Makes the page inaccessible, so that its thread gets SIGSEGV, or EFAULT from a system call, until
 * the page is restored. by_reader: called by the thread that reports faults. */
void gpc_page_userfault_refuse(uint64_t address, bool by_reader);
/* Return whether any page is refused; restore all refused pages; and drop the records of those in
 * [base, base + size). */
bool gpc_page_userfault_has_refused(void);
void gpc_page_userfault_restore(void);
void gpc_page_userfault_drop_refused(uint64_t base, uint64_t size);

/* Called in the child of a fork, which has neither the thread nor the descriptor. */
void gpc_page_userfault_forked(void);

#endif /* GPC_PAGE_USERFAULT_H */
