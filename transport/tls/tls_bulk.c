/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tls/tls_help.h"
#include "transport/tls/tls_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Less than this is done sooner than a helper comes. */
#define BULK_MIN ((size_t)256 << 10)
/* Of a piece; each is a few microseconds of work. */
#define RECORDS 4
#define RECORDS_MAX (GP_HELP_PIECES * RECORDS)
#define RECORD_SIZE (GP_RECORD_MAX + GP_RECORD_MORE)
#define PIECE_SIZE (RECORDS * RECORD_SIZE)
#define PIECE_CONTENT (RECORDS * GP_RECORD_MAX)
#define JOB_SIZE (GP_HELP_PIECES * PIECE_SIZE)
/* A job need not begin where the buffer does: what lies before it has been taken. */
#define IN_SIZE (JOB_SIZE + PIECE_SIZE)

/* Records of full size, one behind the other, in memory and on the wire. */
struct job {
	struct gp_help help;
	struct gp_tls_link *link;
	uint8_t *content, *wire;
	uint64_t first; /* sequence number */
};

static struct job *
job_of(struct gp_help *help)
{
	return (struct job *)help;
}

bool
gp_tls_is_bulk(const struct iovec *part)
{
	return part->iov_len >= BULK_MIN && gp_help_is_there();
}

/* Whole pieces that fit, at most those of one job. */
static unsigned int
pieces_of(size_t size)
{
	size_t pieces = size / PIECE_CONTENT;

	return pieces < GP_HELP_PIECES ? (unsigned int)pieces : GP_HELP_PIECES;
}

static bool
seal_piece(struct gp_help *help, unsigned int piece, bool helper)
{
	struct job *job = job_of(help);
	struct gp_record *record = helper ? &job->link->seal_twin : &job->link->seal;
	uint8_t *content = job->content + piece * PIECE_CONTENT;
	uint8_t *wire = job->wire + piece * PIECE_SIZE;

	record->sequence = job->first + (uint64_t)piece * RECORDS;
	for (unsigned int i = 0; i < RECORDS; i++) {
		struct iovec part = { content + i * GP_RECORD_MAX, GP_RECORD_MAX };

		if (gp_record_seal(record, GP_RECORD_DATA, &part, GP_RECORD_MAX,
				   wire + i * RECORD_SIZE))
			return false;
	}
	return true;
}

ssize_t
gp_tls_send_bulk(struct gp_tcp_conn *conn, const struct iovec *part, bool more)
{
	struct gp_tls_link *link = conn->tls;
	unsigned int pieces = pieces_of(part->iov_len);
	struct job job = { .help.run = seal_piece, .link = link, .first = link->seal.sequence };
	int r;

	if (!link->bulk_out)
		link->bulk_out = malloc(JOB_SIZE);
	r = link->bulk_out ? gp_record_twin(&link->seal_twin, &link->seal) : -ENOMEM;
	if (r)
		return r;
	job.content = part->iov_base;
	job.wire = link->bulk_out;
	gp_help_begin(&job.help, pieces);
	more = more || pieces * PIECE_CONTENT < part->iov_len;
	for (unsigned int i = 0, next; i < pieces && r == 0; i = next) {
		while (atomic_load(&job.help.claimed) <= i)
			(void)gp_help_oneself(&job.help);
		if (!gp_help_wait(&job.help, i))
			r = -EIO;
		/* What is sealed by now goes out in one go. */
		for (next = i + 1; next < pieces && gp_help_is_done(&job.help, next);)
			next++;
		if (r == 0)
			r = gp_tls_link_send(&conn->stream, job.wire + i * PIECE_SIZE,
					     (next - i) * PIECE_SIZE, more || next < pieces);
	}
	gp_help_end(&job.help);
	link->seal.sequence = job.first + (uint64_t)pieces * RECORDS;
	return r ? r : (ssize_t)(pieces * PIECE_CONTENT);
}

static bool
open_piece(struct gp_help *help, unsigned int piece, bool helper)
{
	struct job *job = job_of(help);
	struct gp_record *record = helper ? &job->link->open_twin : &job->link->open;
	uint8_t *content = job->content + piece * PIECE_CONTENT;
	uint8_t *wire = job->wire + piece * PIECE_SIZE;

	record->sequence = job->first + (uint64_t)piece * RECORDS;
	for (unsigned int i = 0; i < RECORDS; i++) {
		uint8_t type, behind;
		struct iovec parts[2] = { { content + i * GP_RECORD_MAX, GP_RECORD_MAX },
					  { &behind, 1 } };
		size_t size;

		if (gp_record_open(record, wire + i * RECORD_SIZE, RECORD_SIZE, parts, 2, &type,
				   &size) ||
		    type != GP_RECORD_DATA || size != GP_RECORD_MAX)
			return false;
	}
	return true;
}

/* Pieces whose records are all there, and full as far as their headers say. */
static unsigned int
count_ready(const struct gp_tls_link *link, unsigned int ready, unsigned int pieces)
{
	const uint8_t *wire = link->in + link->in_start;
	size_t have = link->in_end - link->in_start;

	for (; ready < pieces && (ready + 1) * PIECE_SIZE <= have; ready++) {
		for (unsigned int i = 0; i < RECORDS; i++) {
			const uint8_t *header = wire + ready * PIECE_SIZE + i * RECORD_SIZE;

			if (gp_record_size(header) != (ssize_t)RECORD_SIZE)
				return ready;
		}
	}
	return ready;
}

/* All that one job takes fits behind what has been taken, where it stays until the job is done. */
static int
make_room(struct gp_tls_link *link)
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
	return gp_record_twin(&link->open_twin, &link->open);
}

/* Until all pieces are there, or what comes is something else.  How many there are. */
static unsigned int
receive_pieces(struct gp_tcp_conn *conn, struct job *job, unsigned int pieces, int timeout_ms)
{
	struct gp_tls_link *link = conn->tls;
	unsigned int ready = count_ready(link, 0, pieces);

	gp_help_begin(&job->help, ready);
	while (ready < pieces && link->in_end - link->in_start < (ready + 1) * PIECE_SIZE) {
		if (gp_tls_link_receive(conn, timeout_ms) <= 0)
			break;
		ready = count_ready(link, ready, pieces);
		gp_help_more(&job->help, ready);
		/* A helper that does not keep up is helped. */
		if (atomic_load(&job->help.claimed) + 2 < ready)
			(void)gp_help_oneself(&job->help);
	}
	return ready;
}

ssize_t
gp_tls_receive_bulk(struct gp_tcp_conn *conn, const struct iovec *part, int timeout_ms)
{
	struct gp_tls_link *link = conn->tls;
	struct job job = { .help.run = open_piece, .link = link, .first = link->open.sequence };
	unsigned int pieces = pieces_of(part->iov_len), ready, good = 0;

	if (link->in_end - link->in_start >= GP_RECORD_HEADER &&
	    gp_record_size(link->in + link->in_start) != (ssize_t)RECORD_SIZE)
		return 0;
	if (make_room(link))
		return 0;
	job.content = part->iov_base;
	job.wire = link->in + link->in_start;
	ready = receive_pieces(conn, &job, pieces, timeout_ms);
	while (gp_help_oneself(&job.help))
		;
	while (good < ready && gp_help_wait(&job.help, good))
		good++;
	gp_help_end(&job.help);
	/* What is not as it should be is looked at again, record by record. */
	link->open.sequence = job.first + (uint64_t)good * RECORDS;
	link->in_start += good * PIECE_SIZE;
	if (good > 0)
		link->idle = 0;
	return (ssize_t)(good * PIECE_CONTENT);
}
