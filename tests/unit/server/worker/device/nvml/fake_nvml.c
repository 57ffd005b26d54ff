/* SPDX-License-Identifier: Apache-2.0 */
/* An NVML of one GPU that has one function of each shape, and counts how often it is asked. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct process {
	unsigned int pid;
	unsigned long long used;
	unsigned int gpu_instance, compute_instance;
};

static int gpu, asked;

int nvmlInit_v2(void);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
int nvmlSystemGetCudaDriverVersion_v2(int *version);
int nvmlSystemGetDriverVersion(char *text, unsigned int size);
int nvmlSystemGetDriverBranch(unsigned int *version_text, unsigned int size);
int nvmlDeviceGetSerial(void *device, char *text, unsigned int size);
int nvmlDeviceGetVbiosVersion(void *device, char *text, unsigned int size);
int nvmlDeviceGetPowerUsage(void *device, unsigned int *value);
int nvmlDeviceGetFanSpeed(void *device, unsigned int *value);
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *value);
int nvmlDeviceGetEccMode(void *device, unsigned int *current, unsigned int *pending);
int nvmlDeviceGetUtilizationRates(void *device, unsigned int *two);
int nvmlDeviceGetClockInfo(void *device, int type, unsigned int *value);
int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, unsigned long long *value);
int nvmlDeviceGetBAR1MemoryInfo(void *device, unsigned long long *three);
int nvmlDeviceGetPciInfo_v3(void *device, char *info);
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *three);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *count,
					    struct process *processes);

int
nvmlInit_v2(void)
{
	return 0;
}

int
nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
	*device = &gpu;
	return strcmp(uuid, "GPU-00010203-0405-0607-0809-0a0b0c0dfeff") == 0 ? 0 : 6;
}

int
nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	*version = 13000;
	return 0;
}

int
nvmlSystemGetDriverVersion(char *text, unsigned int size)
{
	strncpy(text, "580.65", size);
	return 0;
}

int
nvmlSystemGetDriverBranch(unsigned int *version_text, unsigned int size)
{
	if (*version_text != 0x1000054 || size != 80)
		return 25;
	memset(version_text + 1, 'b', size);
	return 0;
}

int
nvmlDeviceGetSerial(void *device, char *text, unsigned int size)
{
	strncpy(text, "4711", size);
	return device == &gpu ? 0 : 2;
}

/* Writes, and says that it did not. */
int
nvmlDeviceGetVbiosVersion(void *device, char *text, unsigned int size)
{
	strncpy(text, "rubbish", size);
	return 3;
}

int
nvmlDeviceGetPowerUsage(void *device, unsigned int *value)
{
	*value = 1000 + (unsigned int)++asked;
	return 0;
}

int
nvmlDeviceGetFanSpeed(void *device, unsigned int *value)
{
	*value = 55;
	return 3;
}

int
nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *value)
{
	*value = 1ULL << 40;
	return 0;
}

int
nvmlDeviceGetEccMode(void *device, unsigned int *current, unsigned int *pending)
{
	*current = 1;
	*pending = 0;
	return 0;
}

int
nvmlDeviceGetUtilizationRates(void *device, unsigned int *two)
{
	two[0] = 97;
	two[1] = 43;
	return 0;
}

int
nvmlDeviceGetClockInfo(void *device, int type, unsigned int *value)
{
	*value = 100 + (unsigned int)type;
	return type == 3 ? 3 : 0;
}

int
nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, unsigned long long *value)
{
	*value = (1ULL << 33) + (unsigned int)(10 * type + counter);
	return 0;
}

int
nvmlDeviceGetBAR1MemoryInfo(void *device, unsigned long long *three)
{
	three[0] = 256;
	three[1] = 200;
	three[2] = 56;
	return 0;
}

int
nvmlDeviceGetPciInfo_v3(void *device, char *info)
{
	const unsigned int numbers[] = { 1, 2, 3, 0x233010de, 0x16c110de };

	memset(info, 0, 68);
	memcpy(info + 16, numbers, sizeof(numbers));
	return 0;
}

int
nvmlDeviceGetMemoryInfo(void *device, unsigned long long *three)
{
	three[0] = 10000;
	three[1] = 7000;
	three[2] = 3000;
	return 0;
}

/* With FAKE_CONTAINER, does not know this process, as in a container; without FAKE_USED it knows
 * it, but not how much it uses. */
int
nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *count,
					struct process *processes)
{
	const char *used = getenv("FAKE_USED");

	processes[0] = (struct process){ .pid = (unsigned int)getpid() + 1, .used = 99 };
	processes[1] = (struct process){ .pid = (unsigned int)getpid(),
					 .used = used ? strtoull(used, NULL, 10) : ~0ULL };
	*count = getenv("FAKE_CONTAINER") ? 1 : 2;
	return 0;
}
