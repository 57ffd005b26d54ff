/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface objects.  The application has the numbers that the daemon's driver gave them,
 * for kernels take them as plain arguments; so making one is a round trip, unless one that was
 * destroyed is just the same.  What they are of is answered from here.  Any thread.  They are
 * looked at under a lock, and nobody is given one.
 */
#ifndef GPC_TEXTURE_H
#define GPC_TEXTURE_H

#include <stdint.h>

struct gpc_context;

/* Those of a context that is being destroyed or reset; before gpContextDestroy is posted. */
void gpc_texture_forget_context(struct gpc_context *context);

/* Objects that are kept and are of this array, which the daemon is about to destroy. */
void gpc_texture_forget_array(uint32_t array);

#endif /* GPC_TEXTURE_H */
