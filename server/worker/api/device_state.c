/* SPDX-License-Identifier: Apache-2.0 */
/* NVML state of a device as a session sees it: memory within its quota, and its tenant's own
 * processes. */
#include "protocol/device_state.h"

#include "gpd_calls.h"
#include "server/worker/device/nvml.h"
#include "server/worker/session/session.h"

#include <stdbool.h>
#include <stdlib.h>

/* Lists sessions of the same tenant from the same machine, where their process numbers are valid.
 * times: with GPU time instead of memory. */
static CUresult
list_processes(const struct gpd_account *account, int device, bool times, struct gp_bytes *bytes)
{
	struct gp_state_process *all = calloc(GP_STATE_PROCESSES_MAX, sizeof(*all));
	size_t count = 0;

	if (!all)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (const struct gpd_ledger_session *other = NULL;
	     count < GP_STATE_PROCESSES_MAX &&
	     (other = gpd_ledger_next(account->ledger, other, GPD_LEDGER_ANY_WORKER));) {
		struct gpd_ledger_line line;
		uint64_t memory;

		if (other->tenant != account->entry->tenant ||
		    atomic_load(&other->machine) != atomic_load(&account->entry->machine))
			continue;
		gpd_ledger_read_line(account->ledger, other, device, &line);
		memory = GPD_LEDGER_IN_USE(&line);
		if (memory == 0)
			continue;
		all[count++] = (struct gp_state_process){
			.pid = atomic_load(&other->pid),
			.memory = times ? atomic_load(&line.gpu_ns) : memory,
		};
	}
	*bytes = (struct gp_bytes){ all, count * sizeof(*all) };
	return CUDA_SUCCESS;
}

static CUresult
read_sensors(int device, uint64_t *words, struct gp_bytes *bytes)
{
	char *texts = malloc(GPD_NVML_TEXTS_MAX);

	if (!texts)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*bytes = (struct gp_bytes){ texts, gpd_nvml_read(device, words, texts) };
	return CUDA_SUCCESS;
}

CUresult
gpd_gpDeviceState(struct gpd_session *session, const struct gp_args_gpDeviceState *args,
		  struct gp_reply_gpDeviceState *reply)
{
	const struct gp_args_gpMemoryInfo about = { .device = args->device };
	uint64_t *words = malloc(GP_STATE_WORDS * sizeof(*words));
	size_t count = args->what & GP_STATE_SENSORS ? GP_STATE_WORDS : GP_STATE_NVML;
	unsigned int who = args->what & (GP_STATE_PROCESSES | GP_STATE_TIMES);
	struct gp_reply_gpMemoryInfo memory;
	CUresult result =
		words ? gpd_gpMemoryInfo(session, &about, &memory) : CUDA_ERROR_OUT_OF_MEMORY;

	if (result == CUDA_SUCCESS && who == (GP_STATE_PROCESSES | GP_STATE_TIMES))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS && who)
		result = list_processes(&session->account, args->device, who == GP_STATE_TIMES,
					&reply->processes);
	if (result == CUDA_SUCCESS && args->what & GP_STATE_SENSORS)
		result = read_sensors(args->device, words, &reply->texts);
	if (result != CUDA_SUCCESS) {
		free((void *)reply->processes.data);
		reply->processes = (struct gp_bytes){ 0 };
		free(words);
		return result;
	}
	words[GP_STATE_MEMORY_TOTAL] = memory.total;
	/* The allowance counts as free: a client that only queries uses nothing. */
	words[GP_STATE_MEMORY_FREE] =
		memory.free + atomic_load(&session->account.entry->devices[args->device].allowance);
	if (words[GP_STATE_MEMORY_FREE] > memory.total)
		words[GP_STATE_MEMORY_FREE] = memory.total;
	reply->words = (struct gp_bytes){ words, count * sizeof(*words) };
	return CUDA_SUCCESS;
}
