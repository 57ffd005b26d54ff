/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML functions of the software device, which the daemon calls as it would call a GPU's NVML. The
 * device has no sensors: these are fixed values of a device that is idle and cool. Its events are
 * those that a test injects (device_event.h).
 */
#include "base/clock.h"
#include "softgpu/driver/device_event.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/memory/space.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* As in NVML. */
struct event_data {
	void *device;
	unsigned long long type, data;
	unsigned int gpu_instance, compute_instance;
};

struct process {
	unsigned int pid;
	unsigned long long used;
	unsigned int gpu_instance, compute_instance;
};

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
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *total_free_used);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *count,
					    struct process *processes);
int nvmlDeviceGetNvLinkState(void *device, unsigned int link, unsigned int *state);
int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned int link, unsigned int *type);
int nvmlEventSetCreate(void **set);
int nvmlDeviceGetSupportedEventTypes(void *device, unsigned long long *types);
int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set);
int nvmlEventSetWait_v2(void *set, struct event_data *data, unsigned int timeout_ms);
#pragma GCC visibility pop

enum {
	SUCCESS = 0,
	INVALID_ARGUMENT = 2,
	NOT_SUPPORTED = 3,
	NOT_FOUND = 6,
	TOO_SMALL = 7,
	TIMEOUT = 10,
	GPU_IS_LOST = 15
};

/* Types of events. */
#define EVENT_DOUBLE_BIT_ECC 2ull
#define EVENT_XID 8ull
/* How often the file of injected events is read. */
#define EVENT_POLL_MS 20

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

int
nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
	if (!uuid || !device)
		return INVALID_ARGUMENT;
	for (int i = 0; i < gs_device_count(); i++) {
		char own[48];

		gs_device_uuid_text(i, own, sizeof(own));
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
	if (is_device(device) &&
	    gs_device_has_fault((int)((int *)device - devices), GS_DEVICE_LOST))
		return GPU_IS_LOST;
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

/* Each process has the memory of the device for itself. */
int
nvmlDeviceGetMemoryInfo(void *device, unsigned long long *total_free_used)
{
	if (!is_device(device) || !total_free_used)
		return INVALID_ARGUMENT;
	total_free_used[0] = gs_device_memory();
	total_free_used[2] = gs_space_charged((int)((int *)device - devices));
	total_free_used[1] = total_free_used[0] - total_free_used[2];
	return SUCCESS;
}

/* Only the calling process. */
int
nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *count,
					struct process *processes)
{
	if (!is_device(device) || !count || (*count && !processes))
		return INVALID_ARGUMENT;
	if (*count == 0)
		return TOO_SMALL;
	*count = 1;
	processes[0] = (struct process){ .pid = (unsigned int)getpid(),
					 .used = gs_space_charged((int)((int *)device - devices)) };
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

/* One set of the process: the devices in it, and the events that it has returned. */
static struct {
	bool registered[GS_DEVICES_MAX];
	long offset;
} events;

int
nvmlEventSetCreate(void **set)
{
	if (!set)
		return INVALID_ARGUMENT;
	events.offset = gs_device_event_now();
	*set = &events;
	return SUCCESS;
}

int
nvmlDeviceGetSupportedEventTypes(void *device, unsigned long long *types)
{
	if (!is_device(device) || !types)
		return INVALID_ARGUMENT;
	if (!gs_device_event_supported())
		return NOT_SUPPORTED;
	*types = EVENT_XID | EVENT_DOUBLE_BIT_ECC;
	return SUCCESS;
}

int
nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set)
{
	if (!is_device(device) || set != &events || types & ~(EVENT_XID | EVENT_DOUBLE_BIT_ECC))
		return INVALID_ARGUMENT;
	events.registered[(int *)device - devices] = true;
	return SUCCESS;
}

int
nvmlEventSetWait_v2(void *set, struct event_data *data, unsigned int timeout_ms)
{
	struct gs_device_event event;
	unsigned int waited_ms = 0;

	if (set != &events || !data)
		return INVALID_ARGUMENT;
	for (;;) {
		while (gs_device_event_next(&events.offset, &event)) {
			if (event.device < 0 || event.device >= gs_device_count() ||
			    !events.registered[event.device])
				continue;
			*data = (struct event_data){
				.device = &devices[event.device],
				.type = event.ecc ? EVENT_DOUBLE_BIT_ECC : EVENT_XID,
				.data = event.ecc ? 0 : event.xid,
			};
			return SUCCESS;
		}
		if (waited_ms >= timeout_ms)
			return TIMEOUT;
		gp_sleep_ns((uint64_t)EVENT_POLL_MS * 1000000);
		waited_ms += EVENT_POLL_MS;
	}
}
