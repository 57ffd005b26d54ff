/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of the device state that a daemon reports: words, texts and processes, cut from one input
 * at any places. */
#include "protocol/device_state.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A copy of the exact size, so that a sanitizer detects reads beyond it. */
static struct gp_bytes
copy_part(const uint8_t **data, size_t *size, size_t want)
{
	size_t count = want < *size ? want : *size;
	uint8_t *copy = count ? malloc(count) : NULL;

	if (copy)
		memcpy(copy, *data, count);
	*data += count;
	*size -= count;
	return (struct gp_bytes){ copy, copy ? count : 0 };
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gp_device_state *state = malloc(sizeof(*state));
	struct gp_bytes words, texts, processes;
	size_t cut;

	if (!state || size < 2) {
		free(state);
		return 0;
	}
	cut = data[1];
	words = copy_part(&data, &size, (size_t)data[0] * 8);
	texts = copy_part(&data, &size, cut);
	processes = copy_part(&data, &size, size);
	if (gp_device_state_decode(state, words, texts, processes)) {
		if (state->process_count > GP_STATE_PROCESSES_MAX)
			abort();
		for (int i = 0; i < GP_STATE_TEXTS; i++) {
			if (strnlen(state->texts[i], GP_STATE_TEXT_MAX) == GP_STATE_TEXT_MAX)
				abort();
		}
	}
	free((void *)words.data);
	free((void *)texts.data);
	free((void *)processes.data);
	free(state);
	return 0;
}
