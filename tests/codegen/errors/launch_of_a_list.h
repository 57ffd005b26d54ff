GP_MESSAGE(0x1, POST, SERVER_HOOK, LAUNCHES)
void gpFoo(
        IN_N(n) const CUstream *streams,
        unsigned int n);
