/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory faults of kernels. A thread that runs a block sets a scope; a fault at a device address
 * jumps out to it. Other faults are passed on to the previous handler.
 */
#ifndef GS_FAULT_H
#define GS_FAULT_H

#include <setjmp.h>
#include <stdint.h>

struct gs_fault_scope {
	sigjmp_buf jump;
	uint64_t address;
};

/* Installs the handler if another handler is in its place: the host program may have replaced
 * it. */
void gs_fault_catch(void);
/* Sets the calling thread's scope; NULL: none. */
void gs_fault_set_scope(struct gs_fault_scope *scope);

#endif
