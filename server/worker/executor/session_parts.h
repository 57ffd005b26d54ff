/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates and destroys the components of struct gpd_session (streams, memory, arrays, copies,
 * modules, graphs, stream_ops), each of which the folder of that name defines. Folders of later
 * layers may use them. A new component is a member of struct parts in session_parts.c and a pointer
 * in session.h.
 *
 * Ownership: the session owns the components. They are created before its first thread starts and
 * destroyed after the last one has ended.
 * Threads: the thread that opens, closes or discards the session.
 */
#ifndef GPD_SESSION_PARTS_H
#define GPD_SESSION_PARTS_H

struct gpd_session;

/* Creates all components of a session that is otherwise zero, apart from its locks, ID and window.
 * Returns 0; or -ENOMEM, and no component exists: the caller only frees the session itself. */
int gpd_session_parts_create(struct gpd_session *session);
/* Destroys all components. The session must have no objects left, unless the process is about to
 * end. */
void gpd_session_parts_destroy(struct gpd_session *session);

#endif /* GPD_SESSION_PARTS_H */
