/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of the program's threads on pages that are fetched when they are touched (pages.h).
 *
 * They are reported in one of two ways, chosen once for the process: by userfaultfd
 * (page_userfault.h), or by SIGSEGV (page_signal.h).  Either way threads of the library serve them,
 * while the threads that faulted wait.
 */
#ifndef GPC_PAGE_FAULTS_H
#define GPC_PAGE_FAULTS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum gpc_page_access {
	GPC_PAGE_READ,
	GPC_PAGE_WRITE,
	GPC_PAGE_ACCESS_UNKNOWN, /* this machine does not tell */
};

enum gpc_page_faults_mechanism {
	GPC_PAGE_FAULTS_NONE, /* not started, or in the child of a fork */
	GPC_PAGE_FAULTS_SIGNAL,
	GPC_PAGE_FAULTS_USERFAULT,
};

/* Whether the access may be tried again; else it is the program's fault.  Called by a thread of the
 * library; direct: by another one, for a thread of gpc_page_faults_set_direct(). */
typedef bool gpc_page_faults_serve(uint64_t address, enum gpc_page_access access, bool direct);

/* Once for the process, before there are such pages; again: nothing happens.  GPUPOOL_MANAGED
 * chooses the way.  0 or -errno. */
GP_MUST_CHECK int gpc_page_faults_start(gpc_page_faults_serve *serve);
enum gpc_page_faults_mechanism gpc_page_faults_mechanism(void);

/* Faults of [base, base + size) may be served; those far from all such ranges are never looked at.
 */
void gpc_page_faults_cover(uint64_t base, uint64_t size);

/* The program may have taken SIGSEGV for a handler of its own: takes it back, and knows of that
 * handler from now on.  One system call, or none with userfaultfd.  Any thread. */
void gpc_page_faults_reinstall(void);

/* The child of a fork has no thread of the library: nothing is served in it. */
void gpc_page_faults_forked(void);

/* While the thread is one that others wait for: its faults wait for none of theirs. */
void gpc_page_faults_set_direct(bool direct);
/* While it must not fault at all, as the threads that serve faults would wait for it.  One thread
 * at a time. */
void gpc_page_faults_forbid(void);
void gpc_page_faults_allow(void);

/* Of a handler of SIGSEGV: has the fault of this thread served; false: it is the program's. */
bool gpc_page_faults_request(uint64_t address, enum gpc_page_access access);

#endif /* GPC_PAGE_FAULTS_H */
