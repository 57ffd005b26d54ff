/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface objects of a session.  Each keeps the array that it is of: a kernel that uses
 * an object whose array the client has destroyed must not find another tenant's memory.  Executor
 * only.
 */
#ifndef GPD_TEXTURE_H
#define GPD_TEXTURE_H

struct gpd_session;

/* Of a session; what a device has of them is shared by all. */
#define GPD_TEXTURES_MAX 65536

/* At the session's end, before its arrays go. */
void gpd_texture_forget(struct gpd_session *session);

#endif /* GPD_TEXTURE_H */
