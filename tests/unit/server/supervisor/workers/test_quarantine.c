/* SPDX-License-Identifier: Apache-2.0 */
/* Quarantine: which programs are isolated after a fault, and for how long. */
#include "server/supervisor/workers/quarantine.h"
#include "tests/test.h"

#include <stdio.h>
#include <string.h>

#define SECONDS 600
#define LIFE_MS (1000 * SECONDS)
#define FAULT 700

static struct gpd_quarantine quarantine;

static int
set_up(void **state)
{
	memset(&quarantine, 0, sizeof(quarantine));
	return 0;
}

/* key 0: the client sends none. */
static struct gpd_program
program(const char *tenant, uint8_t key, const char *name)
{
	const uint8_t bytes[32] = { key };
	struct gpd_program program;

	gpd_program_set(&program, tenant, bytes, key ? sizeof(bytes) : 0, "host", "user", name);
	return program;
}

static void
report(struct gpd_program first, int result, int64_t now_ms)
{
	gpd_quarantine_report(&quarantine, &first, 1, result, SECONDS, now_ms);
}

static void
report_two(struct gpd_program first, struct gpd_program second, int64_t now_ms)
{
	const struct gpd_program both[] = { first, second };

	gpd_quarantine_report(&quarantine, both, 2, FAULT, SECONDS, now_ms);
}

static bool
is_in(struct gpd_program program, int64_t now_ms)
{
	return gpd_quarantine_find(&quarantine, &program, SECONDS, now_ms) != NULL;
}

#define TEST(test) UNIT_TEST_WITH(test, set_up, NULL)

TEST(the_only_candidate_of_a_fault_is_quarantined_for_the_configured_time)
{
	report(program("alice", 1, "train"), FAULT, 5);
	assert_true(is_in(program("alice", 1, "other name"), 6));
	assert_false(is_in(program("alice", 2, "train"), 6));
	assert_false(is_in(program("bob", 1, "train"), 6));
	assert_true(is_in(program("alice", 1, "train"), 4 + LIFE_MS));
	assert_false(is_in(program("alice", 1, "train"), 5 + LIFE_MS));
	assert_int_equal(quarantine.total, 1);
}

TEST(without_a_key_the_names_identify_a_program)
{
	report(program("alice", 0, "train"), FAULT, 5);
	assert_true(is_in(program("alice", 0, "train"), 6));
	assert_false(is_in(program("alice", 0, "serve"), 6));
}

TEST(one_of_several_candidates_is_quarantined_the_second_time)
{
	report_two(program("alice", 1, "a"), program("bob", 2, "b"), 5);
	assert_false(is_in(program("alice", 1, "a"), 6));
	assert_false(is_in(program("bob", 2, "b"), 6));
	report_two(program("carol", 3, "c"), program("bob", 2, "b"), 7);
	assert_true(is_in(program("bob", 2, "b"), 8));
	assert_false(is_in(program("alice", 1, "a"), 8));
	assert_false(is_in(program("carol", 3, "c"), 8));
	/* Alice's suspicion is over. */
	report_two(program("alice", 1, "a"), program("dave", 4, "d"), 5 + LIFE_MS);
	assert_false(is_in(program("alice", 1, "a"), 6 + LIFE_MS));
}

TEST(two_sessions_of_a_program_are_one_candidate)
{
	report_two(program("alice", 1, "a"), program("alice", 1, "a"), 5);
	assert_true(is_in(program("alice", 1, "a"), 6));
	assert_int_equal(quarantine.total, 1);
}

TEST(work_that_is_left_behind_counts_the_second_time)
{
	report(program("alice", 1, "a"), 0, 5);
	assert_false(is_in(program("alice", 1, "a"), 6));
	report(program("alice", 1, "a"), 0, 7);
	assert_true(is_in(program("alice", 1, "a"), 8));
}

TEST(another_incident_extends_a_quarantine)
{
	report(program("alice", 1, "a"), FAULT, 5);
	report(program("alice", 1, "a"), FAULT, 1000);
	assert_true(is_in(program("alice", 1, "a"), 999 + LIFE_MS));
	assert_int_equal(quarantine.total, 1);
}

TEST(a_tenant_whose_programs_are_too_many_is_quarantined_as_a_whole)
{
	for (uint8_t key = 1; key <= GPD_QUARANTINE_TENANT_MAX; key++)
		report(program("alice", key, "a"), FAULT, 5);
	report(program("bob", 1, "b"), FAULT, 5);
	assert_false(is_in(program("alice", 99, "a"), 6));
	/* Suspicions do not add up to this. */
	report_two(program("alice", 98, "a"), program("alice", 97, "a"), 6);
	assert_false(is_in(program("alice", 99, "a"), 7));
	report(program("alice", 98, "a"), FAULT, 8);
	assert_true(is_in(program("alice", 99, "a"), 9));
	assert_false(is_in(program("bob", 99, "b"), 9));
	assert_true(is_in(program("bob", 1, "b"), 9));
	/* It is one entry now. */
	report(program("alice", 97, "a"), FAULT, 100);
	assert_true(is_in(program("alice", 1, "a"), 99 + LIFE_MS));
	assert_false(is_in(program("alice", 1, "a"), 100 + LIFE_MS));
}

TEST(of_too_many_suspects_the_oldest_is_dropped)
{
	for (uint8_t key = 1; key <= GPD_QUARANTINE_TENANT_MAX + 1; key++)
		report(program("alice", key, "a"), 0, key);
	report(program("alice", 1, "a"), 0, 20);
	assert_false(is_in(program("alice", 1, "a"), 21));
	report(program("alice", 3, "a"), 0, 22);
	assert_true(is_in(program("alice", 3, "a"), 23));
}

TEST(more_programs_than_the_table_has_entries_replace_the_first_ones)
{
	char tenant[24];

	for (int i = 0; i <= GPD_QUARANTINE_MAX; i++) {
		snprintf(tenant, sizeof(tenant), "tenant%d", i);
		report(program(tenant, 1, "a"), FAULT, 5 + i);
	}
	assert_false(is_in(program("tenant0", 1, "a"), 500));
	assert_true(is_in(program("tenant1", 1, "a"), 500));
	assert_true(is_in(program(tenant, 1, "a"), 500));
}

TEST(an_administrator_ends_a_quarantine_and_zero_seconds_end_all)
{
	const struct gpd_program alice = program("alice", 1, "a");
	const struct gpd_quarantine_entry *entry;

	report(alice, FAULT, 5);
	entry = gpd_quarantine_find(&quarantine, &alice, SECONDS, 6);
	assert_non_null(entry);
	assert_false(gpd_quarantine_end(&quarantine, entry->id + 1));
	assert_true(gpd_quarantine_end(&quarantine, entry->id));
	assert_false(gpd_quarantine_end(&quarantine, entry->id));
	assert_false(is_in(alice, 6));
	report(alice, FAULT, 7);
	assert_null(gpd_quarantine_find(&quarantine, &alice, 0, 8));
	assert_false(is_in(alice, 9));
	gpd_quarantine_report(&quarantine, &alice, 1, FAULT, 0, 10);
	assert_false(is_in(alice, 11));
}

TEST(texts_give_the_reason)
{
	char text[GPD_QUARANTINE_TEXT_MAX], until[32];
	const struct gpd_program alice = program("alice", 1, "a\n");
	const struct gpd_quarantine_entry *entry;

	report(alice, FAULT, 5);
	entry = gpd_quarantine_find(&quarantine, &alice, SECONDS, 6);
	assert_string_equal(gpd_quarantine_explain(entry, text),
			    "its kernel faulted with error 700");
	assert_string_equal(entry->program.name, "a\\x0a");
	assert_int_equal(strlen(gpd_quarantine_format_end(entry, until)), strlen("12:34:56 UTC"));
	report_two(alice, program("bob", 1, "b"), 7);
	assert_string_equal(gpd_quarantine_explain(entry, text),
			    "a kernel faulted with error 700 while its work was running");
	report(alice, 0, 8);
	assert_string_equal(gpd_quarantine_explain(entry, text),
			    "its GPU work did not end after its client had left");
}

UNIT_TEST_MAIN(NULL, NULL)
