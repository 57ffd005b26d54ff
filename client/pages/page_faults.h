/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of the program's threads on pages that are fetched when they are touched (pages.h).
 *
 * SIGSEGV is the program's as well: what is not served here goes to the handler that the program
 * has, as the kernel would call it.  The handler itself only hands the address to a thread of the
 * library and waits, so it may interrupt anything and needs no stack to speak of.
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

/* Whether the access may be tried again; else it is the program's fault.  Called by a thread of the
 * library; direct: by another one, for a thread of gpc_page_faults_direct. */
typedef bool gpc_page_faults_serve(uint64_t address, enum gpc_page_access access, bool direct);

/* Once for the process, before there are such pages; again: nothing happens.  0 or -errno. */
GP_MUST_CHECK int gpc_page_faults_start(gpc_page_faults_serve *serve);

/* Faults of [base, base + size) may be served; those far from all such ranges are never looked at.
 */
void gpc_page_faults_cover(uint64_t base, uint64_t size);

/* The program may have taken SIGSEGV for a handler of its own: takes it back, and knows of that
 * handler from now on.  One system call.  Any thread. */
void gpc_page_faults_renew(void);

/* The child of a fork has no thread of the library: nothing is served in it. */
void gpc_page_faults_forked(void);

/* While the thread is one that others wait for: its faults wait for none of theirs. */
extern __thread bool gpc_page_faults_direct __attribute__((tls_model("initial-exec")));
/* While it must not fault at all: whoever serves faults would wait for it. */
extern __thread bool gpc_page_faults_forbidden __attribute__((tls_model("initial-exec")));

#endif /* GPC_PAGE_FAULTS_H */
