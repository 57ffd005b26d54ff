/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of the GPU's work that a daemon reports for the timeline: each line that is written is
 * complete. */
#include "client/trace/gpu_trace.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Printable, and an object that begins and ends. */
static size_t
check_line(const char *line, size_t left)
{
	size_t size = 0;

	while (size < left && line[size] != '\n') {
		if (line[size] < 0x20 || line[size] > 0x7e)
			abort();
		size++;
	}
	if (size > 0 && size < left && line[size - 1] != ',' && line[size - 1] != '}')
		abort();
	return size < left ? size + 1 : size;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gpc_gpu_trace *gpu = calloc(1, sizeof(*gpu));
	uint8_t *copy = malloc(size + 1);
	struct gpc_trace_text text = { .begun_ns = 1000 };

	if (gpu && copy && size > 0) {
		memcpy(copy, data, size);
		gpc_gpu_trace_sync_clock(gpu, 5, data[0], 9);
		/* Twice, because names are cached. */
		(void)gpc_gpu_trace_write(&text, gpu, (struct gp_bytes){ copy, size });
		(void)gpc_gpu_trace_write(&text, gpu, (struct gp_bytes){ copy, size });
		for (size_t at = 0; at < text.size;)
			at += check_line(text.data + at, text.size - at);
	}
	gpc_trace_text_fini(&text);
	if (gpu)
		gpc_gpu_trace_fini(gpu);
	free(gpu);
	free(copy);
	return 0;
}
