/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/lock.h"
#include "transport/tls/tls_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Records per system call: a few dozen microseconds of work, which fits a core's cache. */
#define RECORDS 8
#define OUT_SIZE (RECORDS * (GP_TLS_RECORD_MAX + GP_TLS_RECORD_OVERHEAD))
#define IN_SIZE (2 * OUT_SIZE)
#define PLAIN_SIZE (GP_TLS_RECORD_MAX + 256)
/* Limit of consecutive records without data. */
#define IDLE_MAX 32
/* Maximum content of a record that is not data. */
#define CONTROL_MAX 2048
#define PARTS_MAX 4

#define KEY_UPDATE 24
#define NEW_SESSION_TICKET 4
#define WARNING 1
#define FATAL 2

static struct gp_tcp_conn *
stream_to_tcp(struct gp_stream *stream)
{
	return (struct gp_tcp_conn *)stream;
}

void
gp_tls_link_destroy(struct gp_tls_link *link)
{
	gp_tls_record_fini(&link->seal);
	gp_tls_record_fini(&link->helper_seal);
	gp_tls_record_fini(&link->open);
	gp_tls_record_fini(&link->helper_open);
	pthread_mutex_destroy(&link->send_lock);
	free(link->out);
	free(link->bulk_out);
	free(link->in);
	free(link->plain);
	free(link);
}

int
gp_tls_link_start(struct gp_tcp_conn *conn, const struct gp_tls_secrets *secrets, bool server)
{
	struct gp_tls_link *link = calloc(1, sizeof(*link));
	OSSL_LIB_CTX *library = gp_tls_get_libctx();
	int r;

	if (!link)
		return -ENOMEM;
	pthread_mutex_init(&link->send_lock, NULL);
	link->server = server;
	link->out = malloc(OUT_SIZE);
	link->in = malloc(IN_SIZE);
	link->in_size = IN_SIZE;
	link->plain = malloc(PLAIN_SIZE);
	r = link->out && link->in && link->plain ? 0 : -ENOMEM;
	if (r == 0)
		r = gp_tls_record_init(&link->seal, library, secrets->suite,
				       server ? secrets->server : secrets->client,
				       server ? secrets->server_size : secrets->client_size, true);
	if (r == 0)
		r = gp_tls_record_init(&link->open, library, secrets->suite,
				       server ? secrets->client : secrets->server,
				       server ? secrets->client_size : secrets->server_size, false);
	if (r) {
		gp_tls_link_destroy(link);
		return r;
	}
	conn->stream.conn.caps |= GP_CONN_CAP_ENCRYPTED;
	conn->stream.conn.caps &= ~(unsigned int)GP_CONN_CAP_ADOPT;
	atomic_store(&conn->tls, link);
	return 0;
}

/* Sending */

/* An alert that cannot be sent without waiting is dropped. */
static void
alert_send(struct gp_tcp_conn *conn, struct gp_tls_link *link, uint8_t level, uint8_t alert)
	GP_LOCKED(link->send_lock)
{
	uint8_t content[2] = { level, alert }, record[sizeof(content) + GP_TLS_RECORD_OVERHEAD];
	struct iovec part = { content, sizeof(content) };

	if (link->closed)
		return;
	link->closed = true;
	if (gp_tls_record_seal(&link->seal, GP_TLS_RECORD_ALERT, &part, sizeof(content), record) ==
	    0)
		(void)!send(gp_tcp_fd(&conn->stream.conn), record, sizeof(record),
			    MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void
alert_try_send(struct gp_tcp_conn *conn, uint8_t level, uint8_t alert)
{
	struct gp_tls_link *link = conn->tls;

	/* If another thread is sending, the peer receives an incomplete record anyway. */
	if (gp_tcp_fd(&conn->stream.conn) < 0 || pthread_mutex_trylock(&link->send_lock))
		return;
	alert_send(conn, link, level, alert);
	pthread_mutex_unlock(&link->send_lock);
}

void
gp_tls_link_close(struct gp_tcp_conn *conn)
{
	alert_try_send(conn, WARNING, SSL_AD_CLOSE_NOTIFY);
}

static void
tls_shutdown(struct gp_stream *stream)
{
	struct gp_tcp_conn *conn = stream_to_tcp(stream);

	if (conn->tls)
		gp_tls_link_close(conn);
	gp_tcp_shutdown(stream);
}

/* Updates the key if the peer requests it or the key has reached its record limit. */
static int
key_update(struct gp_tls_link *link, size_t *used)
{
	uint8_t message[5] = { KEY_UPDATE, 0, 0, 1, 0 };
	struct iovec part = { message, sizeof(message) };
	int r;

	if (!atomic_exchange(&link->update_wanted, false) &&
	    link->seal.sequence < GP_TLS_RECORD_KEY_MAX)
		return 0;
	r = gp_tls_record_seal(&link->seal, GP_TLS_RECORD_HANDSHAKE, &part, sizeof(message),
			       link->out + *used);
	*used += sizeof(message) + GP_TLS_RECORD_OVERHEAD;
	return r ? r : gp_tls_record_update_key(&link->seal);
}

static void
iov_advance(struct iovec **iov, int *count, size_t size)
{
	while (*count > 0 && size >= (*iov)->iov_len) {
		size -= (*iov)->iov_len;
		++*iov;
		--*count;
	}
	if (size > 0) {
		(*iov)->iov_base = (uint8_t *)(*iov)->iov_base + size;
		(*iov)->iov_len -= size;
	}
}

/* Returns the content size of the next record. A large part begins a new record, so that the
 * receiver need not copy it. */
static size_t
iov_get_record_size(const struct iovec *iov, int count)
{
	size_t size = 0;

	for (; count > 0; iov++, count--) {
		if (size > 0 && iov->iov_len >= GP_TLS_RECORD_MAX)
			return size;
		if (iov->iov_len >= GP_TLS_RECORD_MAX - size)
			return GP_TLS_RECORD_MAX;
		size += iov->iov_len;
	}
	return size;
}

/* Seals as many records of the parts as fit. */
static int
parts_seal(struct gp_tls_link *link, struct iovec **iov, int *count, size_t *used, size_t *taken)
{
	size_t size;

	while (*count > 0 && !gp_tls_is_bulk(*iov) &&
	       (size = iov_get_record_size(*iov, *count)) > 0 &&
	       *used + size + GP_TLS_RECORD_OVERHEAD <= OUT_SIZE) {
		int r = gp_tls_record_seal(&link->seal, GP_TLS_RECORD_DATA, *iov, size,
					   link->out + *used);

		if (r)
			return r;
		*used += size + GP_TLS_RECORD_OVERHEAD;
		*taken += size;
		iov_advance(iov, count, size);
	}
	return 0;
}

int
gp_tls_link_send(struct gp_stream *stream, const uint8_t *bytes, size_t size, bool more)
{
	struct iovec part = { (void *)bytes, size };

	while (part.iov_len > 0) {
		ssize_t done = gp_tcp_write(stream, &part, 1, more);

		if (done < 0)
			return (int)done;
		part.iov_base = (uint8_t *)part.iov_base + done;
		part.iov_len -= (size_t)done;
	}
	return 0;
}

static ssize_t
tls_write(struct gp_stream *stream, struct iovec *iov, int count, bool more)
{
	struct gp_tls_link *link = stream_to_tcp(stream)->tls;
	size_t used = 0, taken = 0;
	ssize_t done;
	int r;

	if (!link)
		return gp_tcp_write(stream, iov, count, more);
	pthread_mutex_lock(&link->send_lock);
	r = link->closed ? -EPIPE : key_update(link, &used);
	if (r == 0)
		r = parts_seal(link, &iov, &count, &used, &taken);
	if (r == 0)
		r = gp_tls_link_send(stream, link->out, used, more || count > 0);
	if (r == 0 && count > 0 && gp_tls_is_bulk(iov)) {
		done = gp_tls_send_bulk(stream_to_tcp(stream), iov, more || count > 1);
		if (done < 0)
			r = (int)done;
		else
			taken += (size_t)done;
	}
	/* After a partially sent record nothing else can be sent. */
	if (r)
		link->closed = true;
	pthread_mutex_unlock(&link->send_lock);
	return r ? r : (ssize_t)taken;
}

/* Receiving */

static int
link_fail(struct gp_tcp_conn *conn, int r, uint8_t alert, const char *text)
{
	conn->tls->failed = gp_conn_fail(&conn->stream.conn, r, "%s", text);
	if (alert)
		alert_try_send(conn, FATAL, alert);
	return r;
}

/* The daemon verifies a client's certificate after the client has completed its handshake. */
static bool
alert_is_about_certificate(uint8_t alert)
{
	return (alert >= SSL_AD_BAD_CERTIFICATE && alert <= SSL_AD_CERTIFICATE_UNKNOWN) ||
	       alert == SSL_AD_UNKNOWN_CA || alert == SSL_AD_CERTIFICATE_REQUIRED;
}

static int
alert_handle(struct gp_tcp_conn *conn, const uint8_t *content, size_t size)
{
	struct gp_tls_link *link = conn->tls;

	if (size != 2)
		return link_fail(conn, -EPROTO, SSL_AD_DECODE_ERROR, "a malformed TLS alert");
	if (content[1] == SSL_AD_CLOSE_NOTIFY)
		link->ended = true;
	else if (!link->server && alert_is_about_certificate(content[1]))
		link->failed = gp_conn_fail(&conn->stream.conn, -EACCES,
					    "the daemon does not accept this end's certificate: %s",
					    SSL_alert_desc_string_long(content[1]));
	else if (content[1] != SSL_AD_USER_CANCELLED)
		link->failed = gp_conn_fail(
			&conn->stream.conn, -EACCES, "the %s ended the connection: %s",
			link->server ? "client" : "daemon", SSL_alert_desc_string_long(content[1]));
	return link->failed;
}

static int
handshake_handle(struct gp_tcp_conn *conn, const uint8_t *content, size_t size)
{
	struct gp_tls_link *link = conn->tls;

	while (size >= 4) {
		size_t body = (size_t)content[1] << 16 | (size_t)content[2] << 8 | content[3];
		uint8_t type = content[0];

		if (body > size - 4)
			break;
		/* The next record uses the new key. */
		if (type == KEY_UPDATE && body == 1 && size == 5 && content[4] <= 1) {
			if (content[4])
				atomic_store(&link->update_wanted, true);
			if (gp_tls_record_update_key(&link->open))
				return link_fail(conn, -ENOMEM, SSL_AD_INTERNAL_ERROR,
						 "no memory for new keys");
		} else if (type != NEW_SESSION_TICKET || link->server) {
			break;
		}
		content += 4 + body;
		size -= 4 + body;
	}
	if (size > 0)
		return link_fail(conn, -EPROTO, SSL_AD_UNEXPECTED_MESSAGE,
				 "an unexpected TLS handshake message");
	return 0;
}

static int
control_handle(struct gp_tcp_conn *conn, uint8_t type, const struct iovec *parts, size_t size)
{
	uint8_t content[CONTROL_MAX];
	size_t have = 0;

	if (size > sizeof(content) || size == 0)
		return link_fail(conn, -EPROTO, SSL_AD_UNEXPECTED_MESSAGE,
				 "an unexpected TLS record");
	for (; have < size; parts++) {
		size_t take = parts->iov_len < size - have ? parts->iov_len : size - have;

		memcpy(content + have, parts->iov_base, take);
		have += take;
	}
	if (type == GP_TLS_RECORD_ALERT)
		return alert_handle(conn, content, size);
	if (type == GP_TLS_RECORD_HANDSHAKE)
		return handshake_handle(conn, content, size);
	return link_fail(conn, -EPROTO, SSL_AD_UNEXPECTED_MESSAGE, "an unexpected TLS record");
}

/* Returns the size of the next record if it is complete; 0: not yet. */
static ssize_t
record_get_size(const struct gp_tls_link *link)
{
	size_t have = link->in_end - link->in_start;
	ssize_t size;

	if (have < GP_TLS_RECORD_HEADER)
		return 0;
	size = gp_tls_record_get_size(link->in + link->in_start);
	return size > 0 && (size_t)size > have ? 0 : size;
}

bool
gp_tls_link_pending(const struct gp_tls_link *link)
{
	return link->plain_start < link->plain_end || record_get_size(link) != 0;
}

/* Opens a record into the parts, and into `plain` what does not fit. Returns the bytes in the
 * parts. */
static ssize_t
record_open(struct gp_tcp_conn *conn, size_t size, const struct iovec *iov, int count)
{
	struct gp_tls_link *link = conn->tls;
	struct iovec parts[PARTS_MAX + 1];
	size_t capacity = 0, content;
	uint8_t type;
	int r;

	if (count > PARTS_MAX)
		count = PARTS_MAX;
	for (int i = 0; i < count; i++) {
		parts[i] = iov[i];
		capacity += iov[i].iov_len;
	}
	parts[count] = (struct iovec){ link->plain, PLAIN_SIZE };
	r = gp_tls_record_open(&link->open, link->in + link->in_start, size, parts, count + 1,
			       &type, &content);
	if (r == -EPROTO)
		return link_fail(conn, r, SSL_AD_UNEXPECTED_MESSAGE, "a malformed TLS record");
	if (r)
		return link_fail(conn, r, SSL_AD_BAD_RECORD_MAC,
				 "TLS record failed authentication");
	link->in_start += size;
	link->idle = type == GP_TLS_RECORD_DATA && content > 0 ? 0 : link->idle + 1;
	if (link->idle > IDLE_MAX)
		return link_fail(conn, -EPROTO, SSL_AD_UNEXPECTED_MESSAGE,
				 "too many TLS records without data");
	if (type != GP_TLS_RECORD_DATA)
		return control_handle(conn, type, parts, content);
	if (content > capacity) {
		link->plain_start = 0;
		link->plain_end = content - capacity;
	}
	return (ssize_t)(content < capacity ? content : capacity);
}

static int
record_refuse(struct gp_tcp_conn *conn)
{
	return link_fail(conn, -EPROTO, SSL_AD_UNEXPECTED_MESSAGE,
			 "received data is not a TLS record");
}

static bool
record_is_full(ssize_t size)
{
	return size == (ssize_t)(GP_TLS_RECORD_MAX + GP_TLS_RECORD_OVERHEAD);
}

/* Opens the complete records into the parts. Returns 0 if there is none. */
static ssize_t
records_open(struct gp_tcp_conn *conn, struct iovec *iov, int count)
{
	struct gp_tls_link *link = conn->tls;
	bool short_one = false;
	size_t done = 0;

	while (count > 0 && !link->ended) {
		ssize_t size = record_get_size(link), got;

		if (size < 0)
			return record_refuse(conn);
		/* After a message's head, its bulk begins a new record; the caller decides where
		 * that is stored. */
		if (size == 0 || (done > 0 && short_one && record_is_full(size)))
			break;
		short_one = !record_is_full(size);
		got = record_open(conn, (size_t)size, iov, count);
		if (got < 0)
			return got;
		done += (size_t)got;
		iov_advance(&iov, &count, (size_t)got);
	}
	return (ssize_t)done;
}

/* Moves at most part of a record to the start of the buffer. */
static void
buffer_compact(struct gp_tls_link *link)
{
	size_t have = link->in_end - link->in_start;

	if (link->in_start == 0)
		return;
	memmove(link->in, link->in + link->in_start, have);
	link->in_start = 0;
	link->in_end = have;
}

int
gp_tls_link_receive(struct gp_tcp_conn *conn, int timeout_ms)
{
	struct gp_tls_link *link = conn->tls;
	struct iovec part = { link->in + link->in_end, link->in_size - link->in_end };
	ssize_t got;

	/* A partially received record is treated like a partially received message. */
	if (link->in_end > link->in_start && timeout_ms != 0)
		timeout_ms =
			conn->stream.stall_timeout_ms ? (int)conn->stream.stall_timeout_ms : -1;
	got = gp_tcp_read(&conn->stream, &part, 1, timeout_ms);
	if (got == -EAGAIN)
		return 0;
	if (got == 0 && !atomic_load(&conn->stream.stopped))
		return link_fail(conn, -ECONNRESET, 0, "connection closed without close_notify");
	if (got == 0)
		got = -ECONNRESET;
	if (got < 0) {
		link->failed = (int)got;
		return (int)got;
	}
	link->in_end += (size_t)got;
	return 1;
}

static size_t
plain_read(struct gp_tls_link *link, struct iovec *iov, int count)
{
	size_t done = 0;

	for (int i = 0; i < count && link->plain_start < link->plain_end; i++) {
		size_t left = link->plain_end - link->plain_start;
		size_t take = iov[i].iov_len < left ? iov[i].iov_len : left;

		memcpy(iov[i].iov_base, link->plain + link->plain_start, take);
		link->plain_start += take;
		done += take;
	}
	return done;
}

/* -ETIME: a partially received record stalled. */
static ssize_t
tls_read(struct gp_stream *stream, struct iovec *iov, int count, int timeout_ms)
{
	struct gp_tcp_conn *conn = stream_to_tcp(stream);
	struct gp_tls_link *link = conn->tls;
	ssize_t got;

	if (!link)
		return gp_tcp_read(stream, iov, count, timeout_ms);
	if (link->plain_start < link->plain_end)
		return (ssize_t)plain_read(link, iov, count);
	if (link->failed == 0 && !link->ended && gp_tls_is_bulk(iov)) {
		got = gp_tls_receive_bulk(conn, iov, timeout_ms);
		if (got > 0)
			return got;
	}
	while (link->failed == 0) {
		bool begun;
		int r;

		got = records_open(conn, iov, count);
		if (got != 0 || link->ended)
			return got;
		buffer_compact(link);
		begun = link->in_end > link->in_start;
		r = gp_tls_link_receive(conn, timeout_ms);
		if (r == 0)
			return begun && timeout_ms ? -ETIME : -EAGAIN;
	}
	return link->failed;
}

/* Opens a record ahead, because bytes on the socket alone do not guarantee that a read finds
 * data. */
static int
tls_wait(struct gp_stream *stream, int timeout_ms)
{
	struct gp_tcp_conn *conn = stream_to_tcp(stream);
	struct gp_tls_link *link = conn->tls;
	int64_t deadline = gp_deadline_ms(timeout_ms);

	if (!link)
		return gp_tcp_wait(stream, timeout_ms);
	while (link->plain_start == link->plain_end && !link->ended && link->failed == 0) {
		ssize_t size = record_get_size(link);
		int r;

		if (size < 0) {
			(void)record_refuse(conn);
			break;
		}
		if (size > 0) {
			(void)record_open(conn, (size_t)size, NULL, 0);
			continue;
		}
		r = gp_tcp_poll(stream, POLLIN, gp_remaining_ms(deadline));
		if (r <= 0)
			return r;
		buffer_compact(link);
		(void)!gp_tls_link_receive(conn, 0);
	}
	return 1;
}

const struct gp_stream_io gp_tls_io = {
	.read = tls_read,
	.write = tls_write,
	.wait = tls_wait,
	.shutdown = tls_shutdown,
};
