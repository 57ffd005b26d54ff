/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page fault mechanism based on SIGSEGV, for page_faults.h where userfaultfd is not available.
 *
 * SIGSEGV also belongs to the program: a fault that is not served here is passed to the program's
 * handler as the kernel would call it. The library's handler only hands the address to a thread of
 * the library and waits, so it may interrupt any code and needs little stack.
 * Threads: any.
 */
#ifndef GPC_PAGE_SIGNAL_H
#define GPC_PAGE_SIGNAL_H

#include "base/status.h"

#include <stdint.h>

/* Installs the handler; further calls have no effect. Returns 0 or -errno. */
GP_MUST_CHECK int gpc_page_signal_start(void);

/* Implement gpc_page_faults_cover() and gpc_page_faults_reinstall(). No effect before the start. */
void gpc_page_signal_cover(uint64_t base, uint64_t size);
void gpc_page_signal_reinstall(void);

/* Disables serving in the child of a fork. */
void gpc_page_signal_forked(void);

#endif /* GPC_PAGE_SIGNAL_H */
