/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices that a process of the daemon may use: which of them, and the UUIDs by which it
 * recognizes them, because the driver numbers the devices that a process sees, and one that has
 * fallen off the bus is not among them. The supervisor passes the list to workers and the device
 * monitor as an argument.
 *
 * Threads: any. Nothing has to be freed.
 */
#ifndef GPD_DEVICE_LIST_H
#define GPD_DEVICE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum number of devices; same as GPD_LEDGER_DEVICES. */
#define GPD_DEVICE_LIST_MAX 32
/* Size of a list's text and of a UUID's text, with the terminating zeros. */
#define GPD_DEVICE_LIST_TEXT_MAX (24 + GPD_DEVICE_LIST_MAX * 42)
#define GPD_DEVICE_UUID_TEXT_SIZE 41

/* Devices by the daemon's ordinal. */
struct gpd_device_list {
	uint32_t used;     /* bit n: the process may use device n */
	uint32_t contexts; /* bit n: a worker creates a context on device n when it starts */
	int count;         /* number of devices; 0: not known yet, and ordinals are the driver's */
	uint8_t uuids[GPD_DEVICE_LIST_MAX][16];
};

/* Writes the list as text without spaces. */
void gpd_device_list_format(const struct gpd_device_list *list,
			    char text[GPD_DEVICE_LIST_TEXT_MAX]);
/* Reads what gpd_device_list_format() has written; the UUIDs may be missing. Returns false, with
 * *list undefined, for any other text. */
bool gpd_device_list_parse(const char *text, struct gpd_device_list *list);
/* Returns whether device n may be used. */
bool gpd_device_list_has(const struct gpd_device_list *list, int device);
/* Writes the device's UUID as NVIDIA's tools do: "GPU-...". */
void gpd_device_list_format_uuid(const struct gpd_device_list *list, int device,
				 char text[GPD_DEVICE_UUID_TEXT_SIZE]);

#endif /* GPD_DEVICE_LIST_H */
