/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Health of a device: whether the daemon may use it. A device becomes sick by an event that no new
 * context repairs, and stays so until an operator enables it after the repair.
 *
 * Initialized to zeros: healthy. Nothing has to be freed.
 *
 * Threads: the supervisor's main thread.
 */
#ifndef GPD_DEVICE_HEALTH_H
#define GPD_DEVICE_HEALTH_H

#include "server/common/ledger/channel.h"

#include <stdbool.h>
#include <stdint.h>

/* Size in bytes of gpd_device_health.reason. */
#define GPD_DEVICE_REASON_MAX 96
/* Number of successive failures to create a context after which the device is sick. */
#define GPD_DEVICE_FAILURES_MAX 3
/* Xids from this one on are unknown. */
#define GPD_DEVICE_XIDS 256

enum gpd_device_state {
	/* Initial state, and entered when the operator enables the device. New sessions see it. */
	GPD_DEVICE_HEALTHY,
	/* Entered by an event. No worker uses the device, and no new session sees it. Left when the
	 * operator enables the device. */
	GPD_DEVICE_SICK,
};

struct gpd_device_health {
	enum gpd_device_state state;        /* changed by device_health.c only */
	char reason[GPD_DEVICE_REASON_MAX]; /* why it is sick; "": it is healthy */
	unsigned int failures;              /* successive failures to create a context */
	/* A worker that has run sessions has failed to create a context. It is not trusted to make
	 * the device sick, but a new worker of the reserve tries the same. */
	bool suspect;
	/* Bit n: Xid n, which does not make a device sick, has been logged. */
	uint64_t logged_xids[GPD_DEVICE_XIDS / 64];
};

static inline bool
gpd_device_is_sick(const struct gpd_device_health *health)
{
	return health->state == GPD_DEVICE_SICK;
}

/* Handles an event of the device with this ordinal. An event that needs no repair is logged once.
 * Returns true if the device has become sick by it, which is not logged yet. */
bool gpd_device_health_handle(struct gpd_device_health *health, int ordinal,
			      const struct gpd_device_event *event);
/* Handles a failure to create a context on the device: the driver's error, or 0 if the worker hung
 * or ended. A lack of memory, and a device that another process has for itself, are no failures.
 * Returns true if the device has become sick. */
bool gpd_device_health_context_failed(struct gpd_device_health *health, int ordinal, int result);
/* The same, of a worker that has run sessions: makes the device suspect. Returns whether it is so
 * now. */
bool gpd_device_health_suspect(struct gpd_device_health *health, int result);
/* Called when a worker that has not run sessions has created a context. */
void gpd_device_health_context_created(struct gpd_device_health *health);
/* Makes a sick device healthy. Returns false if it is healthy already. */
bool gpd_device_health_enable(struct gpd_device_health *health);

#endif /* GPD_DEVICE_HEALTH_H */
