/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/unsupported_feature.h"
#include "client/context/device.h"
#include "client/stream/stream.h"
#include "gpc_calls.h"

#include <string.h>

/* Guards the attributes of all streams: one thread may set them while another launches. */
static pthread_mutex_t attributes_lock = PTHREAD_MUTEX_INITIALIZER;

/* The attributes that can be set, in the order of struct gpc_stream. */
static const CUlaunchAttributeID ids[GPC_STREAM_ATTRIBUTES] = {
	CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
	CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
	CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
	CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
};

/* Returns -1 if the ID is none of these. */
static int
attribute_find_slot(CUlaunchAttributeID id)
{
	for (int i = 0; i < GPC_STREAM_ATTRIBUTES; i++) {
		if (ids[i] == id)
			return i;
	}
	return -1;
}

/* Returns the value before the first set. */
static CUlaunchAttributeValue
attribute_get_default(CUlaunchAttributeID id)
{
	CUlaunchAttributeValue value;

	memset(&value, 0, sizeof(value));
	if (id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
		value.syncPolicy = CU_SYNC_POLICY_AUTO;
	if (id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)
		value.memSyncDomainMap.remote = 1;
	return value;
}

bool
gpc_access_window_is_valid(const struct gpc_device *device, const CUaccessPolicyWindow *window)
{
	const int most =
		gpc_device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE);

	return window->num_bytes <= (size_t)most && window->hitRatio >= 0 &&
	       window->hitRatio <= 1 &&
	       (unsigned int)window->hitProp <= CU_ACCESS_PROPERTY_PERSISTING &&
	       (unsigned int)window->missProp <= CU_ACCESS_PROPERTY_STREAMING;
}

static bool
attribute_is_valid(const struct gpc_device *device, CUlaunchAttributeID id,
		   const CUlaunchAttributeValue *value)
{
	const int domains = gpc_device_attribute(device, CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT);

	switch ((unsigned int)id) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		return gpc_access_window_is_valid(device, &value->accessPolicyWindow);
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		return value->syncPolicy >= CU_SYNC_POLICY_AUTO &&
		       value->syncPolicy <= CU_SYNC_POLICY_BLOCKING_SYNC;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		return value->memSyncDomainMap.default_ < (domains > 1 ? domains : 1) &&
		       value->memSyncDomainMap.remote < (domains > 1 ? domains : 1);
	default:
		return (unsigned int)value->memSyncDomain <= CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
	}
}

CUresult
gpc_cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value)
{
	const int place = attribute_find_slot(attr);
	struct gpc_stream *stream;
	CUresult result = gpc_stream_enter(hStream, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (!value || (place < 0 && attr != CU_LAUNCH_ATTRIBUTE_PRIORITY))
		return CUDA_ERROR_INVALID_VALUE;
	*value = attribute_get_default(attr);
	if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		value->priority = stream->priority;
	pthread_mutex_lock(&attributes_lock);
	if (place >= 0 && stream->attributes_set & 1u << place)
		*value = stream->attributes[place];
	pthread_mutex_unlock(&attributes_lock);
	return CUDA_SUCCESS;
}

static void
attribute_set(struct gpc_stream *stream, int place, const CUlaunchAttributeValue *value)
{
	pthread_mutex_lock(&attributes_lock);
	stream->attributes[place] = *value;
	stream->attributes_set |= 1u << place;
	pthread_mutex_unlock(&attributes_lock);
}

/* The priority of an existing stream cannot change. */
CUresult
gpc_cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue *param)
{
	const int place = attribute_find_slot(attr);
	struct gpc_stream *stream;
	CUresult result = gpc_stream_enter(hStream, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (param && attr == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		return gpc_not_supported(GPC_UNSUPPORTED_STREAM_PRIORITY);
	if (!param || place < 0 || !attribute_is_valid(stream->context->device, attr, param))
		return CUDA_ERROR_INVALID_VALUE;
	attribute_set(stream, place, param);
	return CUDA_SUCCESS;
}

CUresult
gpc_cuStreamCopyAttributes(CUstream dstStream, CUstream srcStream)
{
	struct gpc_stream *from, *to;
	CUresult result = gpc_stream_enter(dstStream, &to);

	if (result == CUDA_SUCCESS)
		result = gpc_stream_enter(srcStream, &from);
	if (result != CUDA_SUCCESS || from == to)
		return result;
	pthread_mutex_lock(&attributes_lock);
	memcpy(to->attributes, from->attributes, sizeof(to->attributes));
	to->attributes_set = from->attributes_set;
	pthread_mutex_unlock(&attributes_lock);
	return CUDA_SUCCESS;
}

/* The host's wait policy and an empty access window are not passed to a launch. */
static bool
attribute_applies_to_launch(CUlaunchAttributeID id, const CUlaunchAttributeValue *value)
{
	return id != CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY &&
	       (id != CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW ||
		value->accessPolicyWindow.num_bytes > 0);
}

static bool
config_has_attribute(const CUlaunchConfig *config, CUlaunchAttributeID id)
{
	for (unsigned int i = 0; i < config->numAttrs; i++) {
		if (config->attrs[i].id == id)
			return true;
	}
	return false;
}

const CUlaunchConfig *
gpc_stream_launch(const struct gpc_stream *stream, const CUlaunchConfig *config,
		  struct gpc_stream_launch *launch)
{
	unsigned int count = config->numAttrs;

	/* Invalid configurations are rejected by the caller. */
	if ((count > 0 && !config->attrs) || count > GPC_STREAM_LAUNCH_MAX - GPC_STREAM_ATTRIBUTES)
		return config;
	launch->config = *config;
	launch->config.attrs = launch->list;
	if (count > 0)
		memcpy(launch->list, config->attrs, count * sizeof(*launch->list));
	pthread_mutex_lock(&attributes_lock);
	for (int i = 0; i < GPC_STREAM_ATTRIBUTES; i++) {
		if (stream->attributes_set & 1u << i && !config_has_attribute(config, ids[i]) &&
		    attribute_applies_to_launch(ids[i], &stream->attributes[i]))
			launch->list[count++] =
				(CUlaunchAttribute){ .id = ids[i], .value = stream->attributes[i] };
	}
	pthread_mutex_unlock(&attributes_lock);
	launch->config.numAttrs = count;
	return &launch->config;
}
