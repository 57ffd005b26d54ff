/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/config/token_file.h"
#include "tests/test.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID "abcdefghij"

static char folder[64];
static char path[96];
static char error[GPD_TOKEN_ERROR_MAX];

static int
make_folder(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/gpupool-token-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/tokens", folder);
	error[0] = 0;
	return 0;
}

static int
remove_folder(void **state)
{
	char lock[128];

	snprintf(lock, sizeof(lock), "%s.lock", path);
	(void)unlink(lock);
	(void)unlink(path);
	/* Whatever else a test has left behind is a fault of what it tests. */
	return rmdir(folder);
}

static struct gp_token
create(const char *tenant, int64_t expires_s)
{
	struct gp_token token;

	if (gpd_tokens_create(path, tenant, expires_s, "", &token, error, sizeof(error)))
		fail_msg("%s", error);
	return token;
}

static struct gpd_tokens
load(void)
{
	struct gpd_tokens tokens;

	if (gpd_tokens_load(path, &tokens, error, sizeof(error)))
		fail_msg("%s", error);
	return tokens;
}

static enum gpd_token_state
show(const struct gpd_tokens *tokens, const char *text, int64_t now_s)
{
	const struct gpd_token *found;

	return gpd_tokens_check(tokens, text, strlen(text), now_s, &found);
}

static void
write_file(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

#define TOKEN_TEST(test) UNIT_TEST_WITH(test, make_folder, remove_folder)

TOKEN_TEST(a_token_that_was_made_is_good_and_its_tenants)
{
	struct gp_token token = create("alice", INT64_MAX), other = create("bob", INT64_MAX);
	struct gpd_tokens tokens = load();
	const struct gpd_token *found;

	assert_int_equal(tokens.count, 2);
	assert_int_equal(gpd_tokens_check(&tokens, token.text, GP_TOKEN_LENGTH, time(NULL), &found),
			 GPD_TOKEN_GOOD);
	assert_string_equal(found->tenant, "alice");
	assert_string_equal(found->id, token.id);
	assert_string_not_equal(token.id, other.id);
	assert_int_equal(show(&tokens, other.text, time(NULL)), GPD_TOKEN_GOOD);
	gpd_tokens_free(&tokens);
}

TOKEN_TEST(the_file_is_the_users_alone_and_has_no_secret)
{
	struct gp_token token = create("alice", INT64_MAX);
	struct stat status;
	char text[4096];
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = 0;
	fclose(file);
	assert_non_null(strstr(text, token.id));
	assert_null(strstr(text, token.secret));
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
}

TOKEN_TEST(a_wrong_secret_and_an_unknown_id_are_the_same)
{
	struct gp_token token = create("alice", INT64_MAX), wrong = token;
	struct gpd_tokens tokens = load();
	const struct gpd_token *found = &tokens.list[0];

	wrong.text[GP_TOKEN_LENGTH - 1] = wrong.text[GP_TOKEN_LENGTH - 1] == 'a' ? 'b' : 'a';
	assert_int_equal(gpd_tokens_check(&tokens, wrong.text, GP_TOKEN_LENGTH, 0, &found),
			 GPD_TOKEN_UNKNOWN);
	assert_null(found);
	wrong = token;
	wrong.text[4] = wrong.text[4] == 'a' ? 'b' : 'a';
	assert_int_equal(show(&tokens, wrong.text, 0), GPD_TOKEN_UNKNOWN);
	assert_int_equal(show(&tokens, "gpt_", 0), GPD_TOKEN_UNKNOWN);
	assert_int_equal(show(&tokens, "", 0), GPD_TOKEN_NONE);
	gpd_tokens_free(&tokens);
}

TOKEN_TEST(a_token_holds_until_it_expires)
{
	struct gp_token token = create("alice", 4000000000);
	struct gpd_tokens tokens = load();

	assert_int_equal(show(&tokens, token.text, 3999999999), GPD_TOKEN_GOOD);
	assert_int_equal(show(&tokens, token.text, 4000000000), GPD_TOKEN_EXPIRED);
	assert_int_equal(gpd_tokens_state(&tokens, token.id, 4000000000), GPD_TOKEN_EXPIRED);
	gpd_tokens_free(&tokens);
}

TOKEN_TEST(a_revoked_token_stays_revoked)
{
	struct gp_token token = create("alice", INT64_MAX), other = create("bob", INT64_MAX);
	struct gpd_tokens tokens;

	assert_int_equal(gpd_tokens_revoke(path, token.id, error, sizeof(error)), 0);
	tokens = load();
	assert_int_equal(tokens.count, 2);
	assert_int_equal(show(&tokens, token.text, time(NULL)), GPD_TOKEN_REVOKED);
	assert_int_equal(show(&tokens, other.text, time(NULL)), GPD_TOKEN_GOOD);
	assert_int_equal(gpd_tokens_state(&tokens, "7777777777", 0), GPD_TOKEN_UNKNOWN);
	gpd_tokens_free(&tokens);
	assert_int_equal(gpd_tokens_revoke(path, token.id, error, sizeof(error)), GP_E_INVALID);
	assert_non_null(strstr(error, "already revoked"));
	assert_int_equal(gpd_tokens_revoke(path, "7777777777", error, sizeof(error)), GP_E_INVALID);
	assert_non_null(strstr(error, "unknown token ID"));
}

TOKEN_TEST(what_is_long_over_is_forgotten)
{
	char text[1024];
	struct gpd_tokens tokens;
	long long now = (long long)time(NULL), old = now - GPD_TOKEN_RETENTION_S - 10;

	snprintf(text, sizeof(text),
		 "aaaaaaaaaa alice " HASH " 1 %lld -\n"
		 "bbbbbbbbbb alice " HASH " 1 - %lld\n"
		 "cccccccccc alice " HASH " 1 %lld -\n"
		 "dddddddddd alice " HASH " 1 - - a comment, of words\n",
		 old, old, now - 10);
	write_file(text);
	(void)create("bob", INT64_MAX);
	tokens = load();
	assert_int_equal(tokens.count, 3);
	assert_null(gpd_tokens_find(&tokens, "aaaaaaaaaa"));
	assert_null(gpd_tokens_find(&tokens, "bbbbbbbbbb"));
	assert_string_equal(gpd_tokens_find(&tokens, "dddddddddd")->comment, "a comment, of words");
	gpd_tokens_free(&tokens);
}

TOKEN_TEST(tenants_and_comments_are_checked)
{
	static const char *const names[] = { "", "a b", "a/b", "a\n" };
	struct gp_token token;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(gpd_tokens_create(path, names[i], INT64_MAX, "", &token, error,
						   sizeof(error)),
				 GP_E_INVALID);
	assert_int_equal(gpd_tokens_create(path, "alice", INT64_MAX, "two\nlines", &token, error,
					   sizeof(error)),
			 GP_E_INVALID);
	assert_non_null(strstr(error, "cannot be printed"));
}

TOKEN_TEST(lines_that_make_no_sense_are_named)
{
	static const struct {
		const char *text, *error;
	} wrong[] = {
		{ "x\n", "file:1: fewer than six fields" },
		{ "# a comment\n\nshort alice " HASH " 1 - -\n", "file:3: field 1" },
		{ ID " a/b " HASH " 1 - -\n", "file:1: field 2" },
		{ ID " alice 0123 1 - -\n", "file:1: field 3" },
		{ ID " alice " HASH "00 1 - -\n", "file:1: field 3" },
		{ ID " alice " HASH " - - -\n", "file:1: fields 4 to 6" },
		{ ID " alice " HASH " 1 tomorrow -\n", "file:1: fields 4 to 6" },
		{ ID " alice " HASH " 1 - 99999999999999999999\n", "file:1: fields 4 to 6" },
		{ ID " alice " HASH " 1 - - \x01\n", "file:1: the comment" },
		{ ID " alice " HASH " 1 - -\n" ID " bob " HASH " 1 - -\n", "file:2: duplicate ID" },
	};
	struct gpd_tokens tokens = { 0 };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(gpd_tokens_parse(wrong[i].text, strlen(wrong[i].text), "file",
						  &tokens, error, sizeof(error)),
				 GP_E_INVALID);
		if (strncmp(error, wrong[i].error, strlen(wrong[i].error)) != 0)
			fail_msg("\"%s\" instead of \"%s\"", error, wrong[i].error);
		assert_null(tokens.list);
	}
	assert_int_equal(gpd_tokens_parse("a\0b", 3, "file", &tokens, error, sizeof(error)),
			 GP_E_INVALID);
}

TOKEN_TEST(a_file_that_is_not_there_has_no_tokens)
{
	struct gpd_tokens tokens = load();

	assert_int_equal(tokens.count, 0);
	gpd_tokens_free(&tokens);
	assert_int_equal(gpd_tokens_load(folder, &tokens, error, sizeof(error)), -EISDIR);
}

TOKEN_TEST(the_store_notices_every_change)
{
	static struct gpd_token_store store;
	struct gp_token token;

	assert_int_equal(gpd_token_store_open(&store, path), 0);
	assert_int_equal(gpd_token_store_refresh(&store, 1), GPD_SHARED_FILE_UNCHANGED);
	token = create("alice", INT64_MAX);
	assert_int_equal(gpd_token_store_refresh(&store, 2), GPD_SHARED_FILE_CHANGED);
	assert_int_equal(gpd_tokens_state(&store.tokens, token.id, 0), GPD_TOKEN_GOOD);
	assert_int_equal(gpd_tokens_revoke(path, token.id, error, sizeof(error)), 0);
	assert_int_equal(gpd_token_store_refresh(&store, 2), GPD_SHARED_FILE_CHANGED);
	assert_int_equal(gpd_tokens_state(&store.tokens, token.id, 0), GPD_TOKEN_REVOKED);
	/* What cannot be read is said once, and leaves those of before. */
	write_file("nonsense\n");
	assert_int_equal(gpd_token_store_refresh(&store, 3), GPD_SHARED_FILE_INVALID);
	assert_int_equal(gpd_token_store_refresh(&store, 1), GPD_SHARED_FILE_UNCHANGED);
	assert_int_equal(store.tokens.count, 1);
	assert_int_equal(store.file.wrong, GP_E_INVALID);
	assert_int_equal(store.file.wrong_ms, 3);
	assert_non_null(strstr(store.file.why, ":1: fewer than six fields"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(gpd_token_store_refresh(&store, 2), GPD_SHARED_FILE_CHANGED);
	assert_int_equal(store.tokens.count, 0);
	assert_int_equal(store.file.wrong, 0);
	gpd_tokens_free(&store.tokens);
}

TOKEN_TEST(a_file_that_cannot_be_opened_is_tried_again)
{
	static struct gpd_token_store store;
	struct rlimit files, none;
	enum gpd_shared_file_change look;

	assert_int_equal(gpd_token_store_open(&store, path), 0);
	(void)create("alice", INT64_MAX);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	none = (struct rlimit){ 0, files.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	look = gpd_token_store_refresh(&store, 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	assert_int_equal(look, GPD_SHARED_FILE_INVALID);
	assert_int_equal(store.file.wrong, -EMFILE);
	assert_int_equal(gpd_token_store_refresh(&store, 2), GPD_SHARED_FILE_CHANGED);
	assert_int_equal(store.file.wrong, 0);
	assert_int_equal(store.tokens.count, 1);
	gpd_tokens_free(&store.tokens);
}

TOKEN_TEST(an_owner_and_a_mode_that_were_given_stay)
{
	struct stat status;

	(void)create("alice", INT64_MAX);
	assert_int_equal(chmod(path, 0640), 0);
	if (geteuid() == 0)
		assert_int_equal(chown(path, 12345, 54321), 0);
	(void)create("bob", INT64_MAX);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0640);
	if (geteuid() == 0)
		assert_int_equal(status.st_uid, 12345);
}

static void *
create_some(void *arg)
{
	for (int i = 0; i < 10; i++)
		(void)create(arg, INT64_MAX);
	return NULL;
}

TOKEN_TEST(changes_at_a_time_all_count)
{
	pthread_t threads[4];
	struct gpd_tokens tokens;

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, create_some, "alice"), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	tokens = load();
	assert_int_equal(tokens.count, 40);
	gpd_tokens_free(&tokens);
}

UNIT_TEST_MAIN(NULL, NULL)
