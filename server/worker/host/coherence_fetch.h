/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of the client for changes that the device made to host memory (gpHostTakeChanged). A
 * request is answered when there is a change or after GP_HOST_PENDING_MS, so that a session in
 * which nothing changes sends almost nothing: cuDNN alone has two such polled words for each of its
 * threads.
 *
 * Ownership: the requests and the watch thread belong to session->host_memory.
 * Threads: the watch thread, one per session and started with the first request, scans the memory
 * while requests are pending; the executor adds requests and stops the thread.
 */
#ifndef GPD_COHERENCE_FETCH_H
#define GPD_COHERENCE_FETCH_H

struct gpd_session;

/* Replies to all pending requests and stops the watch thread, waiting until it has ended. Does
 * nothing if there is none. To be called by the executor at the session's end, while the connection
 * still exists. */
void gpd_host_watch_stop(struct gpd_session *session);

#endif /* GPD_COHERENCE_FETCH_H */
