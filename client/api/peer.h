/* SPDX-License-Identifier: Apache-2.0 */
/* Which contexts may touch the memory of which (cuCtxEnablePeerAccess).  Any thread. */
#ifndef GPC_PEER_H
#define GPC_PEER_H

struct gpc_context;

/* With either of two contexts goes what was said of both: for struct gpc_context_part. */
void gpc_peer_drop_context(struct gpc_context *context);

#endif /* GPC_PEER_H */
