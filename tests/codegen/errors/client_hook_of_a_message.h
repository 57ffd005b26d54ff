GP_MESSAGE(0x1, POST, SERVER_HOOK, CLIENT_HOOK)
void gpFoo(
        int a);
