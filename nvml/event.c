/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of a GPU do not travel, so a set of them stays empty: whoever waits for one waits as long
 * as he likes.  Programs make a set before they ask which events a device has: none.
 */
#include "base/clock.h"
#include "nvml/answer.h"
#include "nvml/pool.h"

#include <stdlib.h>

struct gpn_events {
	char unused;
};

ANSWER(nvmlEventSetCreate, struct gpn_events **set)
{
	int r = gpn_enter();

	if (r == GPN_SUCCESS && !set)
		r = GPN_INVALID_ARGUMENT;
	if (r != GPN_SUCCESS)
		return r;
	*set = malloc(sizeof(**set));
	return *set ? GPN_SUCCESS : GPN_MEMORY;
}

ANSWER(nvmlEventSetFree, struct gpn_events *set)
{
	int r = gpn_enter();

	if (r == GPN_SUCCESS && !set)
		r = GPN_INVALID_ARGUMENT;
	if (r == GPN_SUCCESS)
		free(set);
	return r;
}

ANSWER(nvmlDeviceRegisterEvents, void *handle, unsigned long long types, struct gpn_events *set)
{
	struct gpn_device *device;
	int r = gpn_find(handle, &device);

	if (r == GPN_SUCCESS && !set)
		r = GPN_INVALID_ARGUMENT;
	return r == GPN_SUCCESS && types ? GPN_NOT_SUPPORTED : r;
}

ANSWER(nvmlEventSetWait_v2, struct gpn_events *set, void *data, unsigned int timeout_ms)
{
	int r = gpn_enter();

	if (r == GPN_SUCCESS && (!set || !data))
		r = GPN_INVALID_ARGUMENT;
	if (r != GPN_SUCCESS)
		return r;
	gp_nap((uint64_t)timeout_ms * 1000000);
	return GPN_TIMEOUT;
}

ANSWER(nvmlEventSetWait, struct gpn_events *set, void *data, unsigned int timeout_ms)
{
	return gpn_nvmlEventSetWait_v2(set, data, timeout_ms);
}

ANSWER(nvmlDeviceGetSupportedEventTypes, void *handle, unsigned long long *types)
{
	struct gpn_device *device;
	int r = gpn_find(handle, &device);

	if (r == GPN_SUCCESS && !types)
		r = GPN_INVALID_ARGUMENT;
	if (r == GPN_SUCCESS)
		*types = 0;
	return r;
}
