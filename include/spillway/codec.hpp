// How a value becomes bytes when it spills, and how many bytes it holds while in memory.
//
//     struct Call { int position; std::string ref, alt; std::vector<double> likelihoods; };   // needs nothing: see below
//
//     struct Site { std::int64_t position; Window window; };                                   // Window is a class of yours
//     template <> struct spillway::codec<Window> {
//         static void encode(Writer& out, const Window& w) { out(w.begin(), w.bases(), w.qualities()); }
//         static Window decode(Reader& in) { auto begin = in.get<long>(); ... return Window(...); }
//     };
//
// Arithmetic types, enums, std::string, vectors, arrays, optionals, pairs, tuples and unique_ptrs of coded types, and aggregates
// of up to 16 coded members without base classes need no codec. Bytes are in the machine's order: they never leave it.
#pragma once

namespace spillway {}
