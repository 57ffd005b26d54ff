GP_CLIENT_OBJECT(thing, STRUCT(gpc_thing), ENTER(gpc_thing_enter), HEADER("client/thing.h"))

GP_CLIENT_OBJECT(thing, STRUCT(gpc_thing), ENTER(gpc_thing_enter), HEADER("client/thing.h"))
