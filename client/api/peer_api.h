/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer access between contexts (cuCtxEnablePeerAccess): the list of pairs for which the program has
 * enabled it.
 *
 * Ownership: the list is static. It points to contexts; gpc_peer_drop_context() removes a context
 * before it is destroyed or reset.
 * Threads: any thread may call; the list has its own lock.
 */
#ifndef GPC_PEER_API_H
#define GPC_PEER_API_H

struct gpc_context;

/* Removes all pairs that contain the context. Called as leave() of struct gpc_context_part
 * (client/context/context.h), before the context is destroyed or reset. */
void gpc_peer_drop_context(struct gpc_context *context);

#endif /* GPC_PEER_API_H */
