/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports the daemon's state to the service manager, if there is one, by the protocol of
 * sd_notify(3). A state that the manager's socket does not accept is queued and sent later; without
 * a service manager nothing happens.
 *
 * Threads: the supervisor's main thread; no function blocks.
 */
#ifndef GPD_NOTIFY_H
#define GPD_NOTIFY_H

#include <stdint.h>

/* Sends a state such as "READY=1", or queues a copy of it. If the queue is full, the oldest state
 * is dropped. */
void gpd_notify(const char *state);
/* Reports that the configuration is about to be reloaded; READY=1 reports the end of the reload. */
void gpd_notify_reloading(void);

/* Called in each iteration of the loop: sends queued states, and the watchdog's keep-alive if the
 * manager requests it (WATCHDOG_USEC) and it is due. now_ms: time of gp_now_ms(). */
void gpd_notify_watchdog(int64_t now_ms);

#endif /* GPD_NOTIFY_H */
