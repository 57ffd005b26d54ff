/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page fault mechanism based on SIGSEGV, for page_faults.h where userfaultfd is not available.
 *
 * SIGSEGV also belongs to the program: a fault that is not served here is passed to the program's
 * handler as the kernel would call it. The library's handler only passes the address to a thread of
 * the library and waits (gpc_page_faults_request()), so it may interrupt any code and needs little
 * stack.
 *
 * Threads: any, but not in a signal handler.
 */
#ifndef GPC_PAGE_SIGNAL_H
#define GPC_PAGE_SIGNAL_H

#include "base/status.h"

#include <stdint.h>

/* Installs the handler of SIGSEGV, unless it is installed, and enables serving. Returns 0 or
 * -errno. */
GP_MUST_CHECK int gpc_page_signal_start(void);

/* Implements gpc_page_faults_cover(): faults in [base, base + size) are served, others passed to
 * the program at once. At most 16 areas are stored; ranges within 4 GiB of one another are merged.
 * Cannot be undone. The range is recorded even if gpc_page_signal_start() was not called. */
void gpc_page_signal_cover(uint64_t base, uint64_t size);
/* Implements gpc_page_faults_reinstall(). Has no effect before gpc_page_signal_start(). */
void gpc_page_signal_reinstall(void);

/* Disables serving in the child of a fork; faults are then passed to the program's handler. */
void gpc_page_signal_forked(void);

#endif /* GPC_PAGE_SIGNAL_H */
