/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPC_CONTEXT_PARTS_H
#define GPC_CONTEXT_PARTS_H

/*
 * Registers the hooks of the other modules with the context module (client/context/context.h). By
 * these hooks a module prepares, leaves, unloads and frees its objects of a context.
 *
 * Calls gpc_context_set_parts() with a constant table; the order of that table is the order in
 * which the hooks run.
 *
 * Threads: called once, while the library is loaded (and by tests), before any context exists.
 */
void gpc_context_parts_set(void);

#endif /* GPC_CONTEXT_PARTS_H */
