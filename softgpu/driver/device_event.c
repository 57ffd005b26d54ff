/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/driver/device_event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE "GPUPOOL_SOFT_EVENTS"
#define LINE_MAX_SIZE 64

static const struct {
	const char *begin, *end;
} faults[] = {
	[GS_DEVICE_LOST] = { "lost", "found" },
	[GS_DEVICE_BROKEN] = { "broken", "works" },
	[GS_DEVICE_FULL] = { "full", "roomy" },
};

bool
gs_device_event_supported(void)
{
	return getenv(VARIABLE) != NULL;
}

static FILE *
events_open(void)
{
	const char *path = getenv(VARIABLE);

	return path ? fopen(path, "re") : NULL;
}

/* Reads a complete line: the device and the words after it. */
static bool
line_read(FILE *file, int *device_p, char word[LINE_MAX_SIZE], uint64_t *number_p)
{
	char line[LINE_MAX_SIZE];
	unsigned long long number = 0;

	if (!fgets(line, sizeof(line), file) || !strchr(line, '\n'))
		return false;
	*word = '\0';
	*device_p = -1;
	/* No more than the line, which is as long as the word. */
	(void)sscanf(line, "%d %63s %llu", device_p, word, &number);
	*number_p = number;
	return true;
}

long
gs_device_event_now(void)
{
	FILE *file = events_open();
	long size = 0;

	if (!file)
		return 0;
	if (fseek(file, 0, SEEK_END) == 0)
		size = ftell(file);
	(void)fclose(file);
	return size;
}

bool
gs_device_event_next(long *offset_p, struct gs_device_event *event)
{
	FILE *file = events_open();
	char word[LINE_MAX_SIZE];
	bool found = false;

	if (!file || fseek(file, *offset_p, SEEK_SET)) {
		if (file)
			(void)fclose(file);
		return false;
	}
	while (!found && line_read(file, &event->device, word, &event->xid)) {
		event->ecc = strcmp(word, "ecc") == 0;
		found = event->ecc || strcmp(word, "xid") == 0;
		*offset_p = ftell(file);
	}
	(void)fclose(file);
	return found;
}

bool
gs_device_has_fault(int device, enum gs_device_fault fault)
{
	FILE *file = events_open();
	char word[LINE_MAX_SIZE];
	bool has = false;
	uint64_t number;
	int of;

	while (file && line_read(file, &of, word, &number)) {
		if (of != device)
			continue;
		if (strcmp(word, faults[fault].begin) == 0)
			has = true;
		else if (strcmp(word, faults[fault].end) == 0)
			has = false;
	}
	if (file)
		(void)fclose(file);
	return has;
}
