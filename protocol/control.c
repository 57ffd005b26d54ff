/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/control.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int
gp_control_send(struct gp_conn *conn, const Gpupool__ControlMessage *message)
{
	size_t size = gpupool__control_message__get_packed_size(message);
	struct iovec iov = { .iov_len = size };
	int r;

	if (size > GP_CONTROL_MAX)
		return GP_E_TOO_BIG;
	iov.iov_base = malloc(size + 1);
	if (!iov.iov_base)
		return gp_conn_fail(conn, -ENOMEM, "no memory for a control message");
	gpupool__control_message__pack(message, iov.iov_base);
	r = gp_conn_send(conn, &iov, 1, NULL, 0);
	/* Hello contains a token, Welcome a ticket. */
	explicit_bzero(iov.iov_base, size);
	free(iov.iov_base);
	return r;
}

int
gp_control_send_hello(struct gp_conn *conn, Gpupool__Hello *hello)
{
	Gpupool__ControlMessage message = GPUPOOL__CONTROL_MESSAGE__INIT;

	message.body_case = GPUPOOL__CONTROL_MESSAGE__BODY_HELLO;
	message.hello = hello;
	return gp_control_send(conn, &message);
}

void
gp_control_fill_refused(Gpupool__ControlMessage *message, Gpupool__Refused *refused,
			Gpupool__Refused__Reason reason, const char *text)
{
	gpupool__control_message__init(message);
	gpupool__refused__init(refused);
	refused->reason = reason;
	refused->text = (char *)text;
	message->body_case = GPUPOOL__CONTROL_MESSAGE__BODY_REFUSED;
	message->refused = refused;
}

void
gp_control_fill_session_error(Gpupool__ControlMessage *message, Gpupool__SessionError *error,
			      int cuda_result, const char *text)
{
	gpupool__control_message__init(message);
	gpupool__session_error__init(error);
	error->cuda_result = cuda_result;
	error->text = (char *)text;
	message->body_case = GPUPOOL__CONTROL_MESSAGE__BODY_SESSION_ERROR;
	message->session_error = error;
}

void
gp_control_fill_bye(Gpupool__ControlMessage *message, Gpupool__Bye *bye, const char *text)
{
	gpupool__control_message__init(message);
	gpupool__bye__init(bye);
	bye->text = (char *)text;
	message->body_case = GPUPOOL__CONTROL_MESSAGE__BODY_BYE;
	message->bye = bye;
}

void
gp_control_fill_pong(Gpupool__ControlMessage *message, Gpupool__Pong *pong, uint64_t number)
{
	gpupool__control_message__init(message);
	gpupool__pong__init(pong);
	pong->number = number;
	message->body_case = GPUPOOL__CONTROL_MESSAGE__BODY_PONG;
	message->pong = pong;
}

size_t
gp_control_frame_refused(Gpupool__Refused__Reason reason, const char *text, uint8_t *bytes,
			 size_t size)
{
	Gpupool__ControlMessage message;
	Gpupool__Refused refused;
	uint32_t frame[2] = { 0, 0 };
	char cut[128];
	size_t packed;

	(void)snprintf(cut, sizeof(cut), "%s", text);
	gp_control_fill_refused(&message, &refused, reason, cut);
	packed = gpupool__control_message__get_packed_size(&message);
	if (size < sizeof(frame) + packed)
		return 0;
	frame[0] = htole32((uint32_t)packed);
	memcpy(bytes, frame, sizeof(frame));
	return sizeof(frame) + gpupool__control_message__pack(&message, bytes + sizeof(frame));
}

int
gp_control_send_bye(struct gp_conn *conn, const char *text)
{
	Gpupool__ControlMessage message;
	Gpupool__Bye bye;

	gp_control_fill_bye(&message, &bye, text);
	return gp_control_send(conn, &message);
}

int
gp_control_send_ping(struct gp_conn *conn, uint64_t number)
{
	Gpupool__ControlMessage message = GPUPOOL__CONTROL_MESSAGE__INIT;
	Gpupool__Ping ping = GPUPOOL__PING__INIT;

	ping.number = number;
	message.body_case = GPUPOOL__CONTROL_MESSAGE__BODY_PING;
	message.ping = &ping;
	return gp_control_send(conn, &message);
}

int
gp_control_recv(struct gp_conn *conn, Gpupool__ControlMessage **message_p)
{
	for (;;) {
		Gpupool__ControlMessage *message;
		struct gp_message raw;
		int r = gp_conn_recv(conn, &raw);

		if (r)
			return r;
		if (raw.bulk_size)
			return gp_conn_fail(conn, -EPROTO, "a control message with bulk data");
		message = gp_control_decode(raw.data, raw.size);
		/* The connection, which may exist for days, must not retain them either. */
		explicit_bzero((void *)raw.data, raw.size);
		if (!message)
			return gp_conn_fail(conn, -EPROTO,
					    "%zu bytes that are not a control message", raw.size);
		if (message->body_case != GPUPOOL__CONTROL_MESSAGE__BODY__NOT_SET) {
			*message_p = message;
			return 0;
		}
		gp_control_free(message);
	}
}

Gpupool__ControlMessage *
gp_control_decode(const void *data, size_t size)
{
	return gpupool__control_message__unpack(NULL, size, data);
}

static void
secret_wipe(ProtobufCBinaryData *secret)
{
	if (secret->len)
		explicit_bzero(secret->data, secret->len);
}

void
gp_control_free(Gpupool__ControlMessage *message)
{
	if (!message)
		return;
	if (message->body_case == GPUPOOL__CONTROL_MESSAGE__BODY_HELLO)
		secret_wipe(&message->hello->token);
	else if (message->body_case == GPUPOOL__CONTROL_MESSAGE__BODY_WELCOME)
		secret_wipe(&message->welcome->ticket);
	gpupool__control_message__free_unpacked(message, NULL);
}

const char *
gp_control_get_name(const Gpupool__ControlMessage *message)
{
	static const char *const names[] = {
		[GPUPOOL__CONTROL_MESSAGE__BODY_HELLO] = "Hello",
		[GPUPOOL__CONTROL_MESSAGE__BODY_WELCOME] = "Welcome",
		[GPUPOOL__CONTROL_MESSAGE__BODY_REFUSED] = "Refused",
		[GPUPOOL__CONTROL_MESSAGE__BODY_WINDOW_REQUEST] = "WindowRequest",
		[GPUPOOL__CONTROL_MESSAGE__BODY_WINDOW_REPLY] = "WindowReply",
		[GPUPOOL__CONTROL_MESSAGE__BODY_SESSION_ERROR] = "SessionError",
		[GPUPOOL__CONTROL_MESSAGE__BODY_BYE] = "Bye",
		[GPUPOOL__CONTROL_MESSAGE__BODY_PING] = "Ping",
		[GPUPOOL__CONTROL_MESSAGE__BODY_PONG] = "Pong",
		[GPUPOOL__CONTROL_MESSAGE__BODY_ACCOUNT] = "Account",
	};
	size_t body = (size_t)message->body_case;

	return body < sizeof(names) / sizeof(names[0]) && names[body] ? names[body] : "unknown";
}
