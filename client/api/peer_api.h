/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer access between contexts (cuCtxEnablePeerAccess): the list of pairs for which the program has
 * enabled it.
 *
 * Ownership: the list is static and refers to contexts only until they are destroyed.
 * Threads: any thread may call.
 */
#ifndef GPC_PEER_API_H
#define GPC_PEER_API_H

struct gpc_context;

/* Removes all peer access from and to a context that is being destroyed (hook of struct
 * gpc_context_part). */
void gpc_peer_drop_context(struct gpc_context *context);

#endif /* GPC_PEER_API_H */
