/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon has answered and would answer again, so that a question is asked once: the last
 * GPC_ASKED_MAX answers of all devices, by the number of the call and all that it asked with.
 * Any thread may call.
 */
#ifndef GPC_ASKED_H
#define GPC_ASKED_H

#include <stdbool.h>
#include <stdint.h>

#define GPC_ASKED_MAX 64
#define GPC_ASKED_WORDS 8

struct gpc_device;

/* Compared byte by byte: what is not used is zero. */
struct gpc_asked {
	const struct gpc_device *device;
	uint64_t of;       /* what else the question is of, never used twice; or 0 */
	uint64_t revision; /* gpc_session_revision() before it was asked, if it hangs on that */
	uint32_t call;     /* 0: the answer is not kept */
	uint32_t words[3];
};

/* Whether it has been answered, in so many words as were kept. */
bool gpc_asked_find(const struct gpc_asked *asked, uint64_t words[GPC_ASKED_WORDS]);
void gpc_asked_keep(const struct gpc_asked *asked, const uint64_t words[GPC_ASKED_WORDS]);

#endif /* GPC_ASKED_H */
