/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launch threads: kernel launches of one session that are passed to the driver by several threads.
 *
 * The driver takes 3 us for a launch, the executor's own part takes a thirtieth of that, and the
 * driver accepts launches on different streams concurrently. A program with several streams, whose
 * calls arrive faster than one thread can launch, therefore gets two to three times the throughput.
 * The executor does everything except the driver's call, which it hands to the stream's launcher: a
 * queue with a thread. Only launches and the markers of stream_depth.h between a stream's launches
 * are handed over.
 *
 * Order: a stream has one launcher, and gpd_issue_settle() is called before any other driver call
 * of the executor about a stream. A queued launch uses only driver handles and a kernel's name of
 * the session, which must stay valid until then.
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

/* Maximum number of launchers of a session. */
#define GPD_LAUNCHERS 8
/* Maximum bytes of the attributes and parameters of a launch that can be handed over. */
#define GPD_ISSUE_ROOM 384

/* Minimum size in bytes of a message whose launches may be handed over; it has about forty
 * launches. */
#define GPD_ISSUE_DEEP ((size_t)4 << 10)

struct gpd_launcher;

/* A launch with all data that the driver's call needs. */
struct gpd_issue_launch {
	int device;
	CUfunction function;
	/* With its attributes, an array that must be valid during gpd_issue_launch(). */
	CUlaunchConfig config;
	/* Kernel parameters in the packed format, valid during gpd_issue_launch(). */
	const void *params;
	size_t params_size;
	/* The kernel's name for the report of a failure; must stay valid until the launch is
	 * settled. */
	const char *kernel;
	/* Maximum bytes of dynamic shared memory of the kernel, for the report of a failure. */
	int dynamic;
};

/* State of a session's launch threads. Initialized to zeros: the executor launches everything
 * itself. Used by the executor only, except failed(). */
struct gpd_issue {
	/* The four members below are set by the owner before the first launch is handed over.
	 * failed() is called by a launcher's thread; launch is valid during the call. A queued
	 * launch is dropped when *closing or *sticky is nonzero. */
	void (*failed)(struct gpd_issue *issue, const struct gpd_issue_launch *launch,
		       CUresult result);
	const _Atomic bool *closing;
	const _Atomic int *sticky;
	/* Maximum number of launch threads in the process; 0: no launch is handed over. */
	unsigned int most;

	bool pending;     /* launches were handed over since the last gpd_issue_settle() */
	bool deep;        /* the current message contains many calls */
	const void *last; /* stream of the last launch in the current message; NULL: none */
	uint32_t run;     /* number of launches handed over since the last barrier */
	uint32_t wait;    /* number of launches to skip before threads are tried again */
	uint64_t handed;  /* total number of launches handed over */
	/* Number of launchers started, and index of the next one to assign to a stream. */
	unsigned int begun, next;
	struct gpd_launcher *launchers[GPD_LAUNCHERS];
};

/* Parses the environment's limit on launch threads per process. Returns true with *most_p set; true
 * with *most_p unchanged if text is NULL or ""; or false if it is not a number. */
bool gpd_issue_parse(const char *text, unsigned int *most_p);
/* Returns the maximum number of launch threads for this number of processors: the limit in text,
 * else (NULL or invalid) the default; 0: no threads. */
unsigned int gpd_issue_most(int cpus, const char *text);

/* Slow paths of the inline functions below. */
void gpd_issue_settle_pending(struct gpd_issue *issue);
void gpd_issue_barrier_pending(struct gpd_issue *issue);
bool gpd_issue_begins(struct gpd_issue *issue);

/* Waits until all launches handed over have been passed to the driver; it does not wait for the
 * GPU. */
static inline void
gpd_issue_settle(struct gpd_issue *issue)
{
	if (__builtin_expect(issue->pending, 0))
		gpd_issue_settle_pending(issue);
}

/* Settles as gpd_issue_settle(), before a call that is not a launch. The number of launches between
 * two such calls decides whether threads are worthwhile. */
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

/* Returns whether the next launch, on this stream, is to be handed over by gpd_issue_launch(). The
 * stream's address is only compared. */
static inline bool
gpd_issue_wants(struct gpd_issue *issue, const void *stream)
{
	const void *last = issue->last;

	issue->last = stream;
	return __builtin_expect(issue->pending || (last != stream && issue->deep && last), 0) &&
	       (issue->pending || gpd_issue_begins(issue));
}

/* Hands a copy of the launch over; waits while the launcher's queue is full. *launcher: number of
 * the stream's launcher, stored by the caller with the stream, initially 0; set on first use.
 * Returns true; or false if the launch is too large or no thread is available: everything is
 * settled then, and the caller launches it itself. */
bool gpd_issue_launch(struct gpd_issue *issue, uint8_t *launcher,
		      const struct gpd_issue_launch *launch);
/* Writes the value to the 32-bit word `to` in the order of the stream, whose launcher is not 0, by
 * that launcher. host: host address of the word. Called only while launches are pending. */
void gpd_issue_write(struct gpd_issue *issue, uint8_t launcher, int device, CUstream stream,
		     CUdeviceptr to, volatile uint32_t *host, uint32_t value);

/* Settles and ends the threads; afterwards the executor launches everything itself. */
void gpd_issue_stop(struct gpd_issue *issue);

#endif /* GPD_ISSUE_H */
