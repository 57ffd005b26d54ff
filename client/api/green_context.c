/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: green contexts. The daemon's driver splits the multiprocessors. A CUdevResource
 * stores how it was split, by which the daemon repeats the split. */
#include "client/api/green_context.h"

#include "base/lock.h"
#include "client/base/query_cache.h"
#include "client/context/device.h"
#include "client/context/object.h"
#include "client/module/launch_shape.h"
#include "client/session/session.h"
#include "client/stream/event.h"
#include "client/stream/stream.h"
#include "gpc_calls.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0x67704752u
#define GROUPS_MAX 128u
#define REST UINT32_MAX
#define FLAGS_KNOWN                                                                                \
	(CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING |                                         \
	 CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE)

/* Stored in the driver's private part of a CUdevResource. */
struct origin {
	uint32_t magic;
	int32_t device;  /* ordinal in the application */
	uint32_t source; /* wire ID of a green context; 0: the multiprocessors of the session */
	uint32_t resource_split; /* number of the split that made it; 0: it is the whole source */
	uint32_t flags, wanted, groups;
	uint32_t group; /* index of the group, or REST */
};

_Static_assert(sizeof(struct origin) <= sizeof(((CUdevResource *)NULL)->_internal_padding),
	       "a resource has room for its origin");

/* A resource descriptor. CUDA has no call that destroys one, so equal descriptors share one object,
 * which is never freed. */
struct desc {
	struct desc *next;
	struct origin of;
	uint64_t picks[GROUPS_MAX / 64];
	uint32_t rest;
};

static pthread_mutex_t descs_lock = PTHREAD_MUTEX_INITIALIZER;
static struct desc *descs GP_GUARDED_BY(descs_lock);

static void
resource_fill(CUdevResource *resource, const struct origin *origin, unsigned int count,
	      unsigned int least, unsigned int alignment)
{
	memset(resource, 0, sizeof(*resource));
	resource->type = CU_DEV_RESOURCE_TYPE_SM;
	memcpy(resource->_internal_padding, origin, sizeof(*origin));
	resource->sm.smCount = count;
	resource->sm.minSmPartitionSize = least;
	resource->sm.smCoscheduledAlignment = alignment;
}

static CUresult
resource_get_origin(const CUdevResource *resource, struct origin *origin)
{
	if (resource->type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	memcpy(origin, resource->_internal_padding, sizeof(*origin));
	return origin->magic == MAGIC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult
gpc_green_context_enter(CUgreenCtx hCtx, struct gpc_green_context **green_p)
{
	CUresult result = gpc_enter_initialized();

	*green_p = gpc_handle_from_token(GPC_KIND_GREEN, hCtx);
	if (result != CUDA_SUCCESS)
		return result;
	return *green_p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

struct query {
	const struct gpc_device *device;
	uint64_t green;    /* number of a green context, never reused; 0: the session */
	uint64_t revision; /* of the session */
	uint32_t call;     /* 0: the reply is not cached */
	uint32_t flags, wanted, groups;
};

static struct gpc_query_cache cache = GPC_QUERY_CACHE(64);

/* The resources of a green context are constant. Those of the session change with its share of the
 * GPU, which the daemon then reports. */
static bool
query_find(struct query *query, void *reply, size_t size)
{
	if (query->green == 0 && !gpc_share_watch(query->device->primary))
		query->call = 0;
	if (query->green == 0)
		query->revision = gpc_session_revision(query->device->session);
	return query->call && gpc_query_cache_find(&cache, query, sizeof(*query), reply, size);
}

static void
query_put(const struct query *query, const void *reply, size_t size)
{
	if (query->call)
		gpc_query_cache_put(&cache, query, sizeof(*query), reply, size);
}

/* green NULL: the multiprocessors of the device that the session may use. */
static CUresult
resource_query(const struct gpc_device *device, const struct gpc_context *green,
	       CUdevResource *resource)
{
	struct gp_args_gpResource args = { .device = device->remote };
	struct gp_reply_gpResource reply;
	struct origin origin = { .magic = MAGIC, .device = device->ordinal };
	struct query query = { .device = device,
			       .green = green ? green->number : 0,
			       .call = GP_CALL_gpResource };
	CUresult result;

	args.source = origin.source = green ? green->handle.id : 0;
	if (!query_find(&query, &reply, sizeof(reply))) {
		result = gpc_wait_gpResource(device->primary, &args, &reply);
		if (result != CUDA_SUCCESS)
			return result;
		query_put(&query, &reply, sizeof(reply));
	}
	resource_fill(resource, &origin, reply.count, reply.least, reply.alignment);
	return CUDA_SUCCESS;
}

/* NVIDIA's driver checks the type before anything else. */
static CUresult
resource_check_type(const CUdevResource *resource, CUdevResourceType type)
{
	if (!resource)
		return CUDA_ERROR_INVALID_VALUE;
	return type == CU_DEV_RESOURCE_TYPE_SM ? CUDA_SUCCESS : CUDA_ERROR_INVALID_RESOURCE_TYPE;
}

CUresult
gpc_cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
	struct gpc_context *primary;
	CUresult result = gpc_enter_device(device, &primary);

	if (result == CUDA_SUCCESS)
		result = resource_check_type(resource, type);
	return result == CUDA_SUCCESS ? resource_query(primary->device, NULL, resource) : result;
}

CUresult
gpc_cuCtxGetDevResource(CUcontext hCtx, CUdevResource *resource, CUdevResourceType type)
{
	struct gpc_context *context;
	CUresult result = resource_check_type(resource, type);

	if (result == CUDA_SUCCESS)
		result = gpc_enter_initialized();
	if (result == CUDA_SUCCESS)
		result = gpc_context_lookup(hCtx, &context);
	if (result != CUDA_SUCCESS)
		return result;
	return resource_query(context->device, context->parent ? context : NULL, resource);
}

CUresult
gpc_cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource *resource, CUdevResourceType type)
{
	struct gpc_green_context *green;
	CUresult result = resource_check_type(resource, type);

	if (result == CUDA_SUCCESS)
		result = gpc_green_context_enter(hCtx, &green);
	return result == CUDA_SUCCESS
		       ? resource_query(green->context->device, green->context, resource)
		       : result;
}

/* Performs a split, or returns the cached reply of an equal one. Sets origin->groups to the number
 * of groups made. */
static CUresult
resource_split(struct origin *origin, unsigned int groups, struct gp_reply_gpResourceSplit *reply)
{
	const struct gpc_device *device = gpc_device_get(origin->device);
	struct gp_args_gpResourceSplit args = {
		.source = origin->source,
		.flags = origin->flags,
		.wanted = origin->wanted,
		.groups = groups,
	};
	struct query query = {
		.device = device,
		.call = origin->source ? 0 : GP_CALL_gpResourceSplit,
		.flags = origin->flags,
		.wanted = origin->wanted,
		.groups = groups,
	};
	CUresult result = CUDA_SUCCESS;

	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	args.device = device->remote;
	if (!query_find(&query, reply, sizeof(*reply))) {
		result = gpc_wait_gpResourceSplit(device->primary, &args, reply);
		if (result == CUDA_SUCCESS && reply->made > GROUPS_MAX)
			return gpc_reply_fail_malformed(device->primary);
		if (result == CUDA_SUCCESS)
			query_put(&query, reply, sizeof(*reply));
	}
	if (result == CUDA_SUCCESS)
		origin->groups = reply->made;
	return result;
}

CUresult
gpc_cuDevSmResourceSplitByCount(CUdevResource *list, unsigned int *nbGroups,
				const CUdevResource *input, CUdevResource *remaining,
				unsigned int useFlags, unsigned int minCount)
{
	static atomic_uint splits;
	struct gp_reply_gpResourceSplit reply;
	struct origin origin;
	CUresult result = gpc_enter_initialized();

	if (result != CUDA_SUCCESS)
		return result;
	if (!nbGroups || !input || (list && !*nbGroups))
		return CUDA_ERROR_INVALID_VALUE;
	result = resource_get_origin(input, &origin);
	if (result != CUDA_SUCCESS)
		return result;
	if (minCount > input->sm.smCount || (useFlags & ~(unsigned int)FLAGS_KNOWN))
		return CUDA_ERROR_INVALID_VALUE;
	/* CUDA: the result of a split must become a green context before it can be split again. */
	if (origin.resource_split)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	origin.flags = useFlags;
	origin.wanted = minCount;
	result = resource_split(&origin,
				!list                    ? 0
				: *nbGroups < GROUPS_MAX ? *nbGroups
							 : GROUPS_MAX,
				&reply);
	if (result != CUDA_SUCCESS)
		return result;
	*nbGroups = reply.made;
	origin.resource_split = atomic_fetch_add(&splits, 1) + 1;
	for (origin.group = 0; list && origin.group < reply.made; origin.group++)
		resource_fill(&list[origin.group], &origin, reply.count, reply.least,
			      reply.alignment);
	origin.group = REST;
	if (remaining)
		memset(remaining, 0, sizeof(*remaining));
	if (remaining && reply.rest_count)
		resource_fill(remaining, &origin, reply.rest_count, reply.rest_least,
			      reply.rest_alignment);
	return CUDA_SUCCESS;
}

/* All resources of a descriptor must come from one split, which the daemon repeats when it creates
 * the green context. */
static CUresult
desc_init(const CUdevResource *resources, unsigned int count, struct desc *desc)
{
	struct origin origin;

	for (unsigned int i = 0; i < count; i++) {
		CUresult result = resource_get_origin(&resources[i], &origin);

		if (result != CUDA_SUCCESS)
			return result;
		if (i == 0)
			desc->of = origin;
		if (origin.resource_split != desc->of.resource_split ||
		    origin.device != desc->of.device || origin.source != desc->of.source)
			return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
		if (origin.resource_split && origin.group == REST)
			desc->rest = 1;
		else if (origin.resource_split && origin.group < GROUPS_MAX)
			desc->picks[origin.group / 64] |= UINT64_C(1) << origin.group % 64;
	}
	/* Descriptors of equal splits are equal, so the number of the split is dropped. */
	desc->of.resource_split = desc->of.group = 0;
	return CUDA_SUCCESS;
}

static bool
desc_is_equal(const struct desc *a, const struct desc *b)
{
	return memcmp(&a->of, &b->of, sizeof(a->of)) == 0 &&
	       memcmp(a->picks, b->picks, sizeof(a->picks)) == 0 && a->rest == b->rest;
}

CUresult
gpc_cuDevResourceGenerateDesc(CUdevResourceDesc *phDesc, CUdevResource *resources,
			      unsigned int nbResources)
{
	struct desc wanted = { 0 }, *desc;
	CUresult result = gpc_enter_initialized();

	if (result != CUDA_SUCCESS)
		return result;
	if (!phDesc || !resources || nbResources == 0)
		return CUDA_ERROR_INVALID_VALUE;
	result = desc_init(resources, nbResources, &wanted);
	if (result != CUDA_SUCCESS)
		return result;
	(void)pthread_mutex_lock(&descs_lock);
	for (desc = descs; desc && !desc_is_equal(desc, &wanted); desc = desc->next)
		;
	if (!desc) {
		desc = malloc(sizeof(*desc));
		if (desc) {
			*desc = wanted;
			desc->next = descs;
			descs = desc;
		}
	}
	(void)pthread_mutex_unlock(&descs_lock);
	*phDesc = (CUdevResourceDesc)desc;
	return desc ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Returns NULL if the token is invalid. */
static const struct desc *
desc_find(CUdevResourceDesc token)
{
	const struct desc *desc;

	(void)pthread_mutex_lock(&descs_lock);
	for (desc = descs; desc && (CUdevResourceDesc)desc != token; desc = desc->next)
		;
	(void)pthread_mutex_unlock(&descs_lock);
	return desc;
}

/* A green context retains its primary context. */
static CUresult
primary_retain(struct gpc_device *device)
{
	CUcontext token;
	CUresult result = gpc_cuDevicePrimaryCtxRetain(&token, device->ordinal);

	if (result != CUDA_SUCCESS)
		return result;
	result = gpc_context_activate(device->primary);
	if (result != CUDA_SUCCESS)
		(void)gpc_cuDevicePrimaryCtxRelease_v2(device->ordinal);
	return result;
}

/* Creates the green context and its default stream in the daemon. */
static CUresult
green_create_remote(struct gpc_context *context, const struct desc *desc)
{
	struct gp_args_gpContextCreate stream;
	struct gp_args_gpGreenMake args = {
		.context = context->handle.id,
		.parent = context->parent->handle.id,
		.source = desc->of.source,
		.flags = desc->of.flags,
		.wanted = desc->of.wanted,
		.groups = desc->of.groups,
		.rest = desc->rest,
		.picks = desc->picks[0],
		.more_picks = desc->picks[1],
	};
	CUresult result = gpc_stream_prepare_context(context, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	args.legacy = stream.legacy;
	result = gpc_wait_gpGreenMake(context->parent, &args);
	if (result != CUDA_SUCCESS)
		gpc_stream_drop_context(context);
	return result;
}

/* The caller has retained the primary context. */
static CUresult
green_create(struct gpc_device *device, const struct desc *desc, struct gpc_green_context **green_p)
{
	struct gpc_context *context = gpc_context_create(device, device->primary->flags, false);
	struct gpc_green_context *green = gpc_handle_new(GPC_KIND_GREEN, sizeof(*green));
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

	if (context && green) {
		context->parent = device->primary;
		context->green = green->handle.token;
		green->context = context;
		result = green_create_remote(context, desc);
	}
	if (result == CUDA_SUCCESS) {
		atomic_fetch_add(&gpc_contexts_active, 1);
		__atomic_store_n(&context->scope.context, context->handle.id, __ATOMIC_RELEASE);
		*green_p = green;
		return CUDA_SUCCESS;
	}
	if (context) {
		context->destroyed = true;
		gpc_handle_remove(&context->handle);
	}
	if (green)
		gpc_handle_remove(&green->handle);
	return result;
}

CUresult
gpc_cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc token, CUdevice dev, unsigned int flags)
{
	const struct desc *desc = desc_find(token);
	struct gpc_device *device;
	struct gpc_green_context *green;
	CUresult result = gpc_enter_initialized();

	if (result == CUDA_SUCCESS)
		result = gpc_device_enter(dev, &device);
	if (result != CUDA_SUCCESS)
		return result;
	if (!phCtx || !desc || flags != CU_GREEN_CTX_DEFAULT_STREAM || desc->of.device != dev)
		return CUDA_ERROR_INVALID_VALUE;
	result = primary_retain(device);
	if (result != CUDA_SUCCESS)
		return result;
	result = green_create(device, desc, &green);
	if (result == CUDA_SUCCESS)
		*phCtx = green->handle.token;
	else
		(void)gpc_cuDevicePrimaryCtxRelease_v2(dev);
	return result;
}

/* Does not release the primary context. */
static void
green_destroy(struct gpc_green_context *green)
{
	struct gpc_context *context = green->context;

	if (gpc_context_get_current() == context)
		(void)gpc_context_pop();
	gpc_handle_remove(&green->handle);
	gpc_context_reset(context);
	/* A thread in which it is current then finds that it is destroyed. */
	__atomic_store_n(&context->parent, NULL, __ATOMIC_RELEASE);
	gpc_handle_remove(&context->handle);
}

CUresult
gpc_cuGreenCtxDestroy(CUgreenCtx hCtx)
{
	struct gpc_green_context *green;
	CUdevice device;
	CUresult result = gpc_green_context_enter(hCtx, &green);

	if (result != CUDA_SUCCESS)
		return result;
	if (!gpc_handle_claim(GPC_KIND_GREEN, hCtx))
		return CUDA_ERROR_INVALID_CONTEXT;
	device = green->context->device->ordinal;
	green_destroy(green);
	return gpc_cuDevicePrimaryCtxRelease_v2(device);
}

static void
green_destroy_if_child(void *object, void *context)
{
	struct gpc_green_context *green = object;

	if (green->context && green->context->parent == context &&
	    gpc_handle_claim(GPC_KIND_GREEN, green->handle.token))
		green_destroy(green);
}

void
gpc_green_context_destroy_all(struct gpc_context *context)
{
	if (!context->parent)
		gpc_handle_each(GPC_KIND_GREEN, green_destroy_if_child, context);
}

CUresult
gpc_cuGreenCtxStreamCreate(CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags,
			   int priority)
{
	struct gpc_green_context *green;
	CUresult result = gpc_green_context_enter(greenCtx, &green);

	if (result != CUDA_SUCCESS)
		return result;
	return flags == CU_STREAM_NON_BLOCKING
		       ? gpc_stream_create_in(green->context, flags, priority, phStream)
		       : CUDA_ERROR_INVALID_VALUE;
}

CUresult
gpc_cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent)
{
	struct gpc_green_context *green;
	CUresult result = gpc_green_context_enter(hCtx, &green);

	return result == CUDA_SUCCESS ? gpc_cuCtxRecordEvent(green->context->handle.token, hEvent)
				      : result;
}

CUresult
gpc_cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent)
{
	struct gpc_green_context *green;
	CUresult result = gpc_green_context_enter(hCtx, &green);

	return result == CUDA_SUCCESS ? gpc_cuCtxWaitEvent(green->context->handle.token, hEvent)
				      : result;
}
