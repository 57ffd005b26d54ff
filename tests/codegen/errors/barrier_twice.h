GP_MESSAGE(0x1, POST, SERVER_HOOK, BEFORE_ALL, BARRIER(flags))
void gpFoo(unsigned int flags);
