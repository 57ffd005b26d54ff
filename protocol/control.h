/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control messages over a connection: packing, sending and receiving. control.proto describes the
 * messages, and which end sends which. To send a message, the caller fills the structs of
 * control.pb-c.h on its stack, by a function below where there is one.
 *
 * Ownership: a message to be sent is borrowed during the call. The caller frees a received message
 * with gp_control_free().
 * Threads: as the connection (transport.h).
 * Errors: functions that return int return 0 or an error of gp_conn_send() or gp_conn_recv(). A
 * malformed received message (-EPROTO) and a lack of memory (-ENOMEM) make the connection unusable;
 * gp_conn_error() returns the reason.
 */
#ifndef GP_CONTROL_H
#define GP_CONTROL_H

#include "control.pb-c.h"
#include "transport/transport.h"

#include <stddef.h>
#include <stdint.h>

/* Maximum size of a packed control message, in bytes. */
#define GP_CONTROL_MAX GP_CONN_MESSAGE_MAX

/* Bits of Hello.features and Welcome.features. A feature is used if both ends have its bit set. */
enum gp_feature {
	/* Reserved: a session can be resumed after its connection was cut. No version has it. */
	GP_FEATURE_RESUME = 1 << 0,
	GP_FEATURE_LZ4 = 1 << 1, /* chunks on data lanes may be compressed with LZ4 */
	GP_FEATURE_SHM = 1 << 2, /* data connections (lanes) may use shared memory */
	/* Short copies are also divided among the lanes, see gp_chunk_get_step(). */
	GP_FEATURE_SPREAD = 1 << 3,
	GP_FEATURE_LATE = 1 << 4, /* the worker accepts late copies (GP_COPY_LATE) */
	/* The daemon knows Isolation.TENANT (control.proto). */
	GP_FEATURE_TENANT_WORKERS = 1 << 5,
};

/* Packs and sends a message; waits as gp_conn_send(). Returns 0; GP_E_TOO_BIG: larger than
 * GP_CONTROL_MAX, nothing was sent, and the connection stays usable; -ENOMEM; or an error of
 * gp_conn_send(). */
GP_MUST_CHECK int gp_control_send(struct gp_conn *conn, const Gpupool__ControlMessage *message);

/* Fills *message, which points to *refused, which points to text. All three must stay valid until
 * the message was sent. */
void gp_control_fill_refused(Gpupool__ControlMessage *message, Gpupool__Refused *refused,
			     Gpupool__Refused__Reason reason, const char *text);
/* Fills *message and *error, as gp_control_fill_refused(). cuda_result: CUresult. */
void gp_control_fill_session_error(Gpupool__ControlMessage *message, Gpupool__SessionError *error,
				   int cuda_result, const char *text);
/* Fills *message and *bye, as gp_control_fill_refused(). */
void gp_control_fill_bye(Gpupool__ControlMessage *message, Gpupool__Bye *bye, const char *text);
/* Fills *message and *pong. number: that of the Ping. */
void gp_control_fill_pong(Gpupool__ControlMessage *message, Gpupool__Pong *pong, uint64_t number);

/* Sends a Hello as a control message; waits and returns as gp_control_send(). */
GP_MUST_CHECK int gp_control_send_hello(struct gp_conn *conn, Gpupool__Hello *hello);
/* Sends a Bye with a text for the peer's log; waits and returns as gp_control_send(). */
GP_MUST_CHECK int gp_control_send_bye(struct gp_conn *conn, const char *text);
/* Sends a Ping with a number that the reply repeats; waits and returns as gp_control_send(). */
GP_MUST_CHECK int gp_control_send_ping(struct gp_conn *conn, uint64_t number);

/*
 * Waits for the next message, as gp_conn_recv(). Messages of kinds that this version does not know
 * are skipped. Returns 0, and the caller frees *message_p with gp_control_free(); its body_case is
 * never NOT_SET. Otherwise returns an error of gp_conn_recv(), such as GP_E_EOF or GP_E_TIMEOUT; or
 * -EPROTO: the message is malformed, or memory is exhausted.
 */
GP_MUST_CHECK int gp_control_recv(struct gp_conn *conn, Gpupool__ControlMessage **message_p);

/* Writes the bytes of a Refused message on a byte stream, including the transport's frame. Used to
 * refuse a connection before its TLS handshake. The text is truncated to 127 characters. Returns
 * the number of bytes written; 0: they do not fit in `size`. */
size_t gp_control_frame_refused(Gpupool__Refused__Reason reason, const char *text, uint8_t *bytes,
				size_t size);

/* Decodes the packed bytes of a message that gp_control_recv() has not received. The caller frees
 * it with gp_control_free(). Returns NULL if the bytes are not a valid control message or memory is
 * exhausted. body_case is NOT_SET if the kind of the message is unknown. */
Gpupool__ControlMessage *gp_control_decode(const void *data, size_t size);

/* Erases the secrets in a received or decoded message (token and ticket) and frees it; accepts
 * NULL. */
void gp_control_free(Gpupool__ControlMessage *message);

/* Returns the message's name for logs, a static text: "Hello", "Welcome", ...; "unknown" for other
 * kinds. */
const char *gp_control_get_name(const Gpupool__ControlMessage *message);

/* Returns bit n of a bitmap such as Welcome.call_bitmap: bit n % 8 of byte n / 8; false beyond the
 * end. */
static inline bool
gp_bitmap_test(const ProtobufCBinaryData *bitmap, size_t n)
{
	return n / 8 < bitmap->len && (bitmap->data[n / 8] >> (n % 8) & 1);
}

/* Value in Device.limits: the driver does not support the limit. */
#define GP_LIMIT_UNSUPPORTED UINT64_MAX

/* Number of values in Device.p2p_attributes for each peer device: CUdevice_P2PAttribute from 1
 * on. */
#define GP_LINK_ATTRIBUTES 5

#endif /* GP_CONTROL_H */
