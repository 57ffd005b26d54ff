/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports the daemon's state to the service manager, if there is one, by the protocol of
 * sd_notify(3). A state is queued and sent later if the manager's socket is full; after any other
 * error it is dropped. Without a service manager nothing happens.
 *
 * Threads: the supervisor's main thread; no function blocks.
 */
#ifndef GPD_NOTIFY_H
#define GPD_NOTIFY_H

#include <stdint.h>

/* Sends a state such as "READY=1", or queues a copy of its first 63 bytes and logs a warning. The
 * queue has 8 entries; if it is full, the oldest state is dropped. */
void gpd_notify(const char *state);
/* Reports that the configuration is about to be reloaded. The caller reports the end of the reload
 * with gpd_notify("READY=1"). */
void gpd_notify_reloading(void);

/* Called in each iteration of the loop: sends queued states, and a keep-alive for the manager's
 * watchdog at a third of its timeout (WATCHDOG_USEC), if it is set. now_ms: time of gp_now_ms(). */
void gpd_notify_watchdog(int64_t now_ms);

#endif /* GPD_NOTIFY_H */
