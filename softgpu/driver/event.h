/* SPDX-License-Identifier: Apache-2.0 */
/* Events: the latest mark recorded, with the time at which its stream got there. */
#ifndef GS_EVENT_H
#define GS_EVENT_H

void gs_event_destroy_all(void);

#endif /* GS_EVENT_H */
