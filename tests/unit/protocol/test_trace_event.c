/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/trace_event.h"
#include "tests/test.h"

#include <string.h>

static _Alignas(8) uint8_t memory[512];

static size_t
encode_two(void)
{
	const struct gp_trace_event named = { .begin_ns = 5,
					      .end_ns = 9,
					      .kernel = 77,
					      .stream = 3,
					      .device = 1,
					      .call = 0x601,
					      .joined = 2,
					      .name = { "kernel", 6 } };
	const struct gp_trace_event plain = { .begin_ns = 9, .end_ns = 9, .call = 0x304 };
	struct gp_enc enc;

	gp_enc_init(&enc, memory, sizeof(memory));
	gp_trace_event_encode(&enc, &named);
	gp_trace_event_encode(&enc, &plain);
	assert_false(enc.bad);
	assert_true(gp_enc_size(&enc) <= GP_TRACE_EVENT_SIZE(6) + GP_TRACE_EVENT_SIZE(0));
	return gp_enc_size(&enc);
}

UNIT_TEST(events_come_as_they_went)
{
	struct gp_trace_event event;
	struct gp_dec dec;

	gp_dec_init(&dec, memory, encode_two());
	assert_true(gp_trace_event_decode(&dec, &event));
	assert_int_equal(event.begin_ns, 5);
	assert_int_equal(event.end_ns, 9);
	assert_int_equal(event.kernel, 77);
	assert_int_equal(event.stream, 3);
	assert_int_equal(event.device, 1);
	assert_int_equal(event.call, 0x601);
	assert_int_equal(event.joined, 2);
	assert_int_equal(event.name.size, 6);
	assert_memory_equal(event.name.data, "kernel", 6);
	assert_true(gp_trace_event_decode(&dec, &event));
	assert_int_equal(event.call, 0x304);
	assert_int_equal(event.name.size, 0);
	assert_false(gp_trace_event_decode(&dec, &event));
	assert_true(gp_dec_ok(&dec));
}

UNIT_TEST(what_is_cut_off_is_malformed)
{
	struct gp_trace_event event;
	size_t size = encode_two();
	struct gp_dec dec;

	for (size_t cut = 1; cut < 48; cut++) {
		gp_dec_init(&dec, memory, size - cut);
		assert_true(gp_trace_event_decode(&dec, &event));
		assert_false(gp_trace_event_decode(&dec, &event));
		/* A whole event less is none that is cut. */
		assert_int_equal(gp_dec_ok(&dec), false);
	}
}

UNIT_TEST(an_end_before_its_begin_is_malformed)
{
	const struct gp_trace_event odd = { .begin_ns = 9, .end_ns = 8 };
	struct gp_trace_event event;
	struct gp_enc enc;
	struct gp_dec dec;

	gp_enc_init(&enc, memory, sizeof(memory));
	gp_trace_event_encode(&enc, &odd);
	gp_dec_init(&dec, memory, gp_enc_size(&enc));
	assert_false(gp_trace_event_decode(&dec, &event));
	assert_false(gp_dec_ok(&dec));
}

UNIT_TEST_MAIN(NULL, NULL)
