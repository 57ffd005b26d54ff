/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML functions of the software device, which the daemon calls as it would call a GPU's NVML. The
 * device has no sensors: these are fixed values of a device that is idle, cool and never fails.
 */
#include "softgpu/driver/driver.h"

#include <stdio.h>
#include <string.h>

#pragma GCC visibility push(default)
/* Declarations as in NVML; exported by the linker map. */
int nvmlInit_v2(void);
int nvmlSystemGetDriverVersion(char *version, unsigned int length);
int nvmlSystemGetNVMLVersion(char *version, unsigned int length);
int nvmlSystemGetDriverBranch(unsigned int *version_text, unsigned int length);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
int nvmlDeviceGetSerial(void *device, char *serial, unsigned int length);
int nvmlDeviceGetUtilizationRates(void *device, unsigned int *rates);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned int *celsius);
int nvmlDeviceGetPowerUsage(void *device, unsigned int *milliwatts);
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned int *milliwatts);
int nvmlDeviceGetPowerManagementLimit(void *device, unsigned int *milliwatts);
int nvmlDeviceGetPerformanceState(void *device, unsigned int *state);
int nvmlDeviceGetPersistenceMode(void *device, unsigned int *mode);
int nvmlDeviceGetComputeMode(void *device, unsigned int *mode);
int nvmlDeviceGetClockInfo(void *device, int type, unsigned int *mhz);
int nvmlDeviceGetMaxClockInfo(void *device, int type, unsigned int *mhz);
int nvmlDeviceGetEccMode(void *device, unsigned int *current, unsigned int *pending);
int nvmlDeviceGetBrand(void *device, unsigned int *brand);
int nvmlDeviceGetArchitecture(void *device, unsigned int *architecture);
int nvmlDeviceGetDisplayActive(void *device, unsigned int *active);
int nvmlDeviceGetEncoderUtilization(void *device, unsigned int *percent, unsigned int *period_us);
int nvmlDeviceGetDecoderUtilization(void *device, unsigned int *percent, unsigned int *period_us);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons);
int nvmlDeviceGetSupportedClocksThrottleReasons(void *device, unsigned long long *reasons);
int nvmlDeviceGetTemperatureThreshold(void *device, int threshold, unsigned int *celsius);
int nvmlDeviceGetBAR1MemoryInfo(void *device, unsigned long long *total_free_used);
int nvmlDeviceGetNvLinkState(void *device, unsigned int link, unsigned int *state);
int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned int link, unsigned int *type);
#pragma GCC visibility pop

enum {
	SUCCESS = 0,
	INVALID_ARGUMENT = 2,
	NOT_SUPPORTED = 3,
	NOT_FOUND = 6,
	TOO_SMALL = 7
};

#define POWER_MW 50000
#define POWER_LIMIT_MW 300000
#define CELSIUS 35
#define CELSIUS_SHUTDOWN 90
#define PERIOD_US 100000
#define IDLE 1ull /* reason for which the clocks are reduced */
#define BAR1_BYTES (256ull << 20)
#define CLOCK_MHZ 1000
#define CLOCKS 4
/* NVLinks to a switch that connects all devices. */
#define LINKS 18
#define LINK_TO_SWITCH 2

static int devices[GS_DEVICES_MAX]; /* their addresses are the handles */

static bool
is_device(const void *handle)
{
	for (int i = 0; i < gs_device_count(); i++) {
		if (handle == &devices[i])
			return true;
	}
	return false;
}

static int
text(char *out, unsigned int size, const char *in)
{
	if (!out)
		return INVALID_ARGUMENT;
	return snprintf(out, size, "%s", in) < (int)size ? SUCCESS : TOO_SMALL;
}

static int
number(const void *device, unsigned int *out, unsigned int value)
{
	if (!is_device(device) || !out)
		return INVALID_ARGUMENT;
	*out = value;
	return SUCCESS;
}

int
nvmlInit_v2(void)
{
	return SUCCESS;
}

int
nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	return text(version, length, "580.00");
}

int
nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
	return text(version, length, "13.580.00");
}

int
nvmlSystemGetDriverBranch(unsigned int *version_text, unsigned int length)
{
	if (!version_text)
		return INVALID_ARGUMENT;
	return text((char *)(version_text + 1), length, "r580_00");
}

static void
write_uuid(int device, char out[48])
{
	CUuuid bytes = { 0 };

	(void)cuDeviceGetUuid_v2(&bytes, device);
	strcpy(out, "GPU-");
	for (int i = 0; i < 16; i++)
		(void)snprintf(out + strlen(out), 4, "%s%02x",
			       i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
			       (unsigned char)bytes.bytes[i]);
}

int
nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
	if (!uuid || !device)
		return INVALID_ARGUMENT;
	for (int i = 0; i < gs_device_count(); i++) {
		char own[48];

		write_uuid(i, own);
		if (strcmp(uuid, own) != 0)
			continue;
		*device = &devices[i];
		return SUCCESS;
	}
	return NOT_FOUND;
}

int
nvmlDeviceGetSerial(void *device, char *serial, unsigned int length)
{
	return is_device(device) ? text(serial, length, "0") : INVALID_ARGUMENT;
}

int
nvmlDeviceGetUtilizationRates(void *device, unsigned int *rates)
{
	if (!is_device(device) || !rates)
		return INVALID_ARGUMENT;
	rates[0] = rates[1] = 0;
	return SUCCESS;
}

int
nvmlDeviceGetTemperature(void *device, int sensor, unsigned int *celsius)
{
	return sensor == 0 ? number(device, celsius, CELSIUS) : INVALID_ARGUMENT;
}

int
nvmlDeviceGetPowerUsage(void *device, unsigned int *milliwatts)
{
	return number(device, milliwatts, POWER_MW);
}

int
nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned int *milliwatts)
{
	return number(device, milliwatts, POWER_LIMIT_MW);
}

int
nvmlDeviceGetPowerManagementLimit(void *device, unsigned int *milliwatts)
{
	return number(device, milliwatts, POWER_LIMIT_MW);
}

int
nvmlDeviceGetPerformanceState(void *device, unsigned int *state)
{
	return number(device, state, 0);
}

int
nvmlDeviceGetPersistenceMode(void *device, unsigned int *mode)
{
	return number(device, mode, 1);
}

int
nvmlDeviceGetComputeMode(void *device, unsigned int *mode)
{
	return number(device, mode, 0);
}

int
nvmlDeviceGetClockInfo(void *device, int type, unsigned int *mhz)
{
	return type >= 0 && type < CLOCKS ? number(device, mhz, CLOCK_MHZ) : INVALID_ARGUMENT;
}

int
nvmlDeviceGetMaxClockInfo(void *device, int type, unsigned int *mhz)
{
	return nvmlDeviceGetClockInfo(device, type, mhz);
}

int
nvmlDeviceGetEccMode(void *device, unsigned int *current, unsigned int *pending)
{
	(void)number(device, current, 0);
	return number(device, pending, 0);
}

/* Unknown brand and architecture, as for a device that is newer than its driver. */
int
nvmlDeviceGetBrand(void *device, unsigned int *brand)
{
	return number(device, brand, 0);
}

int
nvmlDeviceGetArchitecture(void *device, unsigned int *architecture)
{
	return number(device, architecture, UINT32_MAX);
}

int
nvmlDeviceGetDisplayActive(void *device, unsigned int *active)
{
	return number(device, active, 0);
}

int
nvmlDeviceGetEncoderUtilization(void *device, unsigned int *percent, unsigned int *period_us)
{
	(void)number(device, percent, 0);
	return number(device, period_us, PERIOD_US);
}

int
nvmlDeviceGetDecoderUtilization(void *device, unsigned int *percent, unsigned int *period_us)
{
	return nvmlDeviceGetEncoderUtilization(device, percent, period_us);
}

int
nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons)
{
	if (!is_device(device) || !reasons)
		return INVALID_ARGUMENT;
	*reasons = IDLE;
	return SUCCESS;
}

int
nvmlDeviceGetSupportedClocksThrottleReasons(void *device, unsigned long long *reasons)
{
	return nvmlDeviceGetCurrentClocksThrottleReasons(device, reasons);
}

int
nvmlDeviceGetTemperatureThreshold(void *device, int threshold, unsigned int *celsius)
{
	return threshold == 0 ? number(device, celsius, CELSIUS_SHUTDOWN) : NOT_SUPPORTED;
}

/* Three numbers: total, free, used. */
int
nvmlDeviceGetBAR1MemoryInfo(void *device, unsigned long long *total_free_used)
{
	if (!is_device(device) || !total_free_used)
		return INVALID_ARGUMENT;
	total_free_used[0] = total_free_used[1] = BAR1_BYTES;
	total_free_used[2] = 0;
	return SUCCESS;
}

int
nvmlDeviceGetNvLinkState(void *device, unsigned int link, unsigned int *state)
{
	return link < LINKS ? number(device, state, gs_device_count() > 1 && gs_device_peers())
			    : INVALID_ARGUMENT;
}

int
nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned int link, unsigned int *type)
{
	return link < LINKS ? number(device, type, LINK_TO_SWITCH) : INVALID_ARGUMENT;
}
