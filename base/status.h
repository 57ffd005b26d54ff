/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outcomes that a function of the shared layers can have besides "done" (0) and "this
 * object is dead" (a negative errno).  The header of each function says which ones it returns.
 */
#ifndef GP_STATUS_H
#define GP_STATUS_H

enum gp_status {
	GP_E_EOF = 1,         /* the peer closed in good order, between two messages */
	GP_E_TIMEOUT = 2,     /* not within the given time; nothing is lost, call again */
	GP_E_INVALID = 3,     /* the text or argument given makes no sense; nothing was done */
	GP_E_TOO_BIG = 4,     /* larger than the limit; nothing was done */
	GP_E_RESOURCE = 5,    /* out of descriptors or memory; the object lives, try later */
	GP_E_UNSUPPORTED = 6, /* this backend cannot do that: see the capabilities */
	GP_E_FOREIGN = 7,     /* the peer does not speak gpupool at all */
	GP_E_VERSION = 8,     /* the peer speaks another major version of gpupool */
};

#define GP_MUST_CHECK __attribute__((warn_unused_result))
#define GP_PRINTF(text, first) __attribute__((format(printf, text, first)))

#endif /* GP_STATUS_H */
