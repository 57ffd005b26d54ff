/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions of a client's for what the device has changed in host memory: answered now, or held
 * until there is something to tell.  A session in which nothing polls sends nothing: cuDNN alone
 * has two such words for each thread that uses it.
 *
 * While something is held a thread of the session looks.  The executor asks, and stops it.
 */
#ifndef GPD_HOST_WATCH_H
#define GPD_HOST_WATCH_H

struct gpd_session;

/* At the session's end, before what replies need goes; again: nothing. */
void gpd_host_watch_stop(struct gpd_session *session);

#endif /* GPD_HOST_WATCH_H */
