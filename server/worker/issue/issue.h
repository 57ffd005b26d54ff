/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launch threads: kernel launches of one session that are passed to the driver by several threads.
 *
 * The driver takes 3 us for a launch, the executor's own part a thirtieth of that, and the driver
 * accepts launches on different streams concurrently. A program with several streams, whose calls
 * arrive faster than one thread can launch, therefore gets two to three times the throughput. The
 * executor does everything except the driver's call, which it hands to the stream's launcher: a
 * queue with a thread. Nothing else is handed over, except the markers of stream_depth.h between a
 * stream's launches.
 *
 * Order: a stream has one launcher, and gpd_issue_settle() comes before any other driver call of
 * the executor about a stream. A queued launch uses only the driver's handles and a kernel's name
 * from the session, which stay valid until then.
 *
 * Ownership: part of a session. The threads are started on first use and end with gpd_issue_stop().
 * Threads: the session's executor, except failed(), which a launcher's thread calls.
 * Errors: failures of launches are reported by failed().
 */
#ifndef GPD_ISSUE_H
#define GPD_ISSUE_H

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPD_LAUNCHERS 8
/* Maximum bytes of the attributes and parameters of a launch that can be handed over. */
#define GPD_ISSUE_ROOM 384

/* Size of a message with about forty launches. */
#define GPD_ISSUE_DEEP ((size_t)4 << 10)

struct gpd_launcher;

/* A launch with all that the driver's call needs; copied when it is handed over. */
struct gpd_issue_launch {
	int device;
	CUfunction function;
	CUlaunchConfig config; /* including its attributes */
	const void *params;    /* in the packed format */
	size_t params_size;
	const char *kernel; /* the kernel's name, for the report of a failure */
	int dynamic; /* bytes of dynamic shared memory that it may use, for the same report */
};

/* State of a session's launch threads. Initialized to zeros: the executor launches everything. */
struct gpd_issue {
	/* Set by the owner before the first launch is handed over. failed() is called by a
	 * launcher's thread. A launch is dropped when *closing or *sticky is nonzero. */
	void (*failed)(struct gpd_issue *issue, const struct gpd_issue_launch *launch,
		       CUresult result);
	const _Atomic bool *closing;
	const _Atomic int *sticky;
	unsigned int most; /* maximum number of launch threads in the process; 0: none */

	bool pending;     /* launches were handed over since the last settle */
	bool deep;        /* the current message contains many calls */
	const void *last; /* stream of the last launch in the current message */
	uint32_t run;     /* launches handed over since the last barrier */
	uint32_t wait;    /* launches to skip before threads are tried again */
	uint64_t handed;  /* total */
	unsigned int begun, next;
	struct gpd_launcher *launchers[GPD_LAUNCHERS];
};

/* Parses the environment's limit on launch threads per process; text may be NULL. false: not a
 * number. */
bool gpd_issue_parse(const char *text, unsigned int *most_p);
/* Returns that limit, or the default for this number of processors; 0: no threads. */
unsigned int gpd_issue_most(int cpus, const char *text);

/* Slow paths of the inline functions below. */
void gpd_issue_settle_pending(struct gpd_issue *issue);
void gpd_issue_barrier_pending(struct gpd_issue *issue);
bool gpd_issue_begins(struct gpd_issue *issue);

/* Waits until all launches handed over have been passed to the driver. */
static inline void
gpd_issue_settle(struct gpd_issue *issue)
{
	if (__builtin_expect(issue->pending, 0))
		gpd_issue_settle_pending(issue);
}

/* The same, before a call that is not a launch. The number of launches between two such calls
 * decides whether threads are worthwhile. */
static inline void
gpd_issue_barrier(struct gpd_issue *issue)
{
	if (__builtin_expect(issue->pending, 0))
		gpd_issue_barrier_pending(issue);
}

/* Starts a message. deep: it has at least GPD_ISSUE_DEEP bytes, so launches may be handed to
 * threads. Calls that arrive one at a time are carried out by the executor. */
static inline void
gpd_issue_message(struct gpd_issue *issue, bool deep)
{
	issue->deep = deep && issue->most;
	issue->last = NULL;
	if (!issue->deep)
		gpd_issue_settle(issue);
}

/* Whether this launch is to be handed over. The stream's address is only compared. */
static inline bool
gpd_issue_wants(struct gpd_issue *issue, const void *stream)
{
	const void *last = issue->last;

	issue->last = stream;
	return __builtin_expect(issue->pending || (last != stream && issue->deep && last), 0) &&
	       (issue->pending || gpd_issue_begins(issue));
}

/* Hands the launch over. *launcher is stored with the stream, 0 at first. false: the caller must
 * launch it itself; nothing is pending then. */
bool gpd_issue_launch(struct gpd_issue *issue, uint8_t *launcher,
		      const struct gpd_issue_launch *launch);
/* Writes the value in the stream's order, while something is pending and the stream has a launcher.
 * `host` is the host address of `to`. */
void gpd_issue_write(struct gpd_issue *issue, uint8_t launcher, int device, CUstream stream,
		     CUdeviceptr to, volatile uint32_t *host, uint32_t value);

/* Settles and ends the threads. */
void gpd_issue_stop(struct gpd_issue *issue);

#endif /* GPD_ISSUE_H */
