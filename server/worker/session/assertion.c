/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/session/assertion.h"

#include "image/fatbin.h"
#include "server/worker/session/session.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

/* Maximum size of a text as PTX writes it: up to five characters for each byte. */
#define NUMBERS_MAX 8192

void
gpd_asserting_code_add(struct gpd_session *session, struct gpd_asserting_code *code,
		       const struct gp_image *image)
{
	pthread_mutex_lock(&gpd_sessions.lock);
	code->image = image;
	DL_APPEND(session->progress.asserting, code);
	pthread_mutex_unlock(&gpd_sessions.lock);
}

void
gpd_asserting_code_remove(struct gpd_session *session, struct gpd_asserting_code *code)
{
	if (!code->image)
		return;
	pthread_mutex_lock(&gpd_sessions.lock);
	DL_DELETE(session->progress.asserting, code);
	code->image = NULL;
	pthread_mutex_unlock(&gpd_sessions.lock);
}

/* Returns the size of the file name at the start of the line, before ":LINE: "; 0: there is none.
 */
static size_t
file_measure(const char *line, size_t size)
{
	const char *end = line + size;

	for (const char *c = memchr(line, ':', size); c; c = memchr(c, ':', (size_t)(end - c))) {
		const char *digit = ++c;

		while (digit < end && isdigit((unsigned char)*digit))
			digit++;
		if (digit > c && end - digit >= 2 && digit[0] == ':' && digit[1] == ' ')
			return (size_t)(c - 1 - line);
	}
	return 0;
}

bool
gpd_assertion_parse(const char *line, size_t size, struct gpd_assertion *assertion)
{
	static const char block[] = ": block: [", before[] = " Assertion `", after[] = "` failed.";
	const size_t after_size = sizeof(after) - 1;
	const char *at = memmem(line, size, block, sizeof(block) - 1), *end = line + size;

	if (!at || size < after_size || memcmp(end - after_size, after, after_size) != 0)
		return false;
	at = memmem(at, (size_t)(end - at), before, sizeof(before) - 1);
	if (!at || at + sizeof(before) - 1 > end - after_size)
		return false;
	assertion->file = line;
	assertion->file_size = file_measure(line, size);
	assertion->expression = at + sizeof(before) - 1;
	assertion->expression_size = (size_t)(end - after_size - assertion->expression);
	return assertion->file_size != 0;
}

/* A text as it is in machine code, and as PTX writes it: "102, 105, 108". */
struct needle {
	const char *text;
	size_t size;
	char numbers[NUMBERS_MAX];
	size_t numbers_size;
};

static void
needle_init(struct needle *needle, const char *text, size_t size)
{
	needle->text = text;
	needle->size = size;
	needle->numbers_size = 0;
	for (size_t i = 0; i < size && needle->numbers_size + 6 < sizeof(needle->numbers); i++)
		needle->numbers_size += (size_t)snprintf(needle->numbers + needle->numbers_size, 6,
							 i ? ", %u" : "%u", (unsigned char)text[i]);
}

static bool
code_contains(const void *bytes, size_t size, const struct needle *needle)
{
	return memmem(bytes, size, needle->text, needle->size) ||
	       memmem(bytes, size, needle->numbers, needle->numbers_size);
}

/* Searches code that is not larger than *left, and subtracts its size. */
static bool
code_contains_both(const void *bytes, size_t size, const struct needle needles[2], size_t *left)
{
	if (size > *left)
		return false;
	*left -= size;
	return code_contains(bytes, size, &needles[0]) && code_contains(bytes, size, &needles[1]);
}

static bool
entry_contains(const struct gp_fatbin_entry *entry, const struct needle needles[2], size_t *left)
{
	size_t size;
	void *bytes;
	bool found;

	if (!(entry->flags & (GP_FATBIN_LZ4 | GP_FATBIN_ZSTD)))
		return code_contains_both(entry->payload, entry->stored_size, needles, left);
	if (gp_fatbin_extract_limited(entry, *left, NULL, &bytes, &size))
		return false;
	found = code_contains_both(bytes, size, needles, left);
	gp_fatbin_release(NULL, bytes, size);
	return found;
}

static bool
image_contains(const struct gp_image *image, const struct needle needles[2], size_t *left)
{
	enum gp_image_kind kind = gp_image_type(image);
	struct gp_fatbin_entry entry;
	struct gp_fatbin_walk walk;

	for (unsigned int i = 0; i < gp_image_count(image); i++) {
		struct gp_image_blob blob = gp_image_blob(image, i);

		if (kind != GP_IMAGE_WRAPPER && kind != GP_IMAGE_FATBIN) {
			if (code_contains_both(blob.data, blob.size, needles, left))
				return true;
			continue;
		}
		if (gp_fatbin_walk(&walk, blob.data, blob.size))
			continue;
		while (gp_fatbin_next(&walk, &entry) == 0) {
			if (entry_contains(&entry, needles, left))
				return true;
		}
	}
	return false;
}

bool
gpd_assertion_matches(const struct gpd_session *session, const struct gpd_assertion *assertion,
		      size_t most)
{
	struct needle needles[2];

	needle_init(&needles[0], assertion->file, assertion->file_size);
	needle_init(&needles[1], assertion->expression, assertion->expression_size);
	for (const struct gpd_asserting_code *code = session->progress.asserting; code;
	     code = code->next) {
		if (image_contains(code->image, needles, &most))
			return true;
	}
	return false;
}
