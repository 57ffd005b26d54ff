GP_MESSAGE(0x1, POST, SERVER_HOOK, BARRIER(flags))
void gpFoo(int value);
