GP_MESSAGE(0x1, POST, SERVER_HOOK, QUERY)
void gpFoo(int value);
