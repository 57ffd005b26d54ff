GP_CLIENT_OBJECT(thing, TYPES(CUevent), STRUCT(gpc_thing), ENTER(gpc_thing_enter), HEADER("client/thing.h"))

GP_CLIENT_OBJECT(other, TYPES(CUevent), STRUCT(gpc_thing), ENTER(gpc_thing_enter), HEADER("client/thing.h"))
