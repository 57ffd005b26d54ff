/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control messages that tests send in place of a daemon. A control message is a record on a
 * client's control connection (protocol/control.h).
 *
 * Errors: each function returns 0 or the negative error of gp_control_send(). Arguments are copied.
 */
#ifndef TESTS_CONTROL_MESSAGES_H
#define TESTS_CONTROL_MESSAGES_H

#include "protocol/control.h"

/* Sends the message that accepts a client and describes its session. */
static inline int
gp_control_send_welcome(struct gp_conn *conn, Gpupool__Welcome *welcome)
{
	Gpupool__ControlMessage message = GPUPOOL__CONTROL_MESSAGE__INIT;

	message.body_case = GPUPOOL__CONTROL_MESSAGE__BODY_WELCOME;
	message.welcome = welcome;
	return gp_control_send(conn, &message);
}

/* Sends the message that rejects a client, with a reason and a text for its user. */
static inline int
gp_control_send_refused(struct gp_conn *conn, Gpupool__Refused__Reason reason, const char *text)
{
	Gpupool__ControlMessage message;
	Gpupool__Refused refused;

	gp_control_fill_refused(&message, &refused, reason, text);
	return gp_control_send(conn, &message);
}

/* Sends the message that ends a session with a CUresult and a text. */
static inline int
gp_control_send_session_error(struct gp_conn *conn, int cuda_result, const char *text)
{
	Gpupool__ControlMessage message;
	Gpupool__SessionError error;

	gp_control_fill_session_error(&message, &error, cuda_result, text);
	return gp_control_send(conn, &message);
}

/* Sends the reply to the ping with this number. */
static inline int
gp_control_send_pong(struct gp_conn *conn, uint64_t number)
{
	Gpupool__ControlMessage message;
	Gpupool__Pong pong;

	gp_control_fill_pong(&message, &pong, number);
	return gp_control_send(conn, &message);
}

#endif /* TESTS_CONTROL_MESSAGES_H */
