/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages that a session's worker has made and this process has mapped at fixed addresses.  The
 * worker frees them when the session ends, whoever has them mapped.
 *
 * Threads: any.
 */
#ifndef GPC_SHARED_PAGES_H
#define GPC_SHARED_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_session;

/* After the pages were mapped there. */
void gpc_shared_pages_add(const struct gpc_session *session, uint64_t address, size_t size);
/* Before others are, or none. */
void gpc_shared_pages_remove(uint64_t address, size_t size);
bool gpc_shared_pages_exist(const struct gpc_session *session);
/*
 * The session is lost, the program is not: its pages become this process's own, with what is in
 * them.  The program may read and write them meanwhile: for the 0.1 ms that a part takes it may see
 * what was there before its last store, and no store is lost.  But a byte that it changes and, in
 * that time, changes back may be left changed.
 */
void gpc_shared_pages_make_private(const struct gpc_session *session);

#endif /* GPC_SHARED_PAGES_H */
