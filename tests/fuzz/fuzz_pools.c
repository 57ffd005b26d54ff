/* SPDX-License-Identifier: Apache-2.0 */
/* pools.conf: as the commands read it, pools with an address or an error; and as the library does.
 */
#include "cli/pools.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As the client library reads: every input is accepted, and each pool has an address or none. */
static void
find(const char *text, size_t size)
{
	static const struct gp_url wanted = { .scheme = "tls", .host = "gpunode", .port = 4833 };
	struct gpc_pools_config pools = { 0 };

	if (gpc_pools_config_parse(&pools, text, size, "/f/pools.conf", NULL, 0))
		abort();
	for (int i = 0; i < pools.count; i++)
		(void)gpc_pool_config_has_address(&pools.list[i], &wanted);
	gpc_pools_config_free(&pools);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gpc_pools_config pools = { .check = cli_pools_check };
	char error[CLI_ERROR_MAX] = "", *text = malloc(size ? size : 1);
	int r;

	if (!text)
		return 0;
	/* A copy, for the address sanitizer: no zero byte ends it. */
	memcpy(text, data, size);
	r = gpc_pools_config_parse(&pools, text, size, "/f/pools.conf", error, sizeof(error));
	if (r && !error[0])
		abort();
	for (int i = 0; r == 0 && i < pools.count; i++) {
		if (!gpc_pool_config_is_name(pools.list[i].name) || !*pools.list[i].url)
			abort();
	}
	gpc_pools_config_free(&pools);
	find(text, size);
	free(text);
	return 0;
}
