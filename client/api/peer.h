/* SPDX-License-Identifier: Apache-2.0 */
/* Which contexts may touch the memory of which (cuCtxEnablePeerAccess).  Any thread. */
#ifndef GPC_PEER_H
#define GPC_PEER_H

#include <cuda.h>

struct gpc_context;

/* The contexts of a copy between two have to exist; a copy of a box becomes one without them. */
CUresult gpc_peers_enter(CUcontext a, CUcontext b);
CUresult gpc_peers_plain_copy(const CUDA_MEMCPY3D_PEER *peer, CUDA_MEMCPY3D *copy,
			      CUcontext contexts[2]);

/* With either of two contexts goes what was said of both: for struct gpc_context_part. */
void gpc_peer_forget_context(struct gpc_context *context);

#endif /* GPC_PEER_H */
