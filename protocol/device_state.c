/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/device_state.h"

#include <string.h>

static size_t
min_size(size_t count, size_t max)
{
	return count < max ? count : max;
}

bool
gp_device_state_decode(struct gp_device_state *state, struct gp_bytes words, struct gp_bytes texts,
		       struct gp_bytes processes)
{
	const char *text = texts.data, *end = text + texts.size;
	size_t count = min_size(words.size / sizeof(uint64_t), GP_STATE_WORDS);

	if (words.size % sizeof(uint64_t) || processes.size % sizeof(struct gp_state_process) ||
	    (texts.size && end[-1] != '\0'))
		return false;
	memset(state->texts, 0, sizeof(state->texts));
	memset(state->words, 0xff, sizeof(state->words)); /* GP_STATE_NONE */
	if (count)
		memcpy(state->words, words.data, count * sizeof(uint64_t));
	for (int i = 0; i < GP_STATE_TEXTS && texts.size && text < end; i++) {
		size_t length = strlen(text);

		memcpy(state->texts[i], text, min_size(length, GP_STATE_TEXT_MAX - 1));
		text += length + 1;
	}
	state->process_count =
		min_size(processes.size / sizeof(*state->processes), GP_STATE_PROCESSES_MAX);
	if (state->process_count)
		memcpy(state->processes, processes.data,
		       state->process_count * sizeof(*state->processes));
	return true;
}
