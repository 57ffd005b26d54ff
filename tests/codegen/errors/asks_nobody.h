GP_MESSAGE(0x1, POST, SERVER_HOOK, ASKS)
void gpFoo(int value);
