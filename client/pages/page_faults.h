/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page faults of the program's threads on demand-paged memory (pages.h).
 *
 * Faults are reported by one of two mechanisms, chosen once per process: userfaultfd
 * (page_userfault.h) or SIGSEGV (page_signal.h). In both cases threads of the library serve the
 * faults while the faulting threads wait.
 * Threads: any, unless noted otherwise.
 */
#ifndef GPC_PAGE_FAULTS_H
#define GPC_PAGE_FAULTS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum gpc_page_access {
	GPC_PAGE_READ,
	GPC_PAGE_WRITE,
	GPC_PAGE_ACCESS_UNKNOWN, /* not reported by this machine */
};

/* How faults are reported. */
enum gpc_page_faults_mechanism {
	GPC_PAGE_FAULTS_NONE, /* not started, or in the child of a fork */
	GPC_PAGE_FAULTS_SIGNAL,
	GPC_PAGE_FAULTS_USERFAULT,
};

/* Serves a fault. Returns true if the access is to be retried, false if the fault is the program's
 * own. Called on threads of the library: on a separate one (direct is true) for threads of
 * gpc_page_faults_set_direct(). */
typedef bool gpc_page_faults_serve(uint64_t address, enum gpc_page_access access, bool direct);

/* Starts the serving threads and the mechanism, which GPUPOOL_MANAGED can select. Called before
 * such pages exist; further calls have no effect. Returns 0 or -errno. */
GP_MUST_CHECK int gpc_page_faults_start(gpc_page_faults_serve *serve);
enum gpc_page_faults_mechanism gpc_page_faults_mechanism(void);

/* Declares that faults in [base, base + size) may be served. Faults far from all such ranges are
 * rejected without being served. */
void gpc_page_faults_cover(uint64_t base, uint64_t size);

/* Reinstalls the SIGSEGV handler if the program has installed one of its own, which is then called
 * for faults that are not served. Costs one system call, or none with userfaultfd. Any thread. */
void gpc_page_faults_reinstall(void);

/* Called in the child of a fork, which has no serving threads: faults are no longer served. */
void gpc_page_faults_forked(void);

/* Marks the calling thread as one that other threads' work may wait for, so that its faults do not
 * wait for that work. */
void gpc_page_faults_set_direct(bool direct);
/* Marks the calling thread as one that must not fault at all, because the serving threads would
 * wait for it. One thread at a time. */
void gpc_page_faults_forbid(void);
void gpc_page_faults_allow(void);

/* Called by the SIGSEGV handler: has the fault of this thread served and waits for the result.
 * Returns false if the fault is the program's own. */
bool gpc_page_faults_request(uint64_t address, enum gpc_page_access access);

#endif /* GPC_PAGE_FAULTS_H */
