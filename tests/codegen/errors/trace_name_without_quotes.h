GP_MESSAGE(0x1, POST, SERVER_HOOK, TRACE_NAME(text))
void gpFoo(int value);
