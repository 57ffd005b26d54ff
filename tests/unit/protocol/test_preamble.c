/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/preamble.h"
#include "tests/test.h"

#include <string.h>

UNIT_TEST(the_bytes_are_as_documented)
{
	struct gp_preamble preamble;
	uint8_t bytes[GP_PREAMBLE_SIZE];
	uint8_t expected[GP_PREAMBLE_SIZE] = "GPUPOOL1\1\0\0\0\1\0\3\1";

	gp_preamble_init(&preamble, GP_PREAMBLE_LANE, 0x103);
	memset(preamble.ticket, 0xab, GP_TICKET_SIZE);
	memset(expected + 16, 0xab, GP_TICKET_SIZE);
	gp_preamble_encode(&preamble, bytes);

	assert_memory_equal(bytes, expected, sizeof(bytes));
}

UNIT_TEST(decoding_yields_what_was_encoded)
{
	struct gp_preamble in, out;
	uint8_t bytes[GP_PREAMBLE_SIZE];

	gp_preamble_init(&in, GP_PREAMBLE_LANE, 7);
	in.minor = 300;
	for (size_t i = 0; i < GP_TICKET_SIZE; i++)
		in.ticket[i] = (uint8_t)(i * 7);
	gp_preamble_encode(&in, bytes);

	assert_int_equal(gp_preamble_decode(bytes, &out), 0);
	assert_int_equal(out.major, GP_VERSION_MAJOR);
	assert_int_equal(out.minor, 300);
	assert_int_equal(out.kind, GP_PREAMBLE_LANE);
	assert_int_equal(out.lane, 7);
	assert_memory_equal(out.ticket, in.ticket, GP_TICKET_SIZE);
}

UNIT_TEST(a_control_preamble_has_no_ticket_and_no_lane)
{
	struct gp_preamble preamble;
	uint8_t bytes[GP_PREAMBLE_SIZE];

	static const enum gp_preamble_kind kinds[] = { GP_PREAMBLE_CONTROL,
						       GP_PREAMBLE_CONTROL_TLS };

	for (size_t i = 0; i < 2; i++) {
		gp_preamble_init(&preamble, kinds[i], 0);
		gp_preamble_encode(&preamble, bytes);
		assert_int_equal(gp_preamble_decode(bytes, &preamble), 0);
		bytes[14] = 1;
		assert_int_equal(gp_preamble_decode(bytes, &preamble), GP_E_INVALID);
		bytes[14] = 0;
		bytes[47] = 1;
		assert_int_equal(gp_preamble_decode(bytes, &preamble), GP_E_INVALID);
	}
}

UNIT_TEST(a_kind_says_what_follows_and_whether_inside_tls)
{
	static const struct {
		uint8_t kind;
		bool control, tls;
	} kinds[] = { { 0, true, false },
		      { 1, false, false },
		      { 2, true, true },
		      { 3, false, true },
		      { 4, false, false } };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct gp_preamble preamble;
		uint8_t bytes[GP_PREAMBLE_SIZE];

		gp_preamble_init(&preamble, kinds[i].kind, 0);
		gp_preamble_encode(&preamble, bytes);
		assert_int_equal(gp_preamble_decode(bytes, &preamble), 0);
		assert_int_equal(preamble.kind, kinds[i].kind);
		assert_int_equal(gp_preamble_is_control(&preamble), kinds[i].control);
		assert_int_equal(gp_preamble_is_tls(&preamble), kinds[i].tls);
	}
}

UNIT_TEST(what_is_wrong_is_told_apart)
{
	struct gp_preamble preamble;
	uint8_t good[GP_PREAMBLE_SIZE], bytes[GP_PREAMBLE_SIZE];
	char text[120];

	gp_preamble_init(&preamble, GP_PREAMBLE_LANE, 0);
	gp_preamble_encode(&preamble, good);

	memcpy(bytes, "GET / HTTP/1.1\r\n", 16);
	assert_int_equal(gp_preamble_decode(bytes, &preamble), GP_E_FOREIGN);
	gp_preamble_format_status(GP_E_FOREIGN, &preamble, text, sizeof(text));
	assert_string_equal(text, "the peer does not speak the gpupool protocol");

	memcpy(bytes, good, sizeof(bytes));
	bytes[8] = 9;
	bytes[10] = 4;
	memset(bytes + 12, 0xff, 52);
	assert_int_equal(gp_preamble_decode(bytes, &preamble), GP_E_VERSION);
	gp_preamble_format_status(GP_E_VERSION, &preamble, text, sizeof(text));
	assert_string_equal(text, "the peer speaks gpupool 9.4, this end 1.0");

	memcpy(bytes, good, sizeof(bytes));
	bytes[12] = 5;
	assert_int_equal(gp_preamble_decode(bytes, &preamble), GP_E_INVALID);
	gp_preamble_format_status(GP_E_INVALID, &preamble, text, sizeof(text));
	assert_string_equal(text, "the peer sent a malformed preamble");

	for (size_t i = 48; i < GP_PREAMBLE_SIZE; i++) {
		memcpy(bytes, good, sizeof(bytes));
		bytes[i] = 1;
		assert_int_equal(gp_preamble_decode(bytes, &preamble), GP_E_INVALID);
	}
	for (size_t i = 0; i < 8; i++) {
		memcpy(bytes, good, sizeof(bytes));
		bytes[i] ^= 0x20;
		assert_int_equal(gp_preamble_decode(bytes, &preamble), GP_E_FOREIGN);
	}
}

UNIT_TEST_MAIN(NULL, NULL)
