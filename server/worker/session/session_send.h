/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages from a session to its client: replies, data and notes. A note is a message that the
 * client has not requested.
 *
 * Messages are sent one at a time under send.lock. Sending blocks while the client does not read; a
 * send that times out ends the session. Passed buffers may be freed on return.
 *
 * Threads: any thread of the session, or one that holds gpd_sessions.lock; unless noted. The caller
 * must not hold send.lock. The session must have a connection (not GPD_SESSION_OPENED).
 * Errors: functions that return int return 0; -ENOMEM if out of memory; -EMSGSIZE for any GP_E_*
 * error of the connection; or another negative errno of the connection. After an error the message
 * is lost.
 */
#ifndef GPD_SESSION_SEND_H
#define GPD_SESSION_SEND_H

#include "protocol/frame.h"

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpd_session;

/* Sending state of a session. */
struct gpd_session_send {
	/* Serializes messages; protects the members marked "lock". */
	pthread_mutex_t lock;
	/* First unreported error of a posted call (a call without a reply); CUDA_SUCCESS: none;
	 * lock. */
	CUresult deferred;
	uint16_t deferred_call;       /* number of the call that caused `deferred`; lock */
	_Atomic bool sticky_reported; /* the client was notified of session->sticky */
	/* The driver's message about the fault, owned; NULL: none. gpd_session_poison() writes it
	 * before it sets session->sticky; afterwards protected by lock. */
	char *complaint;
	/* Request ID of the pending gpMemoryKeep call, whose reply requests the client's cached
	 * memory. 0: the call is not pending. Set by its hook, cleared by gpd_session_recall(). */
	_Atomic uint32_t keep_request;
};

/* Replies to a call. call and request (not 0) identify it; fields are size bytes of encoded reply
 * fields, or NULL if size is 0. An unreported sticky or deferred error is sent first. Replies of
 * more than GPD_ACCOUNT_FREE_BYTES (account.h) also wait as the tenant's bandwidth limit
 * requires. */
int gpd_session_reply(struct gpd_session *session, uint16_t call, uint32_t request, CUresult result,
		      const void *fields, size_t size);
/* Replies like gpd_session_reply(), but does not wait for the bandwidth limit; the caller charges
 * the bytes. */
int gpd_session_reply_unthrottled(struct gpd_session *session, uint16_t call, uint32_t request,
				  CUresult result, const void *fields, size_t size);
/* Replies with CUDA_SUCCESS and all data of the call (BULK_OUT). Waits as the bandwidth limit
 * requires. */
int gpd_session_reply_data(struct gpd_session *session, uint16_t call, uint32_t request,
			   const void *data, size_t size);
/* Sends a part of a copy's result: size bytes at this offset of the data of the request. Waits
 * as the bandwidth limit requires. */
int gpd_session_send_data(struct gpd_session *session, uint32_t request, uint64_t offset,
			  const void *data, size_t size);
/* Replies to the pending gpMemoryKeep call if the session's ledger entry requests the client's
 * cached memory (GPD_CACHE_RECALLED); otherwise does nothing. Responder only. */
void gpd_session_recall(struct gpd_session *session);
/*
 * Sends a note of two numbers:
 * GP_NOTE_FUNCTION: the client is to run a host function. first: its ID; second: the state of its
 * stream, a CUresult.
 * GP_NOTE_PUBLISH: the client is to send the host memory that its program has changed and then call
 * gpHostPublish with the number `first`.
 * GP_NOTE_WAITS: `first` waits for memory values (stream_ops/mem_op.h) have ended.
 * GP_NOTE_SHARE: the number of SMs available to the client's streams on the device with the ordinal
 * `first` has changed.
 * second is 0 if not mentioned.
 */
int gpd_session_send_note(struct gpd_session *session, enum gp_note kind, uint32_t first,
			  uint32_t second);
/* Reports a rejected IPC handle: logs the reason, and sends it to the client for the program's
 * standard error. Errors of the connection are ignored. */
void gpd_session_refuse_handle(struct gpd_session *session, const char *why);
/* Sends output of device printf, for the program's standard output, in messages of at most 64
 * KiB. */
int gpd_session_send_print(struct gpd_session *session, const char *text, size_t size);
/* Sends text for the program's standard error: complete lines, ending with a newline. */
int gpd_session_send_complaint(struct gpd_session *session, const char *text);

/* Stores an error (not CUDA_SUCCESS) of a posted call, to be sent before the next reply; if an
 * earlier one is still unreported, the new error is dropped. A sticky error is passed to
 * gpd_session_poison(); the caller must not hold gpd_sessions.lock. */
void gpd_session_defer(struct gpd_session *session, CUresult result, uint16_t call);

/* Sends the sticky error, after send.complaint, if the client was not yet notified of it; otherwise
 * sends a deferred error, if any. Errors of the connection are ignored. Responder only. */
void gpd_session_report_sticky(struct gpd_session *session);

#endif /* GPD_SESSION_SEND_H */
