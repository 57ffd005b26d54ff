GP_MESSAGE(0x1, POST, SERVER_HOOK)
CUresult gpFoo(int value);
