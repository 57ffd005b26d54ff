/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session sends to its client: replies, data and notes.
 *
 * Threads: any, but where a function says otherwise; messages are sent one at a time.
 * Errors: 0 or a negative errno value.
 */
#ifndef GPD_SESSION_SEND_H
#define GPD_SESSION_SEND_H

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpd_session;

/* The sending part of a session. */
struct gpd_session_send {
	pthread_mutex_t lock;
	CUresult deferred; /* error of a posted call, not yet reported; under the lock */
	uint16_t deferred_call;
	_Atomic bool sticky_reported;  /* the client knows of it */
	char *complaint;               /* the driver's text about it; set before sticky */
	_Atomic uint32_t keep_request; /* gpMemoryKeep; 0: the client keeps nothing */
};

/* Sending; any thread.  fields: the reply's encoded fields.  A deferred error goes out first. */
int gpd_session_reply(struct gpd_session *session, uint16_t call, uint32_t request, CUresult result,
		      const void *fields, size_t size);
/* The same without waiting for the limit of bandwidth: the caller charges it. */
int gpd_session_reply_unthrottled(struct gpd_session *session, uint16_t call, uint32_t request,
				  CUresult result, const void *fields, size_t size);
/* Success, with all the data that the call was for (BULK_OUT). */
int gpd_session_reply_data(struct gpd_session *session, uint16_t call, uint32_t request,
			   const void *data, size_t size);
int gpd_session_send_data(struct gpd_session *session, uint32_t request, uint64_t offset,
			  const void *data, size_t size);
/* Responder: asks the client for what it keeps, if the ledger says so. */
void gpd_session_recall(struct gpd_session *session);
/* A host function's turn has come; result is what the client tells it of its stream. */
int gpd_session_send_function(struct gpd_session *session, uint32_t function, CUresult result);
/* The client sends what its program has changed, then gpHostPublish of this number. */
int gpd_session_send_publish(struct gpd_session *session, uint32_t number);
/* So many waits for words are over. */
int gpd_session_send_waits(struct gpd_session *session, uint32_t count);
/* An IPC handle opens nothing for it: tells the log and the client why. */
void gpd_session_refuse_handle(struct gpd_session *session, const char *why);
/* Its streams on this device have other multiprocessors now. */
int gpd_session_send_share(struct gpd_session *session, int device);
int gpd_session_send_print(struct gpd_session *session, const char *text, size_t size);
/* For the program's standard error: whole lines. */
int gpd_session_send_complaint(struct gpd_session *session, const char *text);

/* A posted call failed: told to the client before the next reply.  Any thread. */
void gpd_session_defer(struct gpd_session *session, CUresult result, uint16_t call);

/* For the responder: tells the client of the sticky error, once. */
void gpd_session_report_sticky(struct gpd_session *session);

#endif /* GPD_SESSION_SEND_H */
