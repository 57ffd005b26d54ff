/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assertions on the parser of the daemon's configuration: a text is accepted, or rejected with a
 * given message.
 *
 * Threads: any; there is no state.
 * Errors: a failed assertion fails the test.
 */
#ifndef GP_CONFIG_FIXTURE_H
#define GP_CONFIG_FIXTURE_H

#include "server/common/config/config.h"
#include "tests/test.h"

/* A valid GPU UUID. */
#define UUID "GPU-01234567-89ab-cdef-0123-456789ABCDEF"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

/* Asserts that the text is valid. Returns its configuration, which the caller destroys with
 * gpd_config_free(). */
static inline struct gpd_config *
parsed(const char *text)
{
	char error[GPD_CONFIG_ERROR_MAX] = "";
	struct gpd_config *config = NULL;
	int r = gpd_config_parse(text, "gpupoold.conf", &config, error, sizeof(error));

	if (r)
		print_error("%s\n", error);
	assert_int_equal(r, 0);
	assert_non_null(config);
	return config;
}

/* Asserts an amount: a number, or a share in hundredths of a percent (0: a number). */
static inline void
assert_amount(const struct gpd_config_amount *amount, uint64_t number, uint64_t share)
{
	assert_int_equal(amount->number, number);
	assert_int_equal(amount->share, share);
}

/* An invalid text and the message that the parser rejects it with. */
struct refusal {
	const char *text, *error;
};

/* Asserts that the text is rejected with GP_E_INVALID and exactly this message, and that no
 * configuration is returned. */
static inline void
assert_refused(const char *text, const char *wanted)
{
	char error[GPD_CONFIG_ERROR_MAX] = "";
	struct gpd_config *config = (void *)&error;
	int r = gpd_config_parse(text, "gpupoold.conf", &config, error, sizeof(error));

	if (r != GP_E_INVALID)
		print_error("not refused: %s\n", text);
	assert_int_equal(r, GP_E_INVALID);
	assert_ptr_equal(config, &error);
	assert_string_equal(error, wanted);
}

/* Calls assert_refused() for each element of a table. */
static inline void
assert_all_refused(const struct refusal *refusals, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_refused(refusals[i].text, refusals[i].error);
}

/* Calls assert_all_refused() for an array. */
#define ASSERT_ALL_REFUSED(table) assert_all_refused(table, sizeof(table) / sizeof((table)[0]))

#endif /* GP_CONFIG_FIXTURE_H */
