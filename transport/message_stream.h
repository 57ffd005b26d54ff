/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages over a byte stream: the framing that tcp, tls and loop share.
 *
 * A backend's connection begins with a struct gp_stream and brings a struct gp_stream_io; the
 * gp_stream_ functions are its operations as they stand.  Wire form: u32 data size, u32 bulk
 * size, both little-endian, then the data, then the bulk.
 */
#ifndef GP_STREAM_H
#define GP_STREAM_H

#include "transport/backend.h"

#include <sys/types.h>

struct gp_stream;

struct gp_stream_io {
	/* Bytes read, 0 at the end, or -errno; -EAGAIN: none came within timeout_ms (0 looks only,
	 * < 0 waits for ever; any other is the connection's stall time). */
	ssize_t (*read)(struct gp_stream *stream, struct iovec *iov, int count, int timeout_ms);
	/* Blocks; at least one byte written, or -errno.  `more`: another write follows at once. */
	ssize_t (*write)(struct gp_stream *stream, struct iovec *iov, int count, bool more);
	/* 1 when a read would not block, 0 after timeout_ms, or -errno. */
	int (*wait)(struct gp_stream *stream, int timeout_ms);
	/* Ends both directions and wakes whoever is in read, write or wait. */
	void (*shutdown)(struct gp_stream *stream);
};

struct gp_stream {
	struct gp_conn conn;
	const struct gp_stream_io *io;
	atomic_bool stopped;

	/* The receiving thread's: unread bytes are buffer[start..end). */
	uint8_t *buffer;
	size_t start;
	size_t end;
	size_t bulk_left;
	int recv_status;            /* what ended the receiving direction */
	unsigned int bulk_expected; /* messages among which another long tail may be */
	unsigned int spin_usec;
	unsigned int stall_timeout_ms;
	unsigned int silent_ms; /* since the last byte; gp_conn_set_stall_callback() */
	/* The next read is one more look of a row: a backend that has to make sure of something
	 * first has just done so. */
	bool again;
	size_t preamble_have;
	uint8_t preamble[GP_CONN_PREAMBLE_MAX];

	/* The sending thread's. */
	int send_status;
	/* Which a receiver may ask. */
	atomic_bool sending;
	atomic_bool send_timed_out;
};

/* 0 or -ENOMEM; gp_stream_fini() is right in both cases. */
GP_MUST_CHECK int gp_stream_init(struct gp_stream *stream, const struct gp_transport_ops *ops,
				 const struct gp_stream_io *io, unsigned int caps);
void gp_stream_fini(struct gp_stream *stream);

/* Nothing read ahead and no message under way: the descriptor could move. */
bool gp_stream_is_idle(const struct gp_stream *stream);

/* For a backend that moves bulk by another way: the message without it, ... */
int gp_stream_send_head(struct gp_stream *stream, const struct iovec *data, int data_count,
			size_t data_size, size_t bulk_size);
/* ... and what ends a direction when that way fails.  got as of read(); return the status. */
int gp_stream_fail_send(struct gp_stream *stream, int r);
int gp_stream_fail_recv(struct gp_stream *stream, ssize_t got, bool inside);

int gp_stream_recv_preamble(struct gp_conn *conn, void *preamble, size_t size, int timeout_ms);
int gp_stream_send_preamble(struct gp_conn *conn, const void *preamble, size_t size);
int gp_stream_send(struct gp_conn *conn, const struct iovec *data, int data_count,
		   const struct iovec *bulk, int bulk_count, size_t data_size, size_t bulk_size);
int gp_stream_recv(struct gp_conn *conn, struct gp_message *message);
int gp_stream_recv_bulk(struct gp_conn *conn, void *dst, size_t size);
int gp_stream_wait(struct gp_conn *conn, int timeout_ms);
bool gp_stream_pending(const struct gp_conn *conn);
void gp_stream_set_spin(struct gp_conn *conn, unsigned int usec);
void gp_stream_set_stall_timeout(struct gp_conn *conn, unsigned int ms);
void gp_stream_shutdown(struct gp_conn *conn);

#endif /* GP_STREAM_H */
