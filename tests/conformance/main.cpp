// Copyright of the Cubinder authors; Apache-2.0.
//
// The program around the oracle's library; `oracle.cpp` says why there are two.
extern "C" int oracleMain(int argc, char** argv);

int main(int argc, char** argv)
{
    return oracleMain(argc, argv);
}
