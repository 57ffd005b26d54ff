/* SPDX-License-Identifier: Apache-2.0 */
/* State of a device: the values returned by gpDeviceState, one NVML function each. */
#include "nvml/answer.h"
#include "nvml/link.h"
#include "nvml/pool.h"

#include <string.h>
#include <time.h>

static int
get_ulong(void *handle, int value_id, unsigned long long *out)
{
	struct gpn_device *device;
	int r = gpn_find_device(handle, out, &device);
	uint64_t value;

	if (r == GPN_SUCCESS)
		r = gpn_get_value(device, value_id, &value);
	if (r == GPN_SUCCESS)
		*out = value;
	return r;
}

static int
get_uint(void *handle, int value_id, unsigned int *out)
{
	unsigned long long value;
	int r = get_ulong(handle, value_id, out ? &value : NULL);

	if (r == GPN_SUCCESS)
		*out = (unsigned int)value;
	return r;
}

static int
get_uint_pair(void *handle, int value_id, unsigned int *first, unsigned int *second)
{
	unsigned int value;
	int r = get_uint(handle, value_id, first && second ? &value : NULL);

	if (r == GPN_SUCCESS)
		r = get_uint(handle, value_id + 1, second);
	if (r == GPN_SUCCESS)
		*first = value;
	return r;
}

#define VALUE(number_, name)                                                                       \
	GPN_FUNCTION(name, void *device, unsigned int *out)                                        \
	{                                                                                          \
		return get_uint(device, number_, out);                                             \
	}
GP_STATE_UINT(VALUE)
#undef VALUE

#define VALUE(number_, name)                                                                       \
	GPN_FUNCTION(name, void *device, unsigned long long *out)                                  \
	{                                                                                          \
		return get_ulong(device, number_, out);                                            \
	}
GP_STATE_ULONG(VALUE)
#undef VALUE

#define VALUE(number_, name)                                                                       \
	GPN_FUNCTION(name, void *device, unsigned int *first, unsigned int *second)                \
	{                                                                                          \
		return get_uint_pair(device, number_, first, second);                              \
	}
GP_STATE_PAIR(VALUE)
#undef VALUE

#define VALUE(number_, name)                                                                       \
	GPN_FUNCTION(name, void *device, unsigned int *two)                                        \
	{                                                                                          \
		return get_uint_pair(device, number_, two, two ? two + 1 : NULL);                  \
	}
GP_STATE_TWO(VALUE)
#undef VALUE

#define TEXT(number_, name)                                                                        \
	GPN_FUNCTION(name, void *handle, char *out, unsigned int size)                             \
	{                                                                                          \
		struct gpn_device *device;                                                         \
		int r = gpn_find_device(handle, out, &device);                                     \
                                                                                                   \
		return r == GPN_SUCCESS ? gpn_get_text(device, number_, out, size) : r;            \
	}
GP_STATE_DEVICE_TEXTS(TEXT)
#undef TEXT

/* Values selected by one argument. */
static const struct choice {
	const char *name;
	int argument, value_id;
} choices[] = {
#define VALUE(number_, name, argument) { #name, argument, number_ },
	GP_STATE_UINT_INDEXED(VALUE)
#undef VALUE
};

/* arguments: number of values that NVML defines for the argument. */
static int
get_choice(const char *name, void *handle, int argument, int arguments, unsigned int *out)
{
	struct gpn_device *device;
	int r = gpn_find_device(handle, out && argument >= 0 && argument < arguments, &device);

	if (r != GPN_SUCCESS)
		return r;
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
		if (choices[i].argument == argument && strcmp(choices[i].name, name) == 0)
			return get_uint(handle, choices[i].value_id, out);
	}
	return GPN_NOT_SUPPORTED;
}

#define CHOICE(name, arguments)                                                                    \
	GPN_FUNCTION(name, void *device, int argument, unsigned int *out)                          \
	{                                                                                          \
		return get_choice(#name, device, argument, arguments, out);                        \
	}
CHOICE(nvmlDeviceGetTemperature, 1)
CHOICE(nvmlDeviceGetTemperatureThreshold, 8)
CHOICE(nvmlDeviceGetClockInfo, GPN_CLOCK_TYPES)
CHOICE(nvmlDeviceGetMaxClockInfo, GPN_CLOCK_TYPES)
CHOICE(nvmlDeviceGetApplicationsClock, GPN_CLOCK_TYPES)
CHOICE(nvmlDeviceGetDefaultApplicationsClock, GPN_CLOCK_TYPES)
CHOICE(nvmlDeviceGetMaxCustomerBoostClock, GPN_CLOCK_TYPES)

GPN_FUNCTION(nvmlDeviceGetClock, void *device, int type, int id, unsigned int *mhz)
{
	switch (id) {
	case GPN_CLOCK_NOW:
		return gpn_nvmlDeviceGetClockInfo(device, type, mhz);
	case GPN_CLOCK_APPLICATION:
		return gpn_nvmlDeviceGetApplicationsClock(device, type, mhz);
	case GPN_CLOCK_DEFAULT:
		return gpn_nvmlDeviceGetDefaultApplicationsClock(device, type, mhz);
	case GPN_CLOCK_BOOST:
		return gpn_nvmlDeviceGetMaxCustomerBoostClock(device, type, mhz);
	default:
		return gpn_check_arguments(false);
	}
}

GPN_FUNCTION(nvmlDeviceGetTemperatureV, void *device, struct gpn_temperature *temperature)
{
	unsigned int celsius;
	int r = get_uint(device, GP_STATE_TEMPERATURE, temperature ? &celsius : NULL);

	if (r == GPN_SUCCESS && temperature->version != GPN_VERSION(struct gpn_temperature, 1))
		r = GPN_ARGUMENT_VERSION_MISMATCH;
	if (r == GPN_SUCCESS && temperature->sensor != 0)
		r = GPN_INVALID_ARGUMENT;
	if (r == GPN_SUCCESS)
		temperature->celsius = (int)celsius;
	return r;
}

GPN_FUNCTION(nvmlDeviceGetTotalEccErrors, void *device, int type, int counter,
	     unsigned long long *errors)
{
	static const struct {
		int type, counter, value_id;
	} words[] = {
#define VALUE(number_, name, type, counter) { type, counter, number_ },
		GP_STATE_ECC(VALUE)
#undef VALUE
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (words[i].type == type && words[i].counter == counter)
			return get_ulong(device, words[i].value_id, errors);
	}
	return gpn_check_arguments(false);
}

GPN_FUNCTION(nvmlDeviceGetFanSpeed_v2, void *device, unsigned int fan, unsigned int *percent)
{
	int r = gpn_nvmlDeviceGetFanSpeed(device, percent);

	/* The server reports one value for all fans. */
	return r == GPN_SUCCESS && fan != 0 ? GPN_INVALID_ARGUMENT : r;
}

GPN_ALIAS(nvmlDeviceGetCurrentClocksEventReasons, nvmlDeviceGetCurrentClocksThrottleReasons,
	  void *device, unsigned long long *reasons);
GPN_ALIAS(nvmlDeviceGetSupportedClocksEventReasons, nvmlDeviceGetSupportedClocksThrottleReasons,
	  void *device, unsigned long long *reasons);

/* Features that no device of a pool has: the value is 0. */
GPN_FUNCTION(nvmlDeviceIsMigDeviceHandle, void *handle, unsigned int *out)
{
	struct gpn_device *device;
	int r = gpn_find_device(handle, out, &device);

	if (r == GPN_SUCCESS)
		*out = 0;
	return r;
}

GPN_ALIAS(nvmlDeviceGetMaxMigDeviceCount, nvmlDeviceIsMigDeviceHandle, void *device,
	  unsigned int *count);
GPN_ALIAS(nvmlDeviceGetVirtualizationMode, nvmlDeviceIsMigDeviceHandle, void *device,
	  unsigned int *mode);
GPN_ALIAS(nvmlDeviceGetAccountingMode, nvmlDeviceIsMigDeviceHandle, void *device,
	  unsigned int *mode);

static int
read_field(void *device, struct gpn_field *field)
{
	field->type = GPN_VALUE_UINT;
	switch (field->id) {
	case GPN_FIELD_ENERGY:
		field->type = GPN_VALUE_ULONGLONG;
		return gpn_nvmlDeviceGetTotalEnergyConsumption(device, &field->value.ull);
	case GPN_FIELD_LINK_STATE:
		return gpn_nvmlDeviceGetNvLinkState(device, field->scope, &field->value.u);
	case GPN_FIELD_POWER_AVERAGE:
	case GPN_FIELD_POWER_NOW:
		return gpn_nvmlDeviceGetPowerUsage(device, &field->value.u);
	case GPN_FIELD_POWER_MIN:
		return get_uint(device, GP_STATE_POWER_MIN, &field->value.u);
	case GPN_FIELD_POWER_MAX:
		return get_uint(device, GP_STATE_POWER_MIN + 1, &field->value.u);
	case GPN_FIELD_POWER_DEFAULT:
		return gpn_nvmlDeviceGetPowerManagementDefaultLimit(device, &field->value.u);
	case GPN_FIELD_POWER_LIMIT:
		return gpn_nvmlDeviceGetEnforcedPowerLimit(device, &field->value.u);
	default:
		return GPN_NOT_SUPPORTED;
	}
}

/* Each field has a result of its own. */
GPN_FUNCTION(nvmlDeviceGetFieldValues, void *handle, int count, struct gpn_field *fields)
{
	struct gpn_device *device;
	int r = gpn_find_device(handle, count > 0 && fields, &device);
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	for (int i = 0; r == GPN_SUCCESS && i < count; i++) {
		fields[i].value.ull = 0;
		fields[i].latency_us = 0;
		fields[i].time_us = (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
		fields[i].result = read_field(handle, &fields[i]);
	}
	return r;
}
