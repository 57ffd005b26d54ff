/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of the client for changes that the device made to host memory (gpHostTakeChanged). A
 * request is answered when there is a change in its ranges, and at the latest after
 * GP_HOST_PENDING_MS (protocol/host_changes.h); earlier if the client sends changes or fetches
 * memory itself, or if more than GP_HOST_PENDING_MAX requests are pending. Requests are answered in
 * order: only the oldest one is checked. Thus the client need not send requests at a high rate for
 * memory that it polls. cuDNN alone polls two such values for each of its threads.
 *
 * Ownership: the requests and the watch thread belong to session->host_memory.
 * Threads: the executor adds requests (gpd_gpHostTakeChanged()) and stops the watch thread. The
 * watch thread, one per session and started with the first request, scans the memory while requests
 * are pending. host_memory->copies_lock protects the requests.
 */
#ifndef GPD_COHERENCE_FETCH_H
#define GPD_COHERENCE_FETCH_H

struct gpd_session;

/* Replies to all pending requests, stops the watch thread and blocks until it has ended. Does
 * nothing if the session has no watch thread. To be called by the executor at the session's end,
 * while the connection still exists. */
void gpd_host_watch_stop(struct gpd_session *session);

#endif /* GPD_COHERENCE_FETCH_H */
