/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tls/tls_helpers.h"
#include "transport/tls/tls_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Smaller parts are finished before a helper starts. */
#define BULK_MIN ((size_t)256 << 10)
/* Records of a piece, which takes a few microseconds. */
#define RECORDS 4
#define RECORDS_MAX (GP_TLS_JOB_PIECES * RECORDS)
#define RECORD_SIZE (GP_TLS_RECORD_MAX + GP_TLS_RECORD_OVERHEAD)
#define PIECE_SIZE (RECORDS * RECORD_SIZE)
#define PIECE_CONTENT (RECORDS * GP_TLS_RECORD_MAX)
#define JOB_SIZE (GP_TLS_JOB_PIECES * PIECE_SIZE)
/* A job need not begin at the start of the buffer: consumed bytes may precede it. */
#define IN_SIZE (JOB_SIZE + PIECE_SIZE)

/* Consecutive records of full size, in memory and on the wire. */
struct bulk_job {
	struct gp_tls_job help;
	struct gp_tls_link *link;
	uint8_t *content, *wire;
	uint64_t first; /* sequence number */
};

static struct bulk_job *
job_to_bulk_job(struct gp_tls_job *job)
{
	return (struct bulk_job *)job;
}

bool
gp_tls_is_bulk(const struct iovec *part)
{
	return part->iov_len >= BULK_MIN && gp_tls_helpers_exist();
}

/* Returns the number of whole pieces that fit, at most those of one job. */
static unsigned int
size_to_pieces(size_t size)
{
	size_t pieces = size / PIECE_CONTENT;

	return pieces < GP_TLS_JOB_PIECES ? (unsigned int)pieces : GP_TLS_JOB_PIECES;
}

static bool
piece_seal(struct gp_tls_job *job, unsigned int piece, bool helper)
{
	struct bulk_job *bulk_job = job_to_bulk_job(job);
	struct gp_tls_record *record =
		helper ? &bulk_job->link->helper_seal : &bulk_job->link->seal;
	uint8_t *content = bulk_job->content + piece * PIECE_CONTENT;
	uint8_t *wire = bulk_job->wire + piece * PIECE_SIZE;

	record->sequence = bulk_job->first + (uint64_t)piece * RECORDS;
	for (unsigned int i = 0; i < RECORDS; i++) {
		struct iovec part = { content + i * GP_TLS_RECORD_MAX, GP_TLS_RECORD_MAX };

		if (gp_tls_record_seal(record, GP_TLS_RECORD_DATA, &part, GP_TLS_RECORD_MAX,
				       wire + i * RECORD_SIZE))
			return false;
	}
	return true;
}

ssize_t
gp_tls_send_bulk(struct gp_tcp_conn *conn, const struct iovec *part, bool more)
{
	struct gp_tls_link *link = conn->tls;
	unsigned int pieces = size_to_pieces(part->iov_len);
	struct bulk_job bulk_job = { .help.run = piece_seal,
				     .link = link,
				     .first = link->seal.sequence };
	int r;

	if (!link->bulk_out)
		link->bulk_out = malloc(JOB_SIZE);
	r = link->bulk_out ? gp_tls_record_copy_key(&link->helper_seal, &link->seal) : -ENOMEM;
	if (r)
		return r;
	bulk_job.content = part->iov_base;
	bulk_job.wire = link->bulk_out;
	gp_tls_job_start(&bulk_job.help, pieces);
	more = more || pieces * PIECE_CONTENT < part->iov_len;
	for (unsigned int i = 0, next; i < pieces && r == 0; i = next) {
		while (atomic_load(&bulk_job.help.claimed) <= i)
			(void)gp_tls_job_run_piece(&bulk_job.help);
		if (!gp_tls_job_wait_piece(&bulk_job.help, i))
			r = -EIO;
		/* Sends all pieces that are already sealed with a single write. */
		for (next = i + 1; next < pieces && gp_tls_job_is_piece_done(&bulk_job.help, next);)
			next++;
		if (r == 0)
			r = gp_tls_link_send(&conn->stream, bulk_job.wire + i * PIECE_SIZE,
					     (next - i) * PIECE_SIZE, more || next < pieces);
	}
	gp_tls_job_stop(&bulk_job.help);
	link->seal.sequence = bulk_job.first + (uint64_t)pieces * RECORDS;
	return r ? r : (ssize_t)(pieces * PIECE_CONTENT);
}

static bool
piece_open(struct gp_tls_job *job, unsigned int piece, bool helper)
{
	struct bulk_job *bulk_job = job_to_bulk_job(job);
	struct gp_tls_record *record =
		helper ? &bulk_job->link->helper_open : &bulk_job->link->open;
	uint8_t *content = bulk_job->content + piece * PIECE_CONTENT;
	uint8_t *wire = bulk_job->wire + piece * PIECE_SIZE;

	record->sequence = bulk_job->first + (uint64_t)piece * RECORDS;
	for (unsigned int i = 0; i < RECORDS; i++) {
		uint8_t type, behind;
		struct iovec parts[2] = { { content + i * GP_TLS_RECORD_MAX, GP_TLS_RECORD_MAX },
					  { &behind, 1 } };
		size_t size;

		if (gp_tls_record_open(record, wire + i * RECORD_SIZE, RECORD_SIZE, parts, 2, &type,
				       &size) ||
		    type != GP_TLS_RECORD_DATA || size != GP_TLS_RECORD_MAX)
			return false;
	}
	return true;
}

/* Returns the number of pieces whose records are complete, and of full size according to their
 * headers. */
static unsigned int
pieces_count_ready(const struct gp_tls_link *link, unsigned int ready, unsigned int pieces)
{
	const uint8_t *wire = link->in + link->in_start;
	size_t have = link->in_end - link->in_start;

	for (; ready < pieces && (ready + 1) * PIECE_SIZE <= have; ready++) {
		for (unsigned int i = 0; i < RECORDS; i++) {
			const uint8_t *header = wire + ready * PIECE_SIZE + i * RECORD_SIZE;

			if (gp_tls_record_get_size(header) != (ssize_t)RECORD_SIZE)
				return ready;
		}
	}
	return ready;
}

/* Makes room for a whole job after the consumed bytes. The buffer must not move until the job is
 * done. */
static int
buffer_make_room(struct gp_tls_link *link)
{
	size_t have = link->in_end - link->in_start;

	if (link->in_size < IN_SIZE) {
		uint8_t *grown = realloc(link->in, IN_SIZE);

		if (!grown)
			return -ENOMEM;
		link->in = grown;
		link->in_size = IN_SIZE;
	}
	if (link->in_size - link->in_start < JOB_SIZE) {
		memmove(link->in, link->in + link->in_start, have);
		link->in_start = 0;
		link->in_end = have;
	}
	return gp_tls_record_copy_key(&link->helper_open, &link->open);
}

/* Receives until all pieces are complete or other records arrive. Returns the number of complete
 * pieces. */
static unsigned int
pieces_receive(struct gp_tcp_conn *conn, struct bulk_job *bulk_job, unsigned int pieces,
	       int timeout_ms)
{
	struct gp_tls_link *link = conn->tls;
	unsigned int ready = pieces_count_ready(link, 0, pieces);

	gp_tls_job_start(&bulk_job->help, ready);
	while (ready < pieces && link->in_end - link->in_start < (ready + 1) * PIECE_SIZE) {
		if (gp_tls_link_receive(conn, timeout_ms) <= 0)
			break;
		ready = pieces_count_ready(link, ready, pieces);
		gp_tls_job_add_pieces(&bulk_job->help, ready);
		/* The receiving thread takes over pieces if the helper is too slow. */
		if (atomic_load(&bulk_job->help.claimed) + 2 < ready)
			(void)gp_tls_job_run_piece(&bulk_job->help);
	}
	return ready;
}

ssize_t
gp_tls_receive_bulk(struct gp_tcp_conn *conn, const struct iovec *part, int timeout_ms)
{
	struct gp_tls_link *link = conn->tls;
	struct bulk_job bulk_job = { .help.run = piece_open,
				     .link = link,
				     .first = link->open.sequence };
	unsigned int pieces = size_to_pieces(part->iov_len), ready, good = 0;

	if (link->in_end - link->in_start >= GP_TLS_RECORD_HEADER &&
	    gp_tls_record_get_size(link->in + link->in_start) != (ssize_t)RECORD_SIZE)
		return 0;
	if (buffer_make_room(link))
		return 0;
	bulk_job.content = part->iov_base;
	bulk_job.wire = link->in + link->in_start;
	ready = pieces_receive(conn, &bulk_job, pieces, timeout_ms);
	while (gp_tls_job_run_piece(&bulk_job.help))
		;
	while (good < ready && gp_tls_job_wait_piece(&bulk_job.help, good))
		good++;
	gp_tls_job_stop(&bulk_job.help);
	/* Records that failed are processed again, one at a time. */
	link->open.sequence = bulk_job.first + (uint64_t)good * RECORDS;
	link->in_start += good * PIECE_SIZE;
	if (good > 0)
		link->idle = 0;
	return (ssize_t)(good * PIECE_CONTENT);
}
