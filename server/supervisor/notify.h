/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports the daemon's state to the service manager, if there is one, by the protocol of
 * sd_notify(3). A state that the manager's socket does not accept is queued and sent later.
 *
 * Threads: main.
 */
#ifndef GPD_NOTIFY_H
#define GPD_NOTIFY_H

#include <stdint.h>

/* Sends a state such as "READY=1", or queues it. */
void gpd_notify(const char *state);
/* Reports that the configuration is about to be reloaded; READY=1 reports the end of the reload. */
void gpd_notify_reloading(void);

/* Called in each iteration of the loop: sends queued states, and the watchdog's keep-alive if the
 * manager requests it (WATCHDOG_USEC). */
void gpd_notify_watchdog(int64_t now_ms);

#endif /* GPD_NOTIFY_H */
