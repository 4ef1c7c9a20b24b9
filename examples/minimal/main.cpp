// The shortest useful embedding: sites of two regions flow through two stages on all cores and come out in order.
#include <spillway/pipeline.hpp>

#include <cstdio>
#include <string>
#include <vector>

struct Region {
    std::string contig;
    int begin, end;
};
struct Site {
    std::string contig;
    int position;
};
struct Call {
    std::string text;
};

spillway::generator<Site> sites_of(const Region& region) {
    for (int position = region.begin; position < region.end; position += 100) {
        Site site{region.contig, position};
        co_yield std::move(site);
    }
}

int main() {
    const std::vector<Region> regions{{"chr1", 100, 400}, {"chr2", 900, 1100}};
    auto calling = spillway::pipeline<Region>("minimal")
                       .source(regions)
                       .fan_out("sites", sites_of)
                       .map("call", [](Site site) { return Call{site.contig + ":" + std::to_string(site.position)}; })
                       .in_order("print", [](const Call& call) { std::puts(call.text.c_str()); });
    const spillway::Report report = calling.run();
    std::printf("%llu sites in order\n", static_cast<unsigned long long>(report.emitted));
}
