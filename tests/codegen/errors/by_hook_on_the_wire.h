GP_CALL(0x1, WAIT, SERVER_HOOK, CLIENT_HOOK)
CUresult cuFoo(BY_HOOK void **value);
