/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports the daemon's state to the service manager, if there is one, by the protocol of
 * sd_notify(3). The manager's socket is that of the environment variable NOTIFY_SOCKET; without it
 * nothing happens. A state is queued and sent later if the socket is full or no descriptor is free;
 * after any other error it is dropped.
 *
 * Threads: the supervisor's main thread; no function blocks.
 */
#ifndef GPD_NOTIFY_H
#define GPD_NOTIFY_H

#include <stdint.h>

/* Sends the queued states and then this one, such as "READY=1"; or queues a copy of its first 63
 * bytes and logs a warning. The queue has 8 entries; if it is full, the oldest state is dropped. */
void gpd_notify(const char *state);
/* Reports that the configuration is about to be reloaded. The caller reports the end of the reload
 * with gpd_notify("READY=1"). */
void gpd_notify_reloading(void);

/* Called in each iteration of the loop: sends queued states, and a keep-alive for the manager's
 * watchdog at a third of its timeout, if the variable WATCHDOG_USEC is set for this process
 * (WATCHDOG_PID). A keep-alive is not queued. now_ms: time of gp_now_ms(). */
void gpd_notify_watchdog(int64_t now_ms);

#endif /* GPD_NOTIFY_H */
