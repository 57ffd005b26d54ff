/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU events are not transmitted, so an event set stays empty and every wait times out. The set can
 * be created nevertheless, because programs create it before they query the supported events of a
 * device (none).
 */
#include "base/clock.h"
#include "nvml/answer.h"
#include "nvml/pool.h"

#include <stdlib.h>

struct gpn_events {
	char unused;
};

GPN_FUNCTION(nvmlEventSetCreate, struct gpn_events **set)
{
	int r = gpn_check_arguments(set);

	if (r != GPN_SUCCESS)
		return r;
	*set = malloc(sizeof(**set));
	return *set ? GPN_SUCCESS : GPN_MEMORY;
}

GPN_FUNCTION(nvmlEventSetFree, struct gpn_events *set)
{
	int r = gpn_check_arguments(set);

	if (r == GPN_SUCCESS)
		free(set);
	return r;
}

GPN_FUNCTION(nvmlDeviceRegisterEvents, void *handle, unsigned long long types,
	     struct gpn_events *set)
{
	struct gpn_device *device;
	int r = gpn_find_device(handle, set, &device);

	return r == GPN_SUCCESS && types ? GPN_NOT_SUPPORTED : r;
}

GPN_FUNCTION(nvmlEventSetWait_v2, struct gpn_events *set, void *data, unsigned int timeout_ms)
{
	int r = gpn_check_arguments(set && data);

	if (r != GPN_SUCCESS)
		return r;
	gp_sleep_ns((uint64_t)timeout_ms * 1000000);
	return GPN_TIMEOUT;
}

GPN_ALIAS(nvmlEventSetWait, nvmlEventSetWait_v2, struct gpn_events *set, void *data,
	  unsigned int timeout_ms);

GPN_FUNCTION(nvmlDeviceGetSupportedEventTypes, void *handle, unsigned long long *types)
{
	struct gpn_device *device;
	int r = gpn_find_device(handle, types, &device);

	if (r == GPN_SUCCESS)
		*types = 0;
	return r;
}
