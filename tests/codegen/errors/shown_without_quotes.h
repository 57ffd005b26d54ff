GP_MESSAGE(0x1, POST, SERVER_HOOK, SHOWN(text))
void gpFoo(int value);
