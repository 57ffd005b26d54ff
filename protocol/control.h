/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control messages over a connection; what they say and who sends which is in control.proto.
 *
 * A received message belongs to the caller, who frees it with gp_control_free().  To send one,
 * fill the structs of control.pb-c.h on the stack.  Threads and return values are those of the
 * connection (transport.h); a malformed message kills it: -EPROTO, and gp_conn_error() says why.
 */
#ifndef GP_CONTROL_H
#define GP_CONTROL_H

#include "control.pb-c.h"
#include "transport/transport.h"

#include <stddef.h>
#include <stdint.h>

/* Below the transport's own limit, so that a new field never meets it by surprise. */
#define GP_CONTROL_MAX GP_CONN_MESSAGE_MAX

/* Bits of Hello.features and Welcome.features; a bit is used when both ends have it. */
enum gp_feature {
	GP_FEATURE_RESUME = 1 << 0, /* a cut session can be taken up again */
	GP_FEATURE_LZ4 = 1 << 1,    /* chunks of the data lanes may be compressed */
	GP_FEATURE_SHM = 1 << 2,    /* lanes may go through shared memory */
	GP_FEATURE_SPREAD =
		1 << 3, /* gp_chunk_get_step(): short copies, too, spread over the lanes */
	GP_FEATURE_LATE = 1 << 4, /* GP_COPY_LATE */
};

/* GP_E_TOO_BIG: over GP_CONTROL_MAX, nothing was sent. */
GP_MUST_CHECK int gp_control_send(struct gp_conn *conn, const Gpupool__ControlMessage *message);

/* The short ones, in memory of the caller's: `text` must live as long as the message. */
void gp_control_fill_refused(Gpupool__ControlMessage *message, Gpupool__Refused *refused,
			     Gpupool__Refused__Reason reason, const char *text);
void gp_control_fill_session_error(Gpupool__ControlMessage *message, Gpupool__SessionError *error,
				   int cuda_result, const char *text);
void gp_control_fill_bye(Gpupool__ControlMessage *message, Gpupool__Bye *bye, const char *text);
void gp_control_fill_ping(Gpupool__ControlMessage *message, Gpupool__Ping *ping, uint64_t number);
void gp_control_fill_pong(Gpupool__ControlMessage *message, Gpupool__Pong *pong, uint64_t number);

/* Shorthands: each wraps one message in a ControlMessage and sends it. */
GP_MUST_CHECK int gp_control_send_hello(struct gp_conn *conn, Gpupool__Hello *hello);
GP_MUST_CHECK int gp_control_send_welcome(struct gp_conn *conn, Gpupool__Welcome *welcome);
GP_MUST_CHECK int gp_control_send_refused(struct gp_conn *conn, Gpupool__Refused__Reason reason,
					  const char *text);
GP_MUST_CHECK int gp_control_send_session_error(struct gp_conn *conn, int cuda_result,
						const char *text);
GP_MUST_CHECK int gp_control_send_bye(struct gp_conn *conn, const char *text);
GP_MUST_CHECK int gp_control_send_ping(struct gp_conn *conn, uint64_t number);
GP_MUST_CHECK int gp_control_send_pong(struct gp_conn *conn, uint64_t number);

/*
 * Blocks for the next message, GP_E_EOF as in gp_conn_recv().  body_case is never NOT_SET: a
 * message of a kind that only a later version knows is skipped.
 */
GP_MUST_CHECK int gp_control_recv(struct gp_conn *conn, Gpupool__ControlMessage **message_p);

/* What gp_control_send_refused() puts on a byte stream, frame and all, for a connection that is
 * meant for TLS and refused before that.  Its size, at most `size`: the text is cut short. */
size_t gp_control_frame_refused(Gpupool__Refused__Reason reason, const char *text, uint8_t *bytes,
				size_t size);

/* Without a connection; NULL if the bytes are no control message. */
Gpupool__ControlMessage *gp_control_decode(const void *data, size_t size);

/* Accepts NULL. */
void gp_control_free(Gpupool__ControlMessage *message);

/* "Hello", "Welcome", ...: for logs. */
const char *gp_control_get_name(const Gpupool__ControlMessage *message);

/* Bit n % 8 of byte n / 8, as in call_bitmap; false beyond the end. */
static inline bool
gp_bitmap_test(const ProtobufCBinaryData *bitmap, size_t n)
{
	return n / 8 < bitmap->len && (bitmap->data[n / 8] >> (n % 8) & 1);
}

/* In Device.limits: the driver has no such limit. */
#define GP_LIMIT_UNSUPPORTED UINT64_MAX

/* Of Device.p2p_attributes, for each device: CUdevice_P2PAttribute from 1 on. */
#define GP_LINK_ATTRIBUTES 5

#endif /* GP_CONTROL_H */
