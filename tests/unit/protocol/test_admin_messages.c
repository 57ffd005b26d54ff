/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the admin socket as bytes. */
#include "protocol/admin_messages.h"
#include "tests/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

UNIT_TEST(a_request_comes_back_as_it_was)
{
	Gpupool__AdminRequest request = GPUPOOL__ADMIN_REQUEST__INIT, *again;
	Gpupool__AdminSet set = GPUPOOL__ADMIN_SET__INIT;
	Gpupool__AdminSetting setting = GPUPOOL__ADMIN_SETTING__INIT, *list = &setting;
	uint8_t *bytes;
	size_t size;

	setting.key = GPUPOOL__ADMIN_SETTING__KEY__MEMORY;
	setting.number = UINT64_MAX;
	set.tenant = (char *)"a";
	set.device = 3;
	set.n_settings = 1;
	set.settings = &list;
	request.body_case = GPUPOOL__ADMIN_REQUEST__BODY_SET;
	request.set = &set;
	bytes = gp_admin_pack_request(&request, &size);
	assert_non_null(bytes);
	assert_int_equal(gp_admin_get_size(bytes), size - GP_ADMIN_HEADER_SIZE);
	again = gp_admin_decode_request(bytes + GP_ADMIN_HEADER_SIZE, size - GP_ADMIN_HEADER_SIZE);
	assert_non_null(again);
	assert_int_equal(again->body_case, GPUPOOL__ADMIN_REQUEST__BODY_SET);
	assert_string_equal(again->set->tenant, "a");
	assert_int_equal(again->set->device, 3);
	assert_int_equal(again->set->n_settings, 1);
	assert_true(again->set->settings[0]->number == UINT64_MAX);
	gp_admin_free_request(again);
	free(bytes);
}

UNIT_TEST(a_reply_comes_back_as_it_was)
{
	Gpupool__AdminReply reply = GPUPOOL__ADMIN_REPLY__INIT, *again;
	uint8_t *bytes;
	size_t size;

	reply.error = (char *)"unknown session 7";
	bytes = gp_admin_pack_reply(&reply, &size);
	assert_non_null(bytes);
	again = gp_admin_decode_reply(bytes + GP_ADMIN_HEADER_SIZE, size - GP_ADMIN_HEADER_SIZE);
	assert_non_null(again);
	assert_string_equal(again->error, "unknown session 7");
	assert_null(again->report);
	gp_admin_free_reply(again);
	free(bytes);
}

UNIT_TEST(bytes_that_are_no_message_are_refused)
{
	static const uint8_t bad[] = { 0xff, 0xff, 0xff, 0xff, 0x7f };

	assert_null(gp_admin_decode_request(bad, sizeof(bad)));
	assert_null(gp_admin_decode_reply(bad, sizeof(bad)));
	gp_admin_free_request(NULL);
	gp_admin_free_reply(NULL);
}

UNIT_TEST(the_length_is_little_endian)
{
	uint8_t header[GP_ADMIN_HEADER_SIZE];

	gp_admin_put_size(header, 0x01020304);
	assert_memory_equal(header, "\4\3\2\1", 4);
	assert_int_equal(gp_admin_get_size(header), 0x01020304);
}

UNIT_TEST(a_uuid_is_written_as_nvidias_tools_do)
{
	uint8_t bytes[16];
	ProtobufCBinaryData uuid = { sizeof(bytes), bytes }, cut = { 2, bytes };
	char text[GP_UUID_TEXT_SIZE];

	for (uint8_t i = 0; i < 16; i++)
		bytes[i] = (uint8_t)(0x10 + i);
	gp_admin_format_uuid(&uuid, text);
	assert_string_equal(text, "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f");
	gp_admin_format_uuid(&cut, text);
	assert_string_equal(text, "GPU-10110000-0000-0000-0000-000000000000");
}

UNIT_TEST(the_usual_path_needs_a_folder_of_the_user)
{
	char path[64];

	if (geteuid() == 0) {
		assert_int_equal(gp_admin_get_default_path(path, sizeof(path)), 0);
		assert_string_equal(path, "/run/gpupool/admin.sock");
	} else {
		assert_int_equal(setenv("XDG_RUNTIME_DIR", "/run/user/x", 1), 0);
		assert_int_equal(gp_admin_get_default_path(path, sizeof(path)), 0);
		assert_string_equal(path, "/run/user/x/gpupool/admin.sock");
		assert_int_equal(setenv("XDG_RUNTIME_DIR", "relative", 1), 0);
		assert_int_equal(gp_admin_get_default_path(path, sizeof(path)), -ENOENT);
		assert_int_equal(unsetenv("XDG_RUNTIME_DIR"), 0);
		assert_int_equal(gp_admin_get_default_path(path, sizeof(path)), -ENOENT);
	}
	assert_int_equal(gp_admin_get_default_path(path, 8), -ENOENT);
}

UNIT_TEST_MAIN(NULL, NULL)
