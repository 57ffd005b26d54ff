/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/tenancy/device_health.h"

#include "server/common/base/log.h"

#include <cuda.h>
#include <stddef.h>
#include <stdio.h>

/* Xids after which NVIDIA's catalog of Xids requires a reset of the GPU or of the machine. All
 * others are faults of programs (13, 31, 43, 45), contained errors (94), notices, or unknown: a
 * program must not be able to take a GPU from all others. */
static const struct {
	uint32_t number;
	const char *text;
} sick_xids[] = {
	{ 46, "the GPU has stopped processing" },
	{ 48, "double-bit ECC error" },
	{ 62, "the GPU's microcontroller has halted" },
	{ 64, "a faulty row of memory cannot be replaced" },
	{ 74, "NVLink error" },
	{ 79, "the GPU has fallen off the bus" },
	{ 95, "uncontained memory error" },
	{ 110, "security fault of the GPU" },
	{ 119, "the GPU's system processor does not answer" },
	{ 120, "fault of the GPU's system processor" },
	{ 140, "unrecovered ECC error" },
	{ 143, "the GPU cannot be initialized" },
};

/* All changes of state. reason: NULL for HEALTHY. Returns false if it is in the state already. */
static bool
health_set_state(struct gpd_device_health *health, enum gpd_device_state state, const char *reason)
{
	if (health->state == state)
		return false;
	health->state = state;
	health->failures = 0;
	health->suspect = false;
	(void)snprintf(health->reason, sizeof(health->reason), "%s", reason ? reason : "");
	return true;
}

static const char *
xid_describe(uint32_t number)
{
	for (size_t i = 0; i < sizeof(sick_xids) / sizeof(sick_xids[0]); i++) {
		if (sick_xids[i].number == number)
			return sick_xids[i].text;
	}
	return NULL;
}

/* Programs can cause any number of them. */
static void
xid_log_once(struct gpd_device_health *health, int ordinal, uint32_t number)
{
	uint64_t *word, bit = UINT64_C(1) << number % 64;

	if (number >= GPD_DEVICE_XIDS)
		return;
	word = &health->logged_xids[number / 64];
	if (*word & bit)
		return;
	*word |= bit;
	gpd_info("device %d: Xid %u, which needs no repair of the device; further ones are not "
		 "logged",
		 ordinal, number);
}

bool
gpd_device_health_handle(struct gpd_device_health *health, int ordinal,
			 const struct gpd_device_event *event)
{
	char reason[GPD_DEVICE_REASON_MAX];
	const char *text;

	switch (event->kind) {
	case GPD_DEVICE_EVENT_XID:
		text = xid_describe(event->number);
		if (!text) {
			xid_log_once(health, ordinal, event->number);
			return false;
		}
		(void)snprintf(reason, sizeof(reason), "Xid %u: %s", event->number, text);
		return health_set_state(health, GPD_DEVICE_SICK, reason);
	case GPD_DEVICE_EVENT_DOUBLE_BIT_ECC:
		return health_set_state(health, GPD_DEVICE_SICK, "double-bit ECC error");
	case GPD_DEVICE_EVENT_LOST:
		return health_set_state(health, GPD_DEVICE_SICK, "the GPU has fallen off the bus");
	default:
		return false;
	}
}

static bool
is_failure(const struct gpd_device_health *health, int result)
{
	return result != CUDA_ERROR_OUT_OF_MEMORY && result != CUDA_ERROR_DEVICE_UNAVAILABLE &&
	       health->state != GPD_DEVICE_SICK;
}

bool
gpd_device_health_suspect(struct gpd_device_health *health, int result)
{
	health->suspect = health->suspect || is_failure(health, result);
	return health->suspect;
}

bool
gpd_device_health_context_failed(struct gpd_device_health *health, int ordinal, int result)
{
	char reason[GPD_DEVICE_REASON_MAX];

	if (!is_failure(health, result)) {
		health->suspect = false;
		return false;
	}
	health->failures++;
	gpd_warning("device %d: no context can be created, failure %u of %d in a row", ordinal,
		    health->failures, GPD_DEVICE_FAILURES_MAX);
	if (health->failures < GPD_DEVICE_FAILURES_MAX)
		return false;
	if (result)
		(void)snprintf(reason, sizeof(reason), "no context can be created: CUDA error %d",
			       result);
	else
		(void)snprintf(reason, sizeof(reason),
			       "no context can be created: workers hang or crash");
	return health_set_state(health, GPD_DEVICE_SICK, reason);
}

void
gpd_device_health_context_created(struct gpd_device_health *health)
{
	health->failures = 0;
	health->suspect = false;
}

bool
gpd_device_health_enable(struct gpd_device_health *health)
{
	return health_set_state(health, GPD_DEVICE_HEALTHY, NULL);
}
