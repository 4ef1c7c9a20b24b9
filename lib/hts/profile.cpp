#include "spillway/profile.hpp"

#include "hts/alignment_state.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>

namespace spillway::hts {
namespace {

struct Entry {
    Profile profile;
    std::string_view name;
    FirstGuess guess;
};

/// Both neighbours decode the reads over a border, and a task costs a seek: where reads are long (or span introns) or
/// few to the megabase, spans are longer. Where depth is in the hundreds one window alone fills a small batch.
constexpr std::array<Entry, 6> entries = {{
    {Profile::wgs, "wgs", {1'000'000, 8'000'000}},
    {Profile::wes, "wes", {4'000'000, 16'000'000}},
    {Profile::pacbio, "pacbio", {2'000'000, 8'000'000}},
    {Profile::ont, "ont", {4'000'000, 8'000'000}},
    {Profile::hybrid, "hybrid", {2'000'000, 8'000'000}},
    {Profile::rnaseq, "rnaseq", {4'000'000, 16'000'000}},
}};

/// A tag's values on all lines of a type, in upper case.
std::vector<std::string> values(sam_hdr_t* header, const char* type, const char* key) {
    std::vector<std::string> all;
    const int lines = sam_hdr_count_lines(header, type);
    for (int line = 0; line < lines; ++line) {
        Text value;
        if (sam_hdr_find_tag_pos(header, type, line, key, &value) != 0 || value.s == nullptr) continue;
        std::string& text = all.emplace_back(value.s, value.l);
        std::transform(text.begin(), text.end(), text.begin(),
                       [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    }
    return all;
}

bool any_holds(const std::vector<std::string>& texts, std::initializer_list<std::string_view> words) {
    return std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
        return std::any_of(words.begin(), words.end(),
                           [&](std::string_view word) { return text.find(word) != std::string::npos; });
    });
}

/// "STAR" within "started" is none: the names of programs are whole.
bool is_spliced_aligner(const std::string& program) {
    return program.starts_with("STAR") || program.starts_with("HISAT") || program.starts_with("TOPHAT");
}

} // namespace

std::string_view to_string(Profile profile) noexcept {
    return entries[static_cast<std::size_t>(profile)].name;
}

std::optional<Profile> profile_named(std::string_view name) noexcept {
    const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.name == name; });
    if (found == entries.end()) return std::nullopt;
    return found->profile;
}

Profile profile_of(const AlignmentFile& file) {
    sam_hdr_t* const header = file.state().header.get();
    const std::vector<std::string> programs = values(header, "PG", "ID");
    // minimap2's preset for spliced reads.
    if (std::any_of(programs.begin(), programs.end(), is_spliced_aligner) ||
        any_holds(values(header, "PG", "CL"), {"-X SPLICE", "-AX SPLICE"}))
        return Profile::rnaseq;
    const std::vector<std::string> platforms = values(header, "RG", "PL");
    const auto count = [&](std::initializer_list<std::string_view> words) {
        return std::count_if(platforms.begin(), platforms.end(),
                             [&](const std::string& platform) { return any_holds({platform}, words); });
    };
    const auto pacbio = count({"PACBIO"}), ont = count({"ONT", "NANOPORE"});
    const auto others = static_cast<std::ptrdiff_t>(platforms.size()) - pacbio - ont;
    if (pacbio + ont == 0) return Profile::wgs;
    if (others > 0) return Profile::hybrid;
    return ont > 0 ? Profile::ont : Profile::pacbio;
}

FirstGuess first_guess(Profile profile) noexcept {
    return entries[static_cast<std::size_t>(profile)].guess;
}

} // namespace spillway::hts
