/* SPDX-License-Identifier: Apache-2.0 */
#include "client/entry/integrity.h"
#include "client/entry/md2.h"
#include "tests/test.h"

#include <string.h>

static const struct gpc_device_identity devices[2] = {
	{ .uuid = "first of devices", .pci_domain = 1, .pci_bus = 0x21, .pci_device = 3 },
	{ .uuid = "second of device", .pci_domain = 0, .pci_bus = 0x22, .pci_device = 4 },
};

static struct gpc_integrity_input
example(void)
{
	return (struct gpc_integrity_input){
		.driver_version = 13000,
		.version = 13002,
		.process_id = 4711,
		.thread_id = 0x89abcdef,
		.cudart_table = 0x7f0011223344,
		.integrity_table = 0x7f0055667788,
		.integrity_function = 0x7f00000099aa,
		.seconds = 1765432100,
		.devices = devices,
		.device_count = 2,
	};
}

/* The expected bytes were computed apart from this code, of the fields laid end to end. */
UNIT_TEST(third_answer_is_the_keyed_digest_of_all_inputs)
{
	static const uint8_t expected[16] = { 0x26, 0xc5, 0x28, 0xd2, 0xad, 0x15, 0x02, 0xbd,
					      0x97, 0xf2, 0x75, 0x5b, 0x0f, 0xa7, 0xd8, 0x70 };
	struct gpc_integrity_input input = example();
	uint8_t answer[16];

	gpc_integrity_digest(&input, answer);
	assert_memory_equal(answer, expected, sizeof(expected));
}

UNIT_TEST(every_input_matters_to_the_third_answer)
{
	struct gpc_device_identity other[2];
	struct gpc_integrity_input input;
	uint8_t expected[16], answer[16];

	input = example();
	gpc_integrity_digest(&input, expected);

#define CHANGED(change)                                                                            \
	do {                                                                                       \
		input = example();                                                                 \
		memcpy(other, devices, sizeof(other));                                             \
		input.devices = other;                                                             \
		change;                                                                            \
		gpc_integrity_digest(&input, answer);                                              \
		assert_memory_not_equal(answer, expected, sizeof(expected));                       \
	} while (0)

	CHANGED(input.driver_version++);
	CHANGED(input.version += 10);
	CHANGED(input.process_id++);
	CHANGED(input.thread_id++);
	CHANGED(input.cudart_table++);
	CHANGED(input.integrity_table++);
	CHANGED(input.integrity_function++);
	CHANGED(input.seconds++);
	CHANGED(input.device_count--);
	CHANGED(other[0].uuid[0]++);
	CHANGED(other[1].uuid[15]++);
	CHANGED(other[1].pci_domain++);
	CHANGED(other[1].pci_bus++);
	CHANGED(other[1].pci_device++);
#undef CHANGED
}

UNIT_TEST(first_two_answers_are_constants)
{
	static const uint8_t zero[16] = { 0x5c, 0x67, 0xcb, 0x03, 0x1c, 0x18, 0x41, 0x33,
					  0xe8, 0xd1, 0x4c, 0x1f, 0xaa, 0x83, 0xd3, 0x8e };
	static const uint8_t one[16] = { 0x5c, 0x67, 0xcb, 0x03, 0x1c, 0x18, 0x41, 0x18,
					 0xe8, 0xd1, 0x4c, 0x1f, 0xaa, 0x83, 0xd3, 0x8e };
	struct gpc_integrity_input input = example();
	uint8_t answer[16];

	input.version = 13000;
	gpc_integrity_digest(&input, answer);
	assert_memory_equal(answer, zero, sizeof(zero));
	input.version = 12041;
	gpc_integrity_digest(&input, answer);
	assert_memory_equal(answer, one, sizeof(one));
}

UNIT_TEST(answer_needs_no_device)
{
	struct gpc_integrity_input input = example();
	uint8_t with[16], without[16];

	gpc_integrity_digest(&input, with);
	input.devices = NULL;
	input.device_count = 0;
	gpc_integrity_digest(&input, without);
	assert_memory_not_equal(with, without, sizeof(with));
}

UNIT_TEST_MAIN(NULL, NULL)
