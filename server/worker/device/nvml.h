/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the machine's own NVML says of this process's GPUs: temperature, power, clocks, names.  The
 * library is opened when it is first asked for; the software device answers for itself.  Any
 * thread.
 */
#ifndef GPD_NVML_H
#define GPD_NVML_H

#include "protocol/device_state.h"

#include <stddef.h>
#include <stdint.h>

/* Not older than this, by the clock of base/. */
#define GPD_NVML_AGE_NS UINT64_C(100000000)

/* Words from GP_STATE_NVML on, GP_STATE_NONE where it does not say, and texts, each with its NUL;
 * how long these are.  texts has room for all. */
#define GPD_NVML_TEXTS_MAX ((size_t)GP_STATE_TEXTS * GP_STATE_TEXT_MAX)
size_t gpd_nvml_read(int ordinal, uint64_t words[GP_STATE_WORDS], char *texts);

#endif /* GPD_NVML_H */
