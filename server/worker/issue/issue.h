/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches of one session that go to the driver from several threads.
 *
 * A launch takes the driver 3 us, and an executor's own part a thirtieth of that; the driver takes
 * launches on different streams at once.  So a program with several streams whose calls come
 * faster than one thread launches gets two to three times as many done.  The executor does all of
 * a launch but the driver's call, which it hands to the stream's launcher: a queue with a thread.
 * Nothing else is handed over, but for the marks of depth.h between a stream's launches.
 *
 * What the order is made of: a stream has one launcher, and gpd_issue_settle() comes before
 * whatever else the executor asks of the driver about a stream.  What is handed over uses nothing
 * of the session's but the driver's handles and a kernel's name, which stay until then.
 *
 * It belongs to a session, and all but the launchers' threads is for its executor.  The threads
 * begin when they are first needed and end with gpd_issue_stop().
 */
#ifndef GPD_ISSUE_H
#define GPD_ISSUE_H

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPD_LAUNCHERS 8
/* Attributes and parameters of a launch that may be handed over. */
#define GPD_ISSUE_ROOM 384

/* A message that has some forty launches. */
#define GPD_ISSUE_DEEP ((size_t)4 << 10)

struct gpd_launcher;

struct gpd_issue_launch {
	int device;
	CUfunction function;
	CUlaunchConfig config; /* with its attributes */
	const void *params;    /* in the packed form */
	size_t params_size;
	const char *kernel; /* its name, and how much dynamic shared memory it may have: for who
			     * is told of a failure */
	int dynamic;
};

/* All zeros at first: everything is launched by the executor. */
struct gpd_issue {
	/* The owner's, told before anything is handed over.  failed() is called by a launcher's
	 * thread; a launch is dropped when one of the others is not zero. */
	void (*failed)(struct gpd_issue *issue, const struct gpd_issue_launch *launch,
		       CUresult result);
	const _Atomic bool *closing;
	const _Atomic int *sticky;
	unsigned int most; /* threads in the process that may launch so; 0: none */

	bool pending;     /* something was handed over since it was settled last */
	bool deep;        /* the message at hand is one of many calls */
	const void *last; /* stream of the last launch since a message began */
	uint32_t run;     /* launches handed over since the last barrier */
	uint32_t wait;    /* launches before it is tried again */
	uint64_t handed;  /* in all */
	unsigned int begun, next;
	struct gpd_launcher *launchers[GPD_LAUNCHERS];
};

/* What the environment says of how many threads of a process may launch beside the executors: text,
 * or NULL.  false: it is no number. */
bool gpd_issue_parse(const char *text, unsigned int *most_p);
/* The same, or what is usual with so many processors; 0: none. */
unsigned int gpd_issue_most(int cpus, const char *text);

/* Slow parts of what is inline below. */
void gpd_issue_settle_pending(struct gpd_issue *issue);
void gpd_issue_barrier_pending(struct gpd_issue *issue);
bool gpd_issue_begins(struct gpd_issue *issue);

/* Returns when all that was handed over is the driver's. */
static inline void
gpd_issue_settle(struct gpd_issue *issue)
{
	if (__builtin_expect(issue->pending, 0))
		gpd_issue_settle_pending(issue);
}

/* The same, for a call that is no launch: how many launches come between two such calls says
 * whether it is worth while. */
static inline void
gpd_issue_barrier(struct gpd_issue *issue)
{
	if (__builtin_expect(issue->pending, 0))
		gpd_issue_barrier_pending(issue);
}

/* A message has come.  deep: it is of GPD_ISSUE_DEEP bytes at least, and threads may look for
 * work; calls that come one by one are carried out here at once. */
static inline void
gpd_issue_message(struct gpd_issue *issue, bool deep)
{
	issue->deep = deep && issue->most;
	issue->last = NULL;
	if (!issue->deep)
		gpd_issue_settle(issue);
}

/* Whether this launch on the stream, an address that is only compared, is to be handed over. */
static inline bool
gpd_issue_wants(struct gpd_issue *issue, const void *stream)
{
	const void *last = issue->last;

	issue->last = stream;
	return __builtin_expect(issue->pending || (last != stream && issue->deep && last), 0) &&
	       (issue->pending || gpd_issue_begins(issue));
}

/* Hands it over.  *launcher: the stream's own, 0 at first.  false: it must be launched here, and
 * nothing is under way. */
bool gpd_issue_launch(struct gpd_issue *issue, uint8_t *launcher,
		      const struct gpd_issue_launch *launch);
/* While something is pending, for a stream that has a launcher: writes the value in the stream's
 * order; `host` is the same place. */
void gpd_issue_write(struct gpd_issue *issue, uint8_t launcher, int device, CUstream stream,
		     CUdeviceptr to, volatile uint32_t *host, uint32_t value);

/* Settles, and ends the threads. */
void gpd_issue_stop(struct gpd_issue *issue);

#endif /* GPD_ISSUE_H */
