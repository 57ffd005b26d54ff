/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvidia-smi asks for a private table of functions and ends without it.  It gets one whose
 * functions are not supported, which it can do with, but for those that list processes.
 */
#include "nvml/answer.h"
#include "nvml/entry.h"
#include "nvml/pool.h"
#include "nvml/usage.h"

#include <string.h>

#define FUNCTIONS 512

/* Places in the table, of nvidia-smi 535 and 550. */
enum {
	COMPUTE = 212,
	GRAPHICS = 213,
	MPS = 214
};

typedef int (*private_call)(void);

static private_call
function_at(size_t place)
{
	switch (place) {
	case COMPUTE:
		return (private_call)(void *)gpn_list_compute;
	case GRAPHICS:
	case MPS:
		return (private_call)(void *)gpn_list_none;
	default:
		return gpn_lacks;
	}
}

const unsigned char gpn_mark[16] = "gpupool nvml";

ANSWER(nvmlInternalGetExportTable, const void **table, const unsigned char *id)
{
	static const unsigned char known[16] = { 0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
						 0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4 };
	/* The size of all, then the functions. */
	static struct {
		size_t size;
		private_call functions[FUNCTIONS];
	} private_table;

	if (!table || !id)
		return GPN_INVALID_ARGUMENT;
	if (memcmp(id, gpn_mark, sizeof(gpn_mark)) == 0) {
		*table = gpn_mark;
		return GPN_SUCCESS;
	}
	if (memcmp(id, known, sizeof(known)) != 0)
		return GPN_NOT_FOUND;
	/* Whoever comes second writes the same. */
	for (size_t i = 0; i < FUNCTIONS; i++)
		__atomic_store_n(&private_table.functions[i], function_at(i), __ATOMIC_RELAXED);
	__atomic_store_n(&private_table.size, sizeof(private_table), __ATOMIC_RELEASE);
	*table = &private_table;
	return GPN_SUCCESS;
}
