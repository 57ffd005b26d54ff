/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failed device assertions: finds the sessions to which the driver's text about one belongs.
 *
 * The driver writes the same line for all sessions of a context, and does not report whose kernel
 * has failed. The file name and the expression in the line are constants of the program's code, so
 * a session without them in the code of its images cannot have written the line: neither by an
 * assertion, nor by a call of __assertfail() that imitates another program's.
 *
 * Ownership: a session lists its images that may fail an assertion; each entry is part of its image
 * (module/image.h).
 */
#ifndef GPD_ASSERTION_H
#define GPD_ASSERTION_H

#include "base/lock.h"
#include "server/worker/session/sessions.h"

#include <stdbool.h>
#include <stddef.h>

struct gp_image;
struct gpd_session;

/* Maximum number of bytes of code, after extraction, that are searched for an assertion, in equal
 * parts for all sessions. It limits the time until the clients are notified of the fault. */
#define GPD_ASSERTION_SEARCH_MAX ((size_t)64 << 20)

/* An image that may fail an assertion. */
struct gpd_asserting_code {
	/* List of the session, by utlist; protected by gpd_sessions.lock. */
	struct gpd_asserting_code *prev, *next;
	const struct gp_image *image; /* borrowed; valid while in the list; NULL: not in it */
};

/* A line of the driver about a failed assertion. The texts point into the line. */
struct gpd_assertion {
	const char *file;
	size_t file_size;
	const char *expression;
	size_t expression_size;
};

/* Adds the image to the session's list, and removes it. Both acquire gpd_sessions.lock. The removal
 * does nothing if the entry is in no list. */
void gpd_asserting_code_add(struct gpd_session *session, struct gpd_asserting_code *code,
			    const struct gp_image *image);
void gpd_asserting_code_remove(struct gpd_session *session, struct gpd_asserting_code *code);

/* Parses "FILE:LINE: FUNCTION: block: [X,Y,Z], thread: [X,Y,Z] Assertion `EXPRESSION` failed.",
 * without a line end. Returns true with *assertion set; or false if the line is another one. */
bool gpd_assertion_parse(const char *line, size_t size, struct gpd_assertion *assertion);

/* Returns whether an image of the session contains the texts of the assertion, within the first
 * `most` bytes of its code. */
bool gpd_assertion_matches(const struct gpd_session *session, const struct gpd_assertion *assertion,
			   size_t most) GP_LOCKED(gpd_sessions.lock);

#endif /* GPD_ASSERTION_H */
