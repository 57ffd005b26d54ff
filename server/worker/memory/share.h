/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session lets others of its tenant open (gpMemoryShare): a name of the client's, a secret
 * (share/offer.h) and a use of the memory.  A pool of the client's is
 * a name alone, which its memory says that it is of.  Executor only.
 */
#ifndef GPD_SHARE_H
#define GPD_SHARE_H

struct gpd_session;

/* At the session's end, before its memory goes. */
void gpd_memory_exports_destroy(struct gpd_session *session);

#endif /* GPD_SHARE_H */
