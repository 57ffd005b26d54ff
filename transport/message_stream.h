/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Message framing over a byte stream, shared by all backends.
 *
 * A backend's connection struct begins with struct gp_stream, and the backend provides a struct
 * gp_stream_io. The functions gp_stream_recv_preamble() to gp_stream_shutdown() serve as its
 * operations in struct gp_transport_ops, with the contracts of transport.h. Wire format: u32 data
 * size, u32 bulk size, both little-endian, then the data, then the bulk.
 *
 * Ownership: the stream owns its buffer; the backend owns the struct and the byte stream.
 * Threads: one receiving and one sending thread, as in transport.h.
 * Errors: as the operations of transport.h.
 */
#ifndef GP_MESSAGE_STREAM_H
#define GP_MESSAGE_STREAM_H

#include "transport/backend.h"

#include <sys/types.h>

struct gp_stream;

/* Byte stream of a backend. */
struct gp_stream_io {
	/* Reads at least one byte. Returns the bytes read, 0 at the end of the stream, or a
	 * negative errno; -EAGAIN: nothing arrived within timeout_ms (0: does not wait, < 0: waits
	 * without limit; any other value is the connection's stall or idle timeout). -ETIME: a
	 * message of the backend's own protocol has begun and stalled. -ETIMEDOUT: the peer's
	 * machine is silent. */
	ssize_t (*read)(struct gp_stream *stream, struct iovec *iov, int count, int timeout_ms);
	/* Waits for space (unless conn.nonblocking_send is set) and writes at least one byte.
	 * Returns the bytes written or a negative errno; -EAGAIN: there is no space and the write
	 * does not wait; -ETIMEDOUT: the send timeout has passed. `more`: another write follows
	 * immediately. */
	ssize_t (*write)(struct gp_stream *stream, struct iovec *iov, int count, bool more);
	/* Waits until a read would not block. Returns 1, 0 after timeout_ms (< 0: no limit), or a
	 * negative errno. */
	int (*wait)(struct gp_stream *stream, int timeout_ms);
	/* Ends both directions and wakes threads that are in read, write or wait. */
	void (*shutdown)(struct gp_stream *stream);
};

/* A connection whose messages are framed in a byte stream. */
struct gp_stream {
	struct gp_conn conn;
	const struct gp_stream_io *io;
	/* set by gp_stream_shutdown() */
	atomic_bool stopped;

	/* Received bytes that are not consumed yet: buffer[start..end). Members up to `preamble`
	 * are used by the receiving thread only. */
	uint8_t *buffer;
	size_t start;
	size_t end;
	/* bytes of the last message's bulk that were not received yet */
	size_t bulk_left;
	int recv_status; /* status that ended the receiving direction; 0: none */
	/* number of further messages among which another long bulk is expected */
	unsigned int bulk_expected;
	unsigned int spin_usec;        /* gp_conn_set_spin() */
	unsigned int stall_timeout_ms; /* gp_conn_set_stall_timeout(); 0: never */
	/* milliseconds since the last byte; for gp_conn_set_stall_callback() */
	unsigned int silent_ms;
	/* The next read repeats a poll in a spin loop. A backend that checks its descriptor before
	 * each read has just done so. */
	bool again;
	/* bytes of `preamble` received so far */
	size_t preamble_have;
	uint8_t preamble[GP_CONN_PREAMBLE_MAX];

	/* status that ended the sending direction; 0: none. Used by the sending thread. */
	int send_status;
	/* Whether a send is in progress. Written by the sending thread, read by the receiving
	 * thread. */
	atomic_bool sending;
	/* Whether a send has failed with -ETIMEDOUT; read by the receiving thread. */
	atomic_bool send_timed_out;
};

/* Initializes a stream, whose memory must be zeroed. Returns 0 or -ENOMEM; gp_stream_fini() may be
 * called in both cases. */
GP_MUST_CHECK int gp_stream_init(struct gp_stream *stream, const struct gp_transport_ops *ops,
				 const struct gp_stream_io *io, unsigned int caps);
/* Frees the stream's buffer. Undoes gp_stream_init(). */
void gp_stream_fini(struct gp_stream *stream);

/* Returns whether no bytes were read ahead, no message is in progress and no direction has ended,
 * so that the descriptor can be passed to another process. */
bool gp_stream_is_idle(const struct gp_stream *stream);

/* For a backend that transfers bulk in another way: sends the message's header and data without its
 * bulk. Waits and returns as gp_conn_send(). */
int gp_stream_send_head(struct gp_stream *stream, const struct iovec *data, int data_count,
			size_t data_size, size_t bulk_size);
/* Ends the sending direction after a transfer of bulk by the backend has failed with r, a negative
 * errno. Returns the direction's status, a negative errno that may differ from r (-ESHUTDOWN after
 * a shutdown, -ETIMEDOUT if the peer's machine is silent), and sets the connection's error unless
 * it has one. */
int gp_stream_fail_send(struct gp_stream *stream, int r);
/* Ends the receiving direction, for the receiving thread. got: result of read(): 0, the end of the
 * stream, or a negative errno. inside: within a message. Sets the connection's error unless it has
 * one or the result is GP_E_EOF. Returns the direction's status: a negative errno, or GP_E_EOF for
 * an orderly end between messages. */
int gp_stream_fail_recv(struct gp_stream *stream, ssize_t got, bool inside);

int gp_stream_recv_preamble(struct gp_conn *conn, void *preamble, size_t size, int timeout_ms);
int gp_stream_send_preamble(struct gp_conn *conn, const void *preamble, size_t size);
int gp_stream_send(struct gp_conn *conn, const struct iovec *data, int data_count,
		   const struct iovec *bulk, int bulk_count, size_t data_size, size_t bulk_size);
int gp_stream_recv(struct gp_conn *conn, struct gp_message *message);
int gp_stream_recv_bulk(struct gp_conn *conn, void *dst, size_t size);
bool gp_stream_pending(const struct gp_conn *conn);
void gp_stream_set_spin(struct gp_conn *conn, unsigned int usec);
void gp_stream_set_stall_timeout(struct gp_conn *conn, unsigned int ms);
void gp_stream_shutdown(struct gp_conn *conn);

#endif /* GP_MESSAGE_STREAM_H */
