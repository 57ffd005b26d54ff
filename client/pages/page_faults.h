/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page faults of the program's threads on demand-paged memory (pages.h).
 *
 * Faults are reported by one of two mechanisms, chosen once per process: userfaultfd
 * (page_userfault.h) or SIGSEGV (page_signal.h). With either mechanism, two threads of the library
 * serve the faults while the faulting threads wait. One serves ordinary threads, the other direct
 * threads, which have called gpc_page_faults_set_direct().
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

/* Type of the function that serves a fault at the address, that is, makes the page accessible
 * (gpc_pages_serve(), pages.h). Returns true if the access is to be retried, or false if the fault
 * is the program's own error. Called on a serving thread. direct: the faulting thread is a direct
 * thread. Calls for direct threads run one at a time, calls for ordinary threads too, but a call of
 * one kind may run concurrently with one of the other. */
typedef bool gpc_page_faults_serve(uint64_t address, enum gpc_page_access access, bool direct);

/* Starts the serving threads and the mechanism: userfaultfd, or SIGSEGV if userfaultfd is not
 * available or the environment variable GPUPOOL_MANAGED is "signal". With GPUPOOL_MANAGED
 * "userfaultfd", the use of SIGSEGV is written to the log. Called by gpc_pages_create(), before
 * memory with such pages exists. After a success, further calls return 0 and ignore their argument.
 * Returns 0 or -errno; after an error a later call tries again. Nothing stops the threads. */
GP_MUST_CHECK int gpc_page_faults_start(gpc_page_faults_serve *serve);
/* Returns the mechanism by which faults are reported now. */
enum gpc_page_faults_mechanism gpc_page_faults_mechanism(void);

/* Declares that faults in [base, base + size) are to be served. Other faults are passed to the
 * program's handler at once, so that a program that handles many faults of its own does not wait
 * for a serving thread. Ranges at most 4 GiB apart are merged, and after 16 merged ranges also more
 * distant ones: faults between them are passed to the serving threads, too, which reject them.
 * Cannot be undone; has an effect only with SIGSEGV. */
void gpc_page_faults_cover(uint64_t base, uint64_t size);

/* Reinstalls the SIGSEGV handler if the program has installed one of its own. The program's handler
 * is then called for faults that are not served. Costs one system call, or none with
 * userfaultfd. */
void gpc_page_faults_reinstall(void);

/* Called in the child of a fork, which has no serving threads. The child must create no pages: its
 * faults are not served. */
void gpc_page_faults_forked(void);

/* Marks the calling thread as a direct thread, or unmarks it. Work of other threads may wait for a
 * direct thread, such as one that runs host functions, so its faults are served without waiting for
 * work. A thread's calls with true and with false must alternate. With userfaultfd, at most 64
 * threads are direct at a time, and further ones are treated as ordinary threads. With SIGSEGV
 * there is no limit. */
void gpc_page_faults_set_direct(bool direct);
/* Marks the calling thread as one that must not fault, because the serving threads would wait for
 * it. Called by gpc_pages_begin(), whose lock allows one thread at a time. Faults of the thread are
 * then rejected as the program's own error. */
void gpc_page_faults_forbid(void);
/* Ends the state of gpc_page_faults_forbid() for the calling thread. */
void gpc_page_faults_allow(void);

/* Called by the SIGSEGV handler: passes the fault of this thread to a serving thread, and waits for
 * the result without a limit. Returns true if the access is to be retried, or false if the fault is
 * the program's own error. Async-signal-safe. */
bool gpc_page_faults_request(uint64_t address, enum gpc_page_access access);

#endif /* GPC_PAGE_FAULTS_H */
