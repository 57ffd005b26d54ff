/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client requests for changes that the device made to host memory. A request is answered at once,
 * or deferred until there is a change, so that a session in which nothing changes sends nothing:
 * cuDNN alone has two such polled words for each of its threads.
 *
 * Threads: a thread of the session scans while a request is deferred; the executor adds requests
 * and stops the thread.
 */
#ifndef GPD_COHERENCE_FETCH_H
#define GPD_COHERENCE_FETCH_H

struct gpd_session;

/* Answers all deferred requests and stops the thread at the session's end, while replies can still
 * be sent. Further calls do nothing. */
void gpd_host_watch_stop(struct gpd_session *session);

#endif /* GPD_COHERENCE_FETCH_H */
