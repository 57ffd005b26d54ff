/* SPDX-License-Identifier: Apache-2.0 */
/* Memory within the session's quota, and the processes of the session's tenant on this machine. */
#include "nvml/usage.h"

#include "nvml/answer.h"
#include "nvml/pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PROCESSES_COMPUTE,
	PROCESSES_GRAPHICS,
	PROCESSES_MPS,
	PROCESS_MODES
};

static int
read_memory(void *handle, const void *out, uint64_t *total, uint64_t *left)
{
	struct gpn_device *device;
	int r = gpn_find_device(handle, out, &device);

	return r == GPN_SUCCESS ? gpn_get_memory(device, total, left) : r;
}

GPN_FUNCTION(nvmlDeviceGetMemoryInfo, void *device, struct gpn_memory *memory)
{
	uint64_t total, left;
	int r = read_memory(device, memory, &total, &left);

	if (r == GPN_SUCCESS)
		*memory = (struct gpn_memory){ total, left, total - left };
	return r;
}

GPN_FUNCTION(nvmlDeviceGetMemoryInfo_v2, void *device, struct gpn_memory_v2 *memory)
{
	unsigned int version = GPN_VERSION(struct gpn_memory_v2, 2);
	uint64_t total, left;
	int r = read_memory(device, memory, &total, &left);

	if (r == GPN_SUCCESS && memory->version != version)
		r = GPN_ARGUMENT_VERSION_MISMATCH;
	if (r == GPN_SUCCESS)
		*memory = (struct gpn_memory_v2){ version, total, 0, left, total - left };
	return r;
}

/* BAR1 memory of the whole GPU, which no quota divides. */
GPN_FUNCTION(nvmlDeviceGetBAR1MemoryInfo, void *handle, struct gpn_memory *memory)
{
	struct gpn_device *device;
	int r = gpn_find_device(handle, memory, &device);
	uint64_t total, left;

	if (r == GPN_SUCCESS)
		r = gpn_get_value(device, GP_STATE_BAR1_TOTAL, &total);
	if (r == GPN_SUCCESS)
		r = gpn_get_value(device, GP_STATE_BAR1_FREE, &left);
	if (r == GPN_SUCCESS)
		*memory = (struct gpn_memory){ total, left, total - left };
	return r;
}

int
gpn_process_name(unsigned int pid, char *name, unsigned int size)
{
	char path[32], text[256];
	size_t length;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	file = fopen(path, "re");
	if (!file)
		return errno == EACCES ? GPN_NO_PERMISSION : GPN_NOT_FOUND;
	length = fread(text, 1, sizeof(text) - 1, file);
	(void)fclose(file);
	text[length] = '\0';
	/* NVML truncates the name as well. */
	(void)snprintf(name, size, "%s", text);
	return GPN_SUCCESS;
}

/* Writes one process; the layout depends on the version. */
typedef void (*put_process)(void *list, size_t index, const struct gp_state_process *process);

static void
put_v1(void *list, size_t index, const struct gp_state_process *process)
{
	((struct gpn_process_v1 *)list)[index] = (struct gpn_process_v1){
		.pid = (unsigned int)process->pid,
		.memory = process->memory,
	};
}

static void
put_v2(void *list, size_t index, const struct gp_state_process *process)
{
	((struct gpn_process *)list)[index] = (struct gpn_process){
		.pid = (unsigned int)process->pid,
		.memory = process->memory,
		.gpu_instance = GPN_NO_INSTANCE,
		.compute_instance = GPN_NO_INSTANCE,
	};
}

static void
put_detail(void *list, size_t index, const struct gp_state_process *process)
{
	((struct gpn_process_detail *)list)[index] = (struct gpn_process_detail){
		.pid = (unsigned int)process->pid,
		.memory = process->memory,
		.gpu_instance = GPN_NO_INSTANCE,
		.compute_instance = GPN_NO_INSTANCE,
		.protected_memory = GPN_NOT_AVAILABLE,
	};
}

static void
put_named(void *list, size_t index, const struct gp_state_process *process)
{
	struct gpn_process_named *named = (struct gpn_process_named *)list + index;

	put_detail(&named->process, 0, process);
	if (gpn_process_name((unsigned int)process->pid, named->name, GPN_NAME_SIZE) != GPN_SUCCESS)
		named->name[0] = '\0';
}

/* Writes the processes if they fit into *count entries; sets *count to their number. */
static int
list_processes(void *handle, int mode, unsigned int *count, void *list, put_process put)
{
	struct gp_state_process *all;
	struct gpn_device *device;
	int r = gpn_find_device(handle, count && (!*count || list), &device);
	size_t found = 0;

	if (r != GPN_SUCCESS)
		return r;
	all = calloc(GP_STATE_PROCESSES_MAX, sizeof(*all));
	/* All processes of a pool are compute processes, also with MPS. */
	r = !all                        ? GPN_MEMORY
	    : mode == PROCESSES_COMPUTE ? gpn_get_processes(device, all, &found)
					: GPN_SUCCESS;
	if (r == GPN_SUCCESS && found > *count)
		r = GPN_INSUFFICIENT_SIZE;
	for (size_t i = 0; r == GPN_SUCCESS && i < found; i++)
		put(list, i, &all[i]);
	if (r == GPN_SUCCESS || r == GPN_INSUFFICIENT_SIZE)
		*count = (unsigned int)found;
	free(all);
	return r;
}

#define PROCESSES(name, mode)                                                                      \
	GPN_FUNCTION(name, void *device, unsigned int *count, struct gpn_process_v1 *list)         \
	{                                                                                          \
		return list_processes(device, mode, count, list, put_v1);                          \
	}                                                                                          \
	GPN_FUNCTION(name##_v2, void *device, unsigned int *count, struct gpn_process *list)       \
	{                                                                                          \
		return list_processes(device, mode, count, list, put_v2);                          \
	}                                                                                          \
	GPN_FUNCTION(name##_v3, void *device, unsigned int *count, struct gpn_process *list)       \
	{                                                                                          \
		return list_processes(device, mode, count, list, put_v2);                          \
	}
PROCESSES(nvmlDeviceGetComputeRunningProcesses, PROCESSES_COMPUTE)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, PROCESSES_GRAPHICS)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, PROCESSES_MPS)

GPN_FUNCTION(nvmlDeviceGetRunningProcessDetailList, void *handle, struct gpn_process_list *list)
{
	struct gpn_device *device;
	int r = gpn_find_device(handle, list, &device);

	if (r != GPN_SUCCESS)
		return r;
	if (list->version != GPN_VERSION(struct gpn_process_list, 1))
		return GPN_ARGUMENT_VERSION_MISMATCH;
	return list->mode >= PROCESS_MODES ? GPN_INVALID_ARGUMENT
					   : list_processes(handle, (int)list->mode, &list->count,
							    list->processes, put_detail);
}

int
gpn_list_compute(void *handle, unsigned int *count, struct gpn_process_named *list)
{
	return list_processes(handle, PROCESSES_COMPUTE, count, list, put_named);
}

int
gpn_list_nothing(void *handle, unsigned int *count, struct gpn_process_named *list)
{
	return list_processes(handle, PROCESSES_GRAPHICS, count, list, put_named);
}
