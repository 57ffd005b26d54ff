/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control messages over a connection: packing, sending and receiving. control.proto describes the
 * messages and which end sends which.
 *
 * To send a message, fill the structs of control.pb-c.h on the stack.
 *
 * Ownership: the caller frees a received message with gp_control_free().
 * Threads: as the connection (transport.h).
 * Errors: as the connection. A malformed message makes the connection unusable (-EPROTO);
 * gp_conn_error() returns the reason.
 */
#ifndef GP_CONTROL_H
#define GP_CONTROL_H

#include "control.pb-c.h"
#include "transport/transport.h"

#include <stddef.h>
#include <stdint.h>

/* Maximum size of a control message; below the transport's limit, so that new fields cannot exceed
 * it unexpectedly. */
#define GP_CONTROL_MAX GP_CONN_MESSAGE_MAX

/* Bits of Hello.features and Welcome.features. A feature is used if both ends have its bit set. */
enum gp_feature {
	/* The client can resume a session after its connection was cut. */
	GP_FEATURE_RESUME = 1 << 0,
	GP_FEATURE_LZ4 = 1 << 1, /* chunks on data lanes may be compressed */
	GP_FEATURE_SHM = 1 << 2, /* lanes may use shared memory */
	/* Short copies are also spread over the lanes, see gp_chunk_get_step(). */
	GP_FEATURE_SPREAD = 1 << 3,
	GP_FEATURE_LATE = 1 << 4, /* GP_COPY_LATE */
};

/* Packs and sends a message. GP_E_TOO_BIG: larger than GP_CONTROL_MAX; nothing was sent. */
GP_MUST_CHECK int gp_control_send(struct gp_conn *conn, const Gpupool__ControlMessage *message);

/* Fill the short messages in memory of the caller. `text` is borrowed and must live as long as the
 * message. */
void gp_control_fill_refused(Gpupool__ControlMessage *message, Gpupool__Refused *refused,
			     Gpupool__Refused__Reason reason, const char *text);
void gp_control_fill_session_error(Gpupool__ControlMessage *message, Gpupool__SessionError *error,
				   int cuda_result, const char *text);
void gp_control_fill_bye(Gpupool__ControlMessage *message, Gpupool__Bye *bye, const char *text);
void gp_control_fill_pong(Gpupool__ControlMessage *message, Gpupool__Pong *pong, uint64_t number);

/* Each of these wraps one message in a ControlMessage and sends it with gp_control_send(). */
GP_MUST_CHECK int gp_control_send_hello(struct gp_conn *conn, Gpupool__Hello *hello);
GP_MUST_CHECK int gp_control_send_bye(struct gp_conn *conn, const char *text);
GP_MUST_CHECK int gp_control_send_ping(struct gp_conn *conn, uint64_t number);

/*
 * Waits for the next message; returns GP_E_EOF as gp_conn_recv() does. body_case is never NOT_SET:
 * messages of kinds that this version does not know are skipped.
 */
GP_MUST_CHECK int gp_control_recv(struct gp_conn *conn, Gpupool__ControlMessage **message_p);

/* Writes the bytes of a Refused message on a byte stream, including the frame.
 * Used to refuse a connection before its TLS handshake. Returns the size, at most `size`; the text
 * is truncated to fit. */
size_t gp_control_frame_refused(Gpupool__Refused__Reason reason, const char *text, uint8_t *bytes,
				size_t size);

/* Decodes a message that did not come over a connection. Returns NULL if the bytes are not a valid
 * control message. */
Gpupool__ControlMessage *gp_control_decode(const void *data, size_t size);

/* Frees a message; accepts NULL. */
void gp_control_free(Gpupool__ControlMessage *message);

/* Returns the message's name for logs: "Hello", "Welcome", ... */
const char *gp_control_get_name(const Gpupool__ControlMessage *message);

/* Tests bit n % 8 of byte n / 8, as in Welcome.call_bitmap; false beyond the end. */
static inline bool
gp_bitmap_test(const ProtobufCBinaryData *bitmap, size_t n)
{
	return n / 8 < bitmap->len && (bitmap->data[n / 8] >> (n % 8) & 1);
}

/* In Device.limits: the driver does not support this limit. */
#define GP_LIMIT_UNSUPPORTED UINT64_MAX

/* Number of values in Device.p2p_attributes for each peer device: CUdevice_P2PAttribute from 1
 * on. */
#define GP_LINK_ATTRIBUTES 5

#endif /* GP_CONTROL_H */
