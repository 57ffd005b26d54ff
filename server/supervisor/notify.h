/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports to the service manager how the daemon is doing, if there is one (sd_notify's protocol).
 * A manager that does not read its socket gets the states later.
 *
 * Threads: main.
 */
#ifndef GPD_NOTIFY_H
#define GPD_NOTIFY_H

#include <stdint.h>

void gpd_notify(const char *state);
/* Its configuration is about to be read again; READY=1 says that it has been. */
void gpd_notify_reloading(void);

/* In each turn: sends states that wait, and that the loop still turns, if the service manager wants
 * to know that (WATCHDOG_USEC). */
void gpd_notify_watchdog(int64_t now_ms);

#endif /* GPD_NOTIFY_H */
