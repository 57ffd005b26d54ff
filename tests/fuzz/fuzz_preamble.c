/* SPDX-License-Identifier: Apache-2.0 */
/* The first bytes of any connection: decoded, and encoded to the same bytes again. */
#include "protocol/preamble.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t bytes[GP_PREAMBLE_SIZE] = { 0 }, again[GP_PREAMBLE_SIZE];
	struct gp_preamble preamble = { 0 };
	char text[100];
	int status;

	memcpy(bytes, data, size < sizeof(bytes) ? size : sizeof(bytes));
	status = gp_preamble_decode(bytes, &preamble);
	gp_preamble_format_status(status, &preamble, text, sizeof(text));
	gp_preamble_encode(&preamble, again);
	if (status == 0 && memcmp(bytes, again, sizeof(bytes)) != 0)
		abort();
	return 0;
}
