// Copyright of the Cubinder authors; Apache-2.0.
//
// Calls the oracle's library; `oracle.cpp` explains the split.
extern "C" int oracleMain(int argc, char** argv);

int main(int argc, char** argv)
{
    return oracleMain(argc, argv);
}
