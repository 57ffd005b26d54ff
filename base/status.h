/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Positive status codes of the shared layers (base, transport, protocol). A function returns 0 on
 * success, a negative errno if its object is dead, or one of these codes. The header of each
 * function lists the codes that it returns.
 */
#ifndef GP_STATUS_H
#define GP_STATUS_H

enum gp_status {
	GP_E_EOF = 1, /* the peer closed the connection in an orderly way, between two messages */
	GP_E_TIMEOUT = 2,  /* the timeout expired; nothing is lost, and the call can be repeated */
	GP_E_INVALID = 3,  /* the text or argument is invalid; nothing was done */
	GP_E_TOO_BIG = 4,  /* a limit is exceeded; nothing was done */
	GP_E_RESOURCE = 5, /* out of descriptors or memory; the object stays usable, retry later */
	/* This backend does not support the operation, see its capabilities. */
	GP_E_UNSUPPORTED = 6,
	GP_E_FOREIGN = 7, /* the peer does not speak gpupool's protocol */
	GP_E_VERSION = 8, /* the peer speaks another major version of gpupool's protocol */
};

#define GP_MUST_CHECK __attribute__((warn_unused_result))
#define GP_PRINTF(text, first) __attribute__((format(printf, text, first)))

#endif /* GP_STATUS_H */
