/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handler of memory faults in kernels. A thread that runs a block sets a scope; a fault of this
 * thread at a device address jumps to it with siglongjmp(). Other faults are passed on to the
 * previous handlers.
 *
 * Threads: any; each thread has its own scope.
 */
#ifndef GS_FAULT_H
#define GS_FAULT_H

#include <setjmp.h>
#include <stdint.h>

/* Destination of a fault: `jump` is set by sigsetjmp(), `address` receives the address of the
 * access. */
struct gs_fault_scope {
	sigjmp_buf jump;
	uint64_t address;
};

/* Installs the SIGSEGV and SIGBUS handlers if other handlers are in their place, because the host
 * program may have replaced them. */
void gs_fault_catch(void);
/* Sets the calling thread's scope, which must stay valid until the next call. NULL: no scope, so
 * all faults are passed on. */
void gs_fault_set_scope(struct gs_fault_scope *scope);

#endif
