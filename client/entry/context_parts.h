/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table of the parts of a context's state (struct gpc_context_part, client/context/context.h): the
 * only place that knows all of them and their order.
 */
#ifndef GPC_CONTEXT_PARTS_H
#define GPC_CONTEXT_PARTS_H

/* Registers the table by gpc_context_set_parts(). Called once, while the library is loaded (and by
 * tests), before any context exists. */
void gpc_context_parts_set(void);

#endif /* GPC_CONTEXT_PARTS_H */
