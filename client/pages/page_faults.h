/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page faults of the program's threads on demand-paged memory (pages.h).
 *
 * Faults are reported by one of two mechanisms, chosen once per process: userfaultfd
 * (page_userfault.h) or SIGSEGV (page_signal.h). In both cases two threads of the library serve the
 * faults while the faulting threads wait. One serves ordinary threads, the other direct threads,
 * which have called gpc_page_faults_set_direct().
 *
 * Threads: any, unless noted otherwise.
 */
#ifndef GPC_PAGE_FAULTS_H
#define GPC_PAGE_FAULTS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Kind of access that faulted. */
enum gpc_page_access {
	GPC_PAGE_READ,
	GPC_PAGE_WRITE,
	GPC_PAGE_ACCESS_UNKNOWN, /* this machine does not report the kind of access */
};

/* Mechanism by which faults are reported. */
enum gpc_page_faults_mechanism {
	GPC_PAGE_FAULTS_NONE, /* not started, or this process is the child of a fork */
	GPC_PAGE_FAULTS_SIGNAL,
	GPC_PAGE_FAULTS_USERFAULT,
};

/* Serves a fault at the address: makes the page accessible. Returns true if the access is to be
 * retried, or false if the fault is the program's own error. Called on a serving thread. direct:
 * the faulting thread is a direct thread; such a call may run concurrently with one for an ordinary
 * thread. */
typedef bool gpc_page_faults_serve(uint64_t address, enum gpc_page_access access, bool direct);

/* Starts the serving threads and the mechanism, which the environment variable GPUPOOL_MANAGED
 * (signal, userfaultfd) can select. Called by gpc_pages_create(), before memory with such pages
 * exists; after a success, further calls have no effect. Returns 0 or -errno; a later call then
 * tries again. */
GP_MUST_CHECK int gpc_page_faults_start(gpc_page_faults_serve *serve);
/* Returns the mechanism that was started. */
enum gpc_page_faults_mechanism gpc_page_faults_mechanism(void);

/* Declares that faults in [base, base + size) may be served. Faults outside of all such ranges are
 * then rejected without being served, unless they are near one. Cannot be undone; has an effect
 * only with SIGSEGV. */
void gpc_page_faults_cover(uint64_t base, uint64_t size);

/* Reinstalls the SIGSEGV handler if the program has installed one of its own. The program's handler
 * is then called for faults that are not served. Costs one system call, or none with
 * userfaultfd. */
void gpc_page_faults_reinstall(void);

/* Called in the child of a fork, which has no serving threads: faults are not served any more. */
void gpc_page_faults_forked(void);

/* Marks the calling thread as a direct thread, or unmarks it. Work of other threads may wait for a
 * direct thread, such as one that runs host functions, so its faults are served without waiting for
 * work. At most 64 threads at a time; with userfaultfd, others are treated as ordinary threads. */
void gpc_page_faults_set_direct(bool direct);
/* Marks the calling thread as one that must not fault, because the serving threads would wait for
 * it. Called by gpc_pages_begin(). Its faults are then the program's own error. One thread at a
 * time. */
void gpc_page_faults_forbid(void);
/* Ends the state of gpc_page_faults_forbid() for the calling thread. */
void gpc_page_faults_allow(void);

/* Called by the SIGSEGV handler: passes the fault of this thread to a serving thread, and waits for
 * the result without a limit. Returns true if the access is to be retried, or false if the fault is
 * the program's own error. Async-signal-safe. */
bool gpc_page_faults_request(uint64_t address, enum gpc_page_access access);

#endif /* GPC_PAGE_FAULTS_H */
