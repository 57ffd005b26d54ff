/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the service manager how the daemon is doing, if there is one (sd_notify's protocol).  Main
 * thread.  A manager that does not read is waited for, but not long.
 */
#ifndef GPD_NOTIFY_H
#define GPD_NOTIFY_H

#include <stdint.h>

void gpd_notify(const char *state);
/* Its configuration is about to be read again; READY=1 says that it has been. */
void gpd_notify_reloading(void);

/* In each turn: that the loop still turns, if the service manager wants to know (WATCHDOG_USEC). */
void gpd_notify_alive(int64_t now_ms);

#endif /* GPD_NOTIFY_H */
