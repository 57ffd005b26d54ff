/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/device_state.h"
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

static struct gp_device_state device_state;

static bool
decode(const void *words, size_t words_size, const char *texts, size_t texts_size,
       const void *processes, size_t processes_size)
{
	memset(&device_state, 0x55, sizeof(device_state));
	return gp_device_state_decode(&device_state, (struct gp_bytes){ words, words_size },
				      (struct gp_bytes){ texts, texts_size },
				      (struct gp_bytes){ processes, processes_size });
}

UNIT_TEST(what_is_not_there_is_not_known)
{
	const uint64_t words[] = { 8, 5 };

	assert_true(decode(words, sizeof(words), NULL, 0, NULL, 0));
	assert_int_equal(device_state.words[GP_STATE_MEMORY_TOTAL], 8);
	assert_int_equal(device_state.words[GP_STATE_MEMORY_FREE], 5);
	for (int i = GP_STATE_NVML; i < GP_STATE_WORDS; i++)
		assert_true(device_state.words[i] == GP_STATE_NONE);
	for (int i = 0; i < GP_STATE_TEXTS; i++)
		assert_string_equal(device_state.texts[i], "");
	assert_int_equal(device_state.process_count, 0);
}

UNIT_TEST(texts_stand_in_their_places)
{
	static const char texts[] = "580\0\0serial";

	assert_true(decode(NULL, 0, texts, sizeof(texts), NULL, 0));
	assert_string_equal(device_state.texts[0], "580");
	assert_string_equal(device_state.texts[1], "");
	assert_string_equal(device_state.texts[GP_STATE_SERIAL], "serial");
	assert_string_equal(device_state.texts[3], "");
	assert_string_equal(device_state.texts[GP_STATE_DRIVER_BRANCH],
			    ""); /* of an older daemon */
}

UNIT_TEST(what_a_later_daemon_says_besides_is_left_out)
{
	uint64_t words[GP_STATE_WORDS + 3];
	char texts[400];
	struct gp_state_process *many = calloc(GP_STATE_PROCESSES_MAX + 1, sizeof(*many));

	memset(words, 1, sizeof(words));
	memset(texts, 'x', sizeof(texts));
	texts[sizeof(texts) - 1] = '\0';
	assert_non_null(many);
	many[1] = (struct gp_state_process){ .pid = 12, .memory = 34 };
	assert_true(decode(words, sizeof(words), texts, sizeof(texts), many,
			   (GP_STATE_PROCESSES_MAX + 1) * sizeof(*many)));
	assert_int_equal(strlen(device_state.texts[0]), GP_STATE_TEXT_MAX - 1);
	assert_int_equal(device_state.process_count, GP_STATE_PROCESSES_MAX);
	assert_int_equal(device_state.processes[1].pid, 12);
	assert_int_equal(device_state.processes[1].memory, 34);
	free(many);
}

UNIT_TEST(lengths_that_cannot_be_are_refused)
{
	const uint64_t words[4] = { 0 };

	assert_false(decode(words, 12, NULL, 0, NULL, 0));
	assert_false(decode(NULL, 0, "no end", 6, NULL, 0));
	assert_false(decode(NULL, 0, NULL, 0, words, 24));
}

/* The list is both ends': no two facts in one place. */
UNIT_TEST(no_place_is_given_twice)
{
	static const int places[] = { GP_STATE_MEMORY_TOTAL,
				      GP_STATE_MEMORY_FREE,
				      GP_STATE_SYSTEM_CUDA,
				      GP_STATE_BAR1_TOTAL,
				      GP_STATE_BAR1_FREE,
				      GP_STATE_PCI_ID,
				      GP_STATE_PCI_SUBSYSTEM,
#define ONE(number, ...) number,
#define TWO(number, ...) number, number + 1,
				      GP_STATE_UINT(ONE) GP_STATE_ULONG(ONE) GP_STATE_PAIR(TWO)
					      GP_STATE_TWO(TWO) GP_STATE_UINT_INDEXED(ONE)
						      GP_STATE_ECC(ONE) };
	bool taken[GP_STATE_WORDS] = { false };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		assert_in_range(places[i], 0, GP_STATE_WORDS - 1);
		assert_false(taken[places[i]]);
		taken[places[i]] = true;
	}
}

UNIT_TEST_MAIN(NULL, NULL)
