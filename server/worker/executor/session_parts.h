/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of struct gpd_session: one for each folder above session/, which alone knows what is in
 * its part.
 *
 * Ownership: the session's; created before its first thread starts and destroyed after the last one
 * has ended.
 * Errors: -ENOMEM.
 */
#ifndef GPD_SESSION_PARTS_H
#define GPD_SESSION_PARTS_H

struct gpd_session;

/* Creates all parts from the lowest folder to the highest.  -ENOMEM: none is left. */
int gpd_session_parts_create(struct gpd_session *session);
/* Destroys them in reverse. */
void gpd_session_parts_destroy(struct gpd_session *session);

#endif /* GPD_SESSION_PARTS_H */
