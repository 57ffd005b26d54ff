/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory by SIGSEGV: the way of page_faults.h where userfaultfd is not available.
 *
 * SIGSEGV is the program's as well: what is not served here goes to the handler that the program
 * has, as the kernel would call it.  The handler itself only hands the address to a thread of the
 * library and waits, so it may interrupt anything and needs no stack to speak of.
 *
 * Threads: any.
 */
#ifndef GPC_PAGE_SIGNAL_H
#define GPC_PAGE_SIGNAL_H

#include "base/status.h"

#include <stdint.h>

/* Installs the handler; again: nothing happens.  0 or -errno. */
GP_MUST_CHECK int gpc_page_signal_start(void);

/* As gpc_page_faults_cover() and gpc_page_faults_reinstall(); nothing before the start. */
void gpc_page_signal_cover(uint64_t base, uint64_t size);
void gpc_page_signal_reinstall(void);

/* The child of a fork serves no fault. */
void gpc_page_signal_forked(void);

#endif /* GPC_PAGE_SIGNAL_H */
