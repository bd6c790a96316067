// Copyright of the Cubinder authors; Apache-2.0.
#include "heap.hpp"
#include "subject.hpp"

#include <atomic>
#include <thread>

namespace oracle
{

namespace
{

constexpr int32_t kTHREADS = 16;
constexpr int32_t kLIVES_A_THREAD = 4;
constexpr int32_t kLIVES = 64;

}

void checkStress(Subject const& subject)
{
    subject.check("a whole life, from parsing to running", [&](Probe& probe) { subject.life(probe); });
    subject.check("16 threads at once", [&](Probe& probe) {
        Fields const expected = subject.life(probe);
        std::vector<Probe> probes(kTHREADS, Probe::forThread());
        std::atomic<int32_t> waiting{kTHREADS};
        std::vector<std::thread> threads;
        for (int32_t i = 0; i < kTHREADS; ++i)
        {
            threads.emplace_back([&, i] {
                Probe& own = probes[static_cast<size_t>(i)];
                --waiting;
                while (waiting > 0)
                {
                    std::this_thread::yield();
                }
                try
                {
                    for (int32_t round = 0; round < kLIVES_A_THREAD; ++round)
                    {
                        std::string const fault = difference(subject.life(own), expected);
                        own.that(fault.empty(), fault, "the same fields as with one thread");
                    }
                }
                catch (Stop const&)
                {
                }
                catch (std::exception const& error)
                {
                    own.that(false, std::string("an exception, ") + error.what(), "none");
                }
            });
        }
        for (std::thread& thread : threads)
        {
            thread.join();
        }
        for (Probe const& own : probes)
        {
            probe.that(!own.failed(), "in a thread: " + own.message(), "what one thread gets");
        }
    });
    subject.check("memory does not grow", [&](Probe& probe) {
        auto lives = [&] {
            for (int32_t i = 0; i < kLIVES; ++i)
            {
                subject.life(probe);
                subject.logger.take();
            }
            return heapBlocks();
        };
        // The first lives fill caches.
        int64_t const before = lives();
        int64_t const after = lives();
        probe.that(after <= before, show(after - before) + " blocks more after 64 lives", "none");
    });
}

}
