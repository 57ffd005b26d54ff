/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA driver API: copies between contexts (cuMemcpyPeer*) and peer access.
 *
 * An address identifies its memory, so the contexts that the program names need only exist. A
 * synchronous copy is also ordered after the earlier work of both contexts and before their later
 * work.
 */
#include "client/api/peer_api.h"

#include "base/lock.h"
#include "client/context/context.h"
#include "client/memory/peer_access.h"
#include "client/stream/stream.h"
#include "gpc_calls.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static CUresult
enter_peers(CUcontext a, CUcontext b)
{
	struct gpc_context *context;
	CUresult result = gpc_enter(&context);

	if (result == CUDA_SUCCESS)
		result = gpc_context_lookup(a, &context);
	return result == CUDA_SUCCESS ? gpc_context_lookup(b, &context) : result;
}

/* Waits for all work of a context, unless it is the current one: there the stream of the copy
 * provides the order. */
static CUresult
context_await_other(CUcontext context)
{
	CUcontext current;
	CUresult result = gpc_cuCtxGetCurrent(&current);

	if (result != CUDA_SUCCESS || context == current)
		return result;
	return gpc_cuCtxSynchronize_v2(context);
}

static CUresult
contexts_await_others(CUcontext a, CUcontext b)
{
	CUresult result = context_await_other(a);

	return result == CUDA_SUCCESS && a != b ? context_await_other(b) : result;
}

/* The copy must be complete before later work of the other contexts starts. */
static CUresult
copy_sync_for_others(CUcontext a, CUcontext b)
{
	CUcontext current;
	CUresult result = gpc_cuCtxGetCurrent(&current);

	if (result != CUDA_SUCCESS || (a == current && b == current))
		return result;
	return gpc_cuStreamSynchronize(CU_STREAM_LEGACY);
}

CUresult
gpc_cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
		 CUcontext srcContext, size_t ByteCount)
{
	CUresult result = enter_peers(dstContext, srcContext);

	if (result == CUDA_SUCCESS)
		result = contexts_await_others(dstContext, srcContext);
	if (result == CUDA_SUCCESS)
		result = gpc_cuMemcpyDtoD_v2(dstDevice, srcDevice, ByteCount);
	return result == CUDA_SUCCESS ? copy_sync_for_others(dstContext, srcContext) : result;
}

CUresult
gpc_cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
		      CUcontext srcContext, size_t ByteCount, CUstream hStream)
{
	CUresult result = enter_peers(dstContext, srcContext);

	return result == CUDA_SUCCESS
		       ? gpc_cuMemcpyDtoDAsync_v2(dstDevice, srcDevice, ByteCount, hStream)
		       : result;
}

/* Returns the context of one side. The context of an array is that of the array itself. */
static CUcontext
side_get_context(CUmemorytype type, CUcontext named, CUcontext other)
{
	return type == CU_MEMORYTYPE_DEVICE ? named : other;
}

_Static_assert(sizeof(CUDA_MEMCPY3D) == sizeof(CUDA_MEMCPY3D_PEER) &&
		       offsetof(CUDA_MEMCPY3D, reserved0) ==
			       offsetof(CUDA_MEMCPY3D_PEER, srcContext) &&
		       offsetof(CUDA_MEMCPY3D, reserved1) ==
			       offsetof(CUDA_MEMCPY3D_PEER, dstContext),
	       "the same members, apart from the contexts");

static CUresult
peer_to_memcpy3d(const CUDA_MEMCPY3D_PEER *peer, CUDA_MEMCPY3D *copy, CUcontext contexts[2])
{
	CUcontext current;
	CUresult result = peer ? gpc_cuCtxGetCurrent(&current) : CUDA_ERROR_INVALID_VALUE;

	if (result != CUDA_SUCCESS)
		return result;
	contexts[0] = side_get_context(peer->dstMemoryType, peer->dstContext, current);
	contexts[1] = side_get_context(peer->srcMemoryType, peer->srcContext, current);
	memcpy(copy, peer, sizeof(*copy));
	copy->reserved0 = copy->reserved1 = NULL;
	return enter_peers(contexts[0], contexts[1]);
}

CUresult
gpc_cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy)
{
	CUDA_MEMCPY3D copy;
	CUcontext contexts[2];
	CUresult result = peer_to_memcpy3d(pCopy, &copy, contexts);

	if (result == CUDA_SUCCESS)
		result = contexts_await_others(contexts[0], contexts[1]);
	if (result == CUDA_SUCCESS)
		result = gpc_cuMemcpy3D_v2(&copy);
	return result == CUDA_SUCCESS ? copy_sync_for_others(contexts[0], contexts[1]) : result;
}

CUresult
gpc_cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
	CUDA_MEMCPY3D copy;
	CUcontext contexts[2];
	CUresult result = peer_to_memcpy3d(pCopy, &copy, contexts);

	return result == CUDA_SUCCESS ? gpc_cuMemcpy3DAsync_v2(&copy, hStream) : result;
}

/* The first context may access the memory of the second. */
struct pair {
	struct pair *next;
	const struct gpc_context *context, *peer;
};

static pthread_mutex_t pairs_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pair *pairs GP_GUARDED_BY(pairs_lock);

static bool
pair_exists(const struct gpc_context *context, const struct gpc_context *peer) GP_LOCKED(pairs_lock)
{
	const struct pair *pair = pairs;

	while (pair && (pair->context != context || pair->peer != peer))
		pair = pair->next;
	return pair != NULL;
}

static CUresult
pair_add(const struct gpc_context *context, const struct gpc_context *peer)
{
	struct pair *pair = calloc(1, sizeof(*pair));
	bool enabled;

	if (!pair)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pair->context = context;
	pair->peer = peer;
	(void)pthread_mutex_lock(&pairs_lock);
	enabled = pair_exists(context, peer);
	if (!enabled)
		LL_PREPEND(pairs, pair);
	(void)pthread_mutex_unlock(&pairs_lock);
	if (enabled)
		free(pair);
	return enabled ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_SUCCESS;
}

/* Removes the pairs of these contexts (NULL: any context). Returns whether there were any. */
static bool
pair_drop(const struct gpc_context *context, const struct gpc_context *peer)
{
	struct pair *pair, *next;
	bool dropped = false;

	(void)pthread_mutex_lock(&pairs_lock);
	LL_FOREACH_SAFE(pairs, pair, next)
	{
		if ((context && pair->context != context) || (peer && pair->peer != peer))
			continue;
		LL_DELETE(pairs, pair);
		free(pair);
		dropped = true;
	}
	(void)pthread_mutex_unlock(&pairs_lock);
	return dropped;
}

void
gpc_peer_drop_context(struct gpc_context *context)
{
	(void)pair_drop(context, NULL);
	(void)pair_drop(NULL, context);
}

static CUresult
pair_enter(CUcontext handle, struct gpc_context **context_p, struct gpc_context **peer_p)
{
	CUresult result = gpc_enter(context_p);

	return result == CUDA_SUCCESS ? gpc_context_lookup(handle, peer_p) : result;
}

CUresult
gpc_cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
	struct gpc_context *context, *peer;
	CUresult result = pair_enter(peerContext, &context, &peer);

	if (result == CUDA_SUCCESS && Flags)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS && !gpc_peer_access_is_possible(context->device, peer->device))
		result = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	if (result == CUDA_SUCCESS)
		result = gpc_peer_access_enable(context->device, peer->device);
	return result == CUDA_SUCCESS ? pair_add(context, peer) : result;
}

CUresult
gpc_cuCtxDisablePeerAccess(CUcontext peerContext)
{
	struct gpc_context *context, *peer;
	CUresult result = pair_enter(peerContext, &context, &peer);

	if (result == CUDA_SUCCESS && !pair_drop(context, peer))
		result = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	return result;
}

/* Reports no native atomic operations: the daemon's driver is not queried for them. */
static CUresult
atomic_capabilities_clear(unsigned int *capabilities, const CUatomicOperation *operations,
			  unsigned int count)
{
	if (!capabilities || !operations || count == 0)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < count; i++) {
		if ((unsigned int)operations[i] >= CU_ATOMIC_OPERATION_MAX)
			return CUDA_ERROR_INVALID_VALUE;
	}
	memset(capabilities, 0, count * sizeof(capabilities[0]));
	return CUDA_SUCCESS;
}

CUresult
gpc_cuDeviceGetHostAtomicCapabilities(unsigned int *capabilities,
				      const CUatomicOperation *operations, unsigned int count,
				      CUdevice dev)
{
	struct gpc_device *device;
	CUresult result = gpc_device_enter(dev, &device);

	return result == CUDA_SUCCESS ? atomic_capabilities_clear(capabilities, operations, count)
				      : result;
}

CUresult
gpc_cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities,
				     const CUatomicOperation *operations, unsigned int count,
				     CUdevice srcDevice, CUdevice dstDevice)
{
	struct gpc_device *device;
	CUresult result = gpc_device_enter(srcDevice, &device);

	if (result == CUDA_SUCCESS)
		result = gpc_device_enter(dstDevice, &device);
	if (result == CUDA_SUCCESS && srcDevice == dstDevice)
		result = CUDA_ERROR_INVALID_DEVICE;
	return result == CUDA_SUCCESS ? atomic_capabilities_clear(capabilities, operations, count)
				      : result;
}
