/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of this process's GPUs as reported by the machine's NVML: temperature, power, clocks,
 * names. The library is opened at the first query; the software device has NVML functions of its
 * own.
 *
 * Threads: any; queries are serialized and may block in NVML.
 * Errors: none; values that are not available are GP_STATE_NONE or empty texts.
 */
#ifndef GPD_NVML_H
#define GPD_NVML_H

#include "protocol/device_state.h"

#include <stddef.h>
#include <stdint.h>

/* Maximum age of the cached values in nanoseconds. */
#define GPD_NVML_AGE_NS UINT64_C(100000000)

/* Maximum total size of the texts in bytes. */
#define GPD_NVML_TEXTS_MAX ((size_t)GP_STATE_TEXTS * GP_STATE_TEXT_MAX)
/* Fills in the state of the device with this ordinal, which must be valid: the elements of words
 * from index GP_STATE_NVML on (GP_STATE_NONE: not reported), and all GP_STATE_TEXTS texts, each
 * NUL-terminated, one after the other. Earlier elements of words are not changed. texts: buffer of
 * GPD_NVML_TEXTS_MAX bytes. Returns the total size of the texts in bytes. */
size_t gpd_nvml_read(int ordinal, uint64_t words[GP_STATE_WORDS], char *texts);

/* Returns the free memory of the device in bytes, which may have no context; 0: not known. */
uint64_t gpd_nvml_get_free_memory(int ordinal);
/* Returns the device memory in bytes that this process uses on the device, of which NVML knows even
 * beside other processes. Where it does not (in a container), returns by how much the free memory
 * is now less than `before`, of gpd_nvml_get_free_memory(). 0: not known. */
uint64_t gpd_nvml_get_own_memory(int ordinal, uint64_t before);

#endif /* GPD_NVML_H */
