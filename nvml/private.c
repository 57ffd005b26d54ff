/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private function tables of nvidia-smi, without which it exits. Most functions in them return "not
 * supported", which nvidia-smi tolerates; those that list processes and their utilization, and the
 * topology of two devices, are implemented. None of them is documented: this file is based on the
 * calls that nvidia-smi makes and on its output.
 */
#include "client/base/log.h"
#include "nvml/answer.h"
#include "nvml/entry.h"
#include "nvml/pool.h"
#include "nvml/usage.h"
#include "nvml/utilization.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS 600

/* Indices in the table, for nvidia-smi 470 to 595. */
enum {
	TOPOLOGY = 22,
	LOG = 25,
	MONITORED = 71,
	SAMPLES = 144,
	COMPUTE = 212,
	GRAPHICS = 213,
	MPS = 214
};

enum {
	LEVEL_NEAREST = 0,
	LEVEL_SYSTEM = 4
};

/*
 * A sample consists of a time, and for each engine the utilization by one process. Up to version
 * 535 a GPU has four engines here, later six, and the caller does not pass its version; so each
 * process gets one sample in either layout, at offsets that contain no process in the other layout.
 */
#define SAMPLE_HEAD 8
#define SAMPLE_ENGINE 80
#define SAMPLE_PERCENT 8 /* of the first engine, the multiprocessors */
#define SAMPLE_PID 16
#define SAMPLES_MAX 4096
#define SAMPLE_535 (SAMPLE_HEAD + 4 * SAMPLE_ENGINE)
#define SAMPLE_550 (SAMPLE_HEAD + 6 * SAMPLE_ENGINE)

typedef int (*private_call)(void);

/* With GPUPOOL_LOG=tables this shows the calls of an nvidia-smi that is newer than this file. */
static int
call_not_supported(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e,
		   unsigned int place)
{
	gpc_log(GPC_LOG_TABLES,
		"NVML's private function %u(%#jx, %#jx, %#jx, %#jx, %#jx) is not supported", place,
		(uintmax_t)a, (uintmax_t)b, (uintmax_t)c, (uintmax_t)d, (uintmax_t)e);
	return gpn_not_supported();
}

/* One function per index. The index is the last argument of call_not_supported(), so that the other
 * arguments stay in their registers. */
#define DEFINE(place)                                                                              \
	static int unsupported_##place(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d,         \
				       uintptr_t e)                                                \
	{                                                                                          \
		return call_not_supported(a, b, c, d, e, 1##place - 1000);                         \
	}
#define LIST(place) (private_call)(void *) unsupported_##place,
/* clang-format off */
#define TEN(X, tens)                                                                               \
	X(tens##0) X(tens##1) X(tens##2) X(tens##3) X(tens##4)                                     \
	X(tens##5) X(tens##6) X(tens##7) X(tens##8) X(tens##9)
#define HUNDRED(X, hundreds)                                                                       \
	TEN(X, hundreds##0) TEN(X, hundreds##1) TEN(X, hundreds##2) TEN(X, hundreds##3)            \
	TEN(X, hundreds##4) TEN(X, hundreds##5) TEN(X, hundreds##6) TEN(X, hundreds##7)            \
	TEN(X, hundreds##8) TEN(X, hundreds##9)
#define ALL(X)                                                                                     \
	HUNDRED(X, 0) HUNDRED(X, 1) HUNDRED(X, 2) HUNDRED(X, 3) HUNDRED(X, 4) HUNDRED(X, 5)

ALL(DEFINE)
static const private_call unsupported_calls[FUNCTIONS] = { ALL(LIST) };
/* clang-format on */

/* Returns whether a sample in this layout has a process ID at this offset. */
static bool
offset_is_process(size_t place, size_t sample_size)
{
	size_t inside = place % sample_size;

	return inside >= SAMPLE_PID && (inside - SAMPLE_PID) % SAMPLE_ENGINE == 0;
}

static void
put_uint(unsigned char *samples, size_t place, unsigned int word)
{
	memcpy(samples + place, &word, sizeof(word));
}

/* nvidia-smi displays the mean over all samples, so one sample contains the value multiplied by
 * their number. */
static void
put_samples(const struct gpn_utilization_samples *shares, size_t size, size_t other_size,
	    unsigned int count, unsigned char *samples)
{
	size_t used = 0;

	for (unsigned int i = 0; i < count && used < shares->count; i++) {
		size_t percent = i * size + SAMPLE_PERCENT, pid = i * size + SAMPLE_PID;

		if (offset_is_process(percent, other_size) || offset_is_process(pid, other_size))
			continue;
		put_uint(samples, percent, shares->list[used].percent * count);
		put_uint(samples, pid, shares->list[used].pid);
		used++;
	}
}

/* Utilization by process since a time. *count: capacity in samples, then their number. The data
 * must fit into the buffer in either layout. */
static int
list_samples(void *handle, unsigned long long since_us, void *unknown, unsigned int *count,
	     unsigned char *samples)
{
	struct gpn_device *device;
	struct gpn_utilization_samples *shares;
	int r = gpn_find_device(handle, count && samples && *count <= SAMPLES_MAX, &device);

	(void)since_us;
	(void)unknown;
	if (r != GPN_SUCCESS)
		return r;
	shares = malloc(sizeof(*shares));
	r = shares ? gpn_utilization_samples(device, shares) : GPN_MEMORY;
	if (r == GPN_SUCCESS) {
		memset(samples, 0, *count * (size_t)SAMPLE_535);
		*count = *count * SAMPLE_535 / SAMPLE_550;
		put_samples(shares, SAMPLE_535, SAMPLE_550, *count, samples);
		put_samples(shares, SAMPLE_550, SAMPLE_535, *count, samples);
	}
	free(shares);
	return r;
}

/* Returns whether a GPU can be monitored. */
static int
is_monitored(void *handle, int *monitored)
{
	struct gpn_device *device;
	int r = gpn_find_device(handle, monitored, &device);

	if (r == GPN_SUCCESS)
		*monitored = 1;
	return r;
}

/* Defined in device.c. */
int gpn_nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, struct gpn_device **device);

/* Topology of two devices by PCI bus ID: as nvmlDeviceGetTopologyCommonAncestor, with other
 * values. */
static int
topology_between(const char *one, const char *other, int *level)
{
	struct gpn_device *first, *second;
	int r = gpn_nvmlDeviceGetHandleByPciBusId_v2(one, &first);

	if (r == GPN_SUCCESS)
		r = gpn_nvmlDeviceGetHandleByPciBusId_v2(other, &second);
	if (r == GPN_SUCCESS && !level)
		r = GPN_INVALID_ARGUMENT;
	if (r == GPN_SUCCESS)
		*level = first == second ? LEVEL_NEAREST : LEVEL_SYSTEM;
	return r;
}

/* nvidia-smi reports its actions for a log. */
static int
log_ignore(void)
{
	return gpn_check_arguments(true);
}

static private_call
get_function(size_t place)
{
	switch (place) {
	case TOPOLOGY:
		return (private_call)(void *)topology_between;
	case LOG:
		return log_ignore;
	case MONITORED:
		return (private_call)(void *)is_monitored;
	case SAMPLES:
		return (private_call)(void *)list_samples;
	case COMPUTE:
		return (private_call)(void *)gpn_list_compute;
	case GRAPHICS:
	case MPS:
		return (private_call)(void *)gpn_list_nothing;
	default:
		return unsupported_calls[place];
	}
}

const unsigned char gpn_table_id[16] = "gpupool nvml";

GPN_FUNCTION(nvmlInternalGetExportTable, const void **table, const unsigned char *id)
{
	static const unsigned char known[16] = { 0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
						 0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4 };
	/* The size in bytes, then the functions. */
	static struct {
		size_t size;
		private_call functions[FUNCTIONS];
	} private_table;

	if (!table || !id)
		return GPN_INVALID_ARGUMENT;
	if (memcmp(id, gpn_table_id, sizeof(gpn_table_id)) == 0) {
		*table = gpn_table_id;
		return GPN_SUCCESS;
	}
	if (memcmp(id, known, sizeof(known)) != 0)
		return GPN_NOT_FOUND;
	/* Concurrent callers write the same values. */
	for (size_t i = 0; i < FUNCTIONS; i++)
		__atomic_store_n(&private_table.functions[i], get_function(i), __ATOMIC_RELAXED);
	__atomic_store_n(&private_table.size, sizeof(private_table), __ATOMIC_RELEASE);
	*table = &private_table;
	return GPN_SUCCESS;
}
