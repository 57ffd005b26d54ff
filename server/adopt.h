/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that the supervisor hands to the worker: lane 0 of a session, which starts it, and
 * its data lanes.  Main thread.
 */
#ifndef GPD_ADOPT_H
#define GPD_ADOPT_H

struct gpd_channel_message;

/* Of type GPD_CHANNEL_LANE, GPD_CHANNEL_DATA_LANE. */
void gpd_adopt_lane(const struct gpd_channel_message *message);
void gpd_adopt_data_lane(const struct gpd_channel_message *message);

#endif /* GPD_ADOPT_H */
