/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of kernels. A thread that runs a block sets a scope; a fault at a device address jumps out
 * to it. Other faults go to the handler that was there before.
 */
#ifndef GS_FAULT_H
#define GS_FAULT_H

#include <setjmp.h>
#include <stdint.h>

struct gs_fault_scope {
	sigjmp_buf jump;
	uint64_t address;
};

/* Installs the handler, unless it is: the host may have put another in its place. */
void gs_fault_catch(void);
/* NULL ends the present scope. */
void gs_fault_set_scope(struct gs_fault_scope *scope);

#endif
