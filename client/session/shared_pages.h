/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registry of the pages that workers have allocated and this process has mapped at fixed addresses
 * (pinned memory over a Unix socket); one for all sessions.
 *
 * The worker frees the pages when the session ends, even if they are still mapped;
 * gpc_shared_pages_make_private() replaces them before that happens.
 * Threads: any; one lock of the registry guards all entries.
 * Units: sizes are in bytes, multiples of the page size.
 */
#ifndef GPC_SHARED_PAGES_H
#define GPC_SHARED_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_session;

/* Registers pages after they were mapped, shared and writable. session must stay valid until they
 * are unregistered. If memory is exhausted, the pages are not registered: after the end of
 * the session the program finds zeros in them. */
void gpc_shared_pages_add(const struct gpc_session *session, uint64_t address, size_t size);
/* Unregisters pages before they are unmapped or replaced: removes each entry that overlaps the
 * range, as a whole. Has no effect if there are none. */
void gpc_shared_pages_remove(uint64_t address, size_t size);
/* Returns whether any pages of the session are registered. */
bool gpc_shared_pages_exist(const struct gpc_session *session);
/*
 * Replaces the session's pages by private copies at the same addresses, and unregisters them.
 * Called by session.c when the session is lost but the program continues. Pages for which memory is
 * exhausted remain shared, and contain zeros once the worker has freed them.
 *
 * The program may access the pages during the call: for about 0.1 ms, while a part of the pages is
 * replaced, it may read data from before its last store, but no store is lost. A byte that is
 * changed and changed back within that time may keep the changed value.
 */
void gpc_shared_pages_make_private(const struct gpc_session *session);

#endif /* GPC_SHARED_PAGES_H */
