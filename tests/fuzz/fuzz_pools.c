/* SPDX-License-Identifier: Apache-2.0 */
/* pools.conf: pools with an address, or a text that says what is wrong. */
#include "cli/pools.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cli_pools pools = { 0 };
	char error[CLI_ERROR_MAX] = "", *text = malloc(size + 1);
	int r;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	r = cli_pools_parse(&pools, text, "/f/pools.conf", error, sizeof(error));
	if (r && !error[0])
		abort();
	for (int i = 0; r == 0 && i < pools.count; i++) {
		if (!cli_is_name(pools.list[i].name) || !*pools.list[i].url)
			abort();
	}
	cli_pools_free(&pools);
	free(text);
	return 0;
}
