/* SPDX-License-Identifier: Apache-2.0 */
#include "client/entry/proc_address.h"

#include <stdbool.h>
#include <string.h>

#define FLAGS_ALL                                                                                  \
	(CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)

static size_t
table_find_base(const struct gpc_proc_entry *table, size_t count, const char *base)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(table[middle].base, base) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

CUresult
gpc_proc_lookup(const struct gpc_proc_entry *table, size_t count, const char *base, int version,
		cuuint64_t flags, int driver_version, const struct gpc_proc_entry **entry_p,
		CUdriverProcAddressQueryResult *status_p)
{
	/* The newest entry that fits, for the legacy and for the per-thread variant. */
	const struct gpc_proc_entry *fitting[2] = { NULL, NULL };
	bool exists[2] = { false, false };
	int wanted;

	if (flags > FLAGS_ALL)
		return CUDA_ERROR_INVALID_VALUE;

	for (size_t i = table_find_base(table, count, base);
	     i < count && strcmp(table[i].base, base) == 0; i++) {
		if (table[i].version > driver_version)
			continue;
		exists[table[i].per_thread] = true;
		if ((unsigned int)table[i].version <= (unsigned int)version)
			fitting[table[i].per_thread] = &table[i];
	}

	/* If a per-thread variant exists, the legacy variant is never returned in its place. */
	wanted = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) && exists[1];
	*entry_p = fitting[wanted];
	if (*entry_p)
		*status_p = CU_GET_PROC_ADDRESS_SUCCESS;
	else if (exists[0] || exists[1])
		*status_p = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
	else
		*status_p = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return CUDA_SUCCESS;
}

CUresult
gpc_proc_address_v1(const char *base, void **function_p, int version, cuuint64_t flags,
		    int driver_version)
{
	void *function;
	CUresult result = gpc_proc_address_v2(base, function_p ? &function : NULL, version, flags,
					      driver_version, NULL);

	if (result != CUDA_SUCCESS)
		return result;
	if (!function)
		return CUDA_ERROR_NOT_FOUND;
	*function_p = function;
	return CUDA_SUCCESS;
}

CUresult
gpc_proc_address_v2(const char *base, void **function_p, int version, cuuint64_t flags,
		    int driver_version, CUdriverProcAddressQueryResult *status_p)
{
	CUdriverProcAddressQueryResult status;
	const struct gpc_proc_entry *entry;
	CUresult result;

	if (!base || !function_p)
		return CUDA_ERROR_INVALID_VALUE;
	result = gpc_proc_lookup(gpc_proc_table, gpc_proc_count, base, version, flags,
				 driver_version, &entry, &status);
	if (result != CUDA_SUCCESS)
		return result;
	*function_p = entry ? (void *)gpc_entry_address[entry->symbol] : NULL;
	if (status_p)
		*status_p = status;
	return CUDA_SUCCESS;
}
