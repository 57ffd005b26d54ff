GP_HELD(thing, STRUCT(gpc_thing), HEADER("client/thing.h"))
