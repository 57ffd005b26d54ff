GP_CLIENT_OBJECT(thing, TYPES(CUevent), ENTER(gpc_thing_enter), HEADER("client/thing.h"))
