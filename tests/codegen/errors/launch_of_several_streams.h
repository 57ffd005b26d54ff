GP_MESSAGE(0x1, POST, SERVER_HOOK, LAUNCHES)
void gpFoo(
        CUstream first,
        CUstream second);
