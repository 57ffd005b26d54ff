/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Positive status codes of the shared layers (base, transport, protocol). A function that returns a
 * status returns 0 on success, one of these codes, or a negative errno. After a negative errno of
 * an operation on an object (a connection, a listener), the object can only be destroyed, unless
 * the function's comment states otherwise; after one of these codes it stays usable, except after
 * GP_E_EOF, GP_E_FOREIGN and GP_E_VERSION. The comment of each function lists the codes that it
 * returns.
 */
#ifndef GP_STATUS_H
#define GP_STATUS_H

enum gp_status {
	GP_E_EOF = 1, /* the peer closed the connection in an orderly way, between two messages */
	GP_E_TIMEOUT = 2,  /* the timeout expired; nothing is lost, and the call can be repeated */
	GP_E_INVALID = 3,  /* the text or argument is invalid; nothing was done */
	GP_E_TOO_BIG = 4,  /* a limit is exceeded; nothing was done */
	GP_E_RESOURCE = 5, /* out of descriptors or memory; the object stays usable, retry later */
	/* The operation is not supported by the connection's backend (enum gp_conn_cap). */
	GP_E_UNSUPPORTED = 6,
	GP_E_FOREIGN = 7, /* the peer does not speak gpupool's protocol */
	GP_E_VERSION = 8, /* the peer speaks another major version of gpupool's protocol */
};

/* The compiler warns if the caller ignores the result. */
#define GP_MUST_CHECK __attribute__((warn_unused_result))
/* The compiler checks printf() arguments. text: position of the format among the parameters; first:
 * position of its first argument. Positions count from 1. */
#define GP_PRINTF(text, first) __attribute__((format(printf, text, first)))

#endif /* GP_STATUS_H */
