/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of REMOTE_GPU, a list of addresses: a valid address is written in full, which parses to
 * the same address. */
#include "transport/url.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(bool holds)
{
	if (!holds)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char error[200] = "", whole[GP_URL_TEXT_MAX];
	struct gp_url urls[LIST_MAX], again;
	char *text = malloc(size + 1);
	int count = 0;

	check(text);
	memcpy(text, data, size);
	text[size] = 0;
	if (gp_url_list_parse(text, urls, LIST_MAX, &count, error, sizeof(error)))
		check(error[0]);
	else
		check(count > 0 && count <= LIST_MAX);
	for (int i = 0; i < count; i++) {
		gp_url_format(&urls[i], whole, sizeof(whole));
		check(gp_url_parse(whole, &again, error, sizeof(error)) == 0);
		check(strcmp(again.scheme, urls[i].scheme) == 0 &&
		      strcmp(again.host, urls[i].host) == 0 && again.port == urls[i].port &&
		      again.device == urls[i].device);
	}
	free(text);
	return 0;
}
