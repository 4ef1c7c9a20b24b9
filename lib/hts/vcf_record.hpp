// A record as a line of VCF text.
#pragma once

#include "spillway/hts.hpp"

#include <string>
#include <string_view>

namespace spillway::hts {

/// Appends the record's line, newline included.
void append_line(std::string& line, const VcfRecord& record, std::string_view contig);

} // namespace spillway::hts
