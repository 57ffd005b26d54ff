/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credit: device memory that the daemon has granted and that nothing is made of yet.  What is made
 * of it needs no answer, so a program that allocates memory of ever new sizes rarely waits.  There
 * is as much as suits the last allocation and all that is mapped; more is asked for behind the
 * program when a quarter of that is gone.  The daemon has it back with what is kept (memory.h).
 *
 * It is counted in the device (context.h).  Any thread may call.
 */
#ifndef GPC_CREDIT_H
#define GPC_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

struct gpc_context;
struct gpc_device;
struct gpc_session;

/* So many bytes are the caller's, to post what is made of them.  Where there is not as much it
 * waits for the daemon's answer; false: it grants none, and nothing is left here. */
bool gpc_allowance_acquire(struct gpc_context *context, uint64_t size);
/* The same of what there is. */
bool gpc_allowance_try_acquire(struct gpc_context *context, uint64_t size);
/* With what the daemon has answered so far. */
uint64_t gpc_allowance_get_bytes(struct gpc_device *device);
/* Gives all of the session's back, also what is on its way.  By who may wait for the daemon. */
void gpc_allowance_return(const struct gpc_session *session);

#endif /* GPC_CREDIT_H */
