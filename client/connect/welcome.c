/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of a daemon's Welcome. */
#include "client/connect/connect.h"

#include <string.h>

/* Bounds of accepted values. */
#define ADDRESS_MAX ((uint64_t)1 << 47)
#define GRANULARITY_MIN ((uint64_t)4 << 10)
#define GRANULARITY_MAX ((uint64_t)1 << 30)
#define INITIAL_MAX ((uint64_t)1 << 30)
#define ATTRIBUTES_MAX 1024
#define LIMITS_MAX 64
#define LINKS_MAX 1024
#define NAME_MAX_LEN 255

static bool
device_is_valid(const Gpupool__Device *device)
{
	return device->name && strlen(device->name) <= NAME_MAX_LEN && device->uuid.len == 16 &&
	       device->ordinal >= 0 && device->n_attributes <= ATTRIBUTES_MAX &&
	       device->n_limits <= LIMITS_MAX && device->n_p2p_attributes <= LINKS_MAX;
}

bool
gpc_window_is_valid(const Gpupool__Window *window, uint64_t granularity)
{
	return window && window->size > 0 && window->size <= ADDRESS_MAX && window->address > 0 &&
	       window->address < ADDRESS_MAX && window->size <= ADDRESS_MAX - window->address &&
	       window->address % granularity == 0 && window->size % granularity == 0;
}

int
gpc_welcome_check(const Gpupool__Welcome *welcome, const char **what_p)
{
	const Gpupool__Limits *limits = welcome->limits;
	uint64_t granularity = limits ? limits->heap_granularity : 0;

	if (granularity < GRANULARITY_MIN || granularity > GRANULARITY_MAX ||
	    (granularity & (granularity - 1)) != 0)
		*what_p = "granularity";
	else if (limits->heap_size % granularity != 0 || limits->heap_size > ADDRESS_MAX)
		*what_p = "heap";
	else if (!gpc_window_is_valid(welcome->window, granularity))
		*what_p = "window";
	else if (welcome->ticket.len != GP_TICKET_SIZE)
		*what_p = "ticket";
	else if (welcome->n_devices > GPC_DEVICES_MAX)
		*what_p = "number of devices";
	else
		*what_p = NULL;
	for (size_t i = 0; !*what_p && i < welcome->n_granted; i++) {
		if (welcome->granted[i] % granularity != 0 || welcome->granted[i] > INITIAL_MAX)
			*what_p = "granted memory";
	}
	for (size_t i = 0; !*what_p && i < welcome->n_devices; i++) {
		if (!device_is_valid(welcome->devices[i]))
			*what_p = "device";
	}
	return *what_p ? GP_E_INVALID : 0;
}
