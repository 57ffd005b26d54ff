/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of control messages: a message that can be decoded can be walked and packed. */
#include "protocol/control.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Gpupool__ControlMessage *message = gp_control_decode(data, size);
	uint8_t *bytes;
	size_t packed;

	if (!message)
		return 0;
	packed = gpupool__control_message__get_packed_size(message);
	bytes = malloc(packed + 1);
	if (!bytes || gpupool__control_message__pack(message, bytes) != packed)
		abort();
	if (!gp_control_get_name(message)[0])
		abort();
	gp_control_free(message);
	free(bytes);
	return 0;
}
