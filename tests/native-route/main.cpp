// Copyright of the Cubinder authors; Apache-2.0.
//
// Calls the library of `native_route.cpp`.
extern "C" int nativeRouteMain(int argc, char** argv);

int main(int argc, char** argv)
{
    return nativeRouteMain(argc, argv);
}
