/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer access between contexts (cuCtxEnablePeerAccess): the list of pairs for which the program has
 * enabled it.
 *
 * Ownership: the list is static. It contains pointers to contexts, which gpc_peer_drop_context()
 * removes before a context is freed.
 * Threads: any thread may call; the list has a lock of its own, which the function acquires.
 */
#ifndef GPC_PEER_API_H
#define GPC_PEER_API_H

struct gpc_context;

/* Removes all peer access from and to a context that is being destroyed. Called before the context
 * is freed, as a hook of struct gpc_context_part. */
void gpc_peer_drop_context(struct gpc_context *context);

#endif /* GPC_PEER_API_H */
