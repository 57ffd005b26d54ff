/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of every call and reply: decoded, and written as text.  The first two bytes choose the
 * call, by its place in the list or, beyond that, by number; the third selects call or reply.
 */
#include "gp_calls.h"
#include "protocol/frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *nowhere;
	struct gp_header header = { .request = 1 };
	uint16_t choice;
	void *fields;

	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	if (size < 3 || !nowhere)
		return 0;
	memcpy(&choice, data, sizeof(choice));
	header.call = choice < gp_call_count ? gp_call_table[choice].number : choice;
	header.flags = data[2] & 1 ? GP_FRAME_REPLY : 0;
	size -= 3;
	/* Of its own size, so that a byte too many is noticed. */
	fields = malloc(size ? size : 1);
	if (!fields)
		return 0;
	memcpy(fields, data + 3, size);
	gp_dump_record(nowhere, &header, fields, size);
	free(fields);
	return 0;
}
