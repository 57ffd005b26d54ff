/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the service manager how the daemon is doing, if there is one (sd_notify's protocol). */
#ifndef GPD_NOTIFY_H
#define GPD_NOTIFY_H

void gpd_notify(const char *state);

#endif /* GPD_NOTIFY_H */
