/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Injected faults of devices, for tests: the file that the environment variable GPUPOOL_SOFT_EVENTS
 * names, which a test appends lines to. A line is the number of a device and words:
 *
 *   0 xid 79      the driver reports this Xid
 *   0 ecc         the driver reports a double-bit ECC error
 *   0 lost        the device has fallen off the bus, until "0 found"
 *   0 broken      no context can be created on the device, until "0 works"
 *   0 full        the device has no memory for another context, until "0 roomy"
 *
 * Other lines, and a last line without its newline, are ignored. Without the variable there are no
 * events, as with a driver that does not support them.
 *
 * Threads: any.
 */
#ifndef GS_DEVICE_EVENT_H
#define GS_DEVICE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

/* An event that the driver reports. */
struct gs_device_event {
	int device;
	bool ecc;     /* a double-bit ECC error; false: an Xid */
	uint64_t xid; /* number of the Xid */
};

/* A state that lasts from one line to another. */
enum gs_device_fault {
	GS_DEVICE_LOST,
	GS_DEVICE_BROKEN,
	GS_DEVICE_FULL,
};

/* Returns whether events can be injected. */
bool gs_device_event_supported(void);
/* Returns the size of the file in bytes: events after this offset happen later. */
long gs_device_event_now(void);
/* Reads the first event at or after *offset_p, and moves *offset_p past it, or to the end. Returns
 * false if there is none. */
bool gs_device_event_next(long *offset_p, struct gs_device_event *event);
/* Returns whether the device has the fault now. */
bool gs_device_has_fault(int device, enum gs_device_fault fault);

#endif /* GS_DEVICE_EVENT_H */
