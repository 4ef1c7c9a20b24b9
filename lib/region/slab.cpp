#include "spillway/region.hpp"

#include "base/checked.hpp"
#include "region/poison.hpp"

#include <algorithm>
#include <bit>
#include <new>

namespace spillway {
namespace {

/// Small allocations share pieces; these double up to this size, so that a small candidate takes little and a large one
/// few pieces.
constexpr std::size_t largest_shared_piece = 65536;

} // namespace

struct alignas(std::max_align_t) Slab::PieceHeader {
    RegionPiece newer, older, self;
    std::size_t bytes;
};

namespace {

/// Header, room to align, and the bytes themselves.
std::size_t room_for(std::size_t bytes, std::size_t alignment, std::size_t header) {
    const auto room = checked_add(bytes, header + alignment);
    if (!room) throw std::bad_alloc();
    return *room;
}

} // namespace

Slab::PieceHeader* Slab::header(RegionPiece piece) const noexcept {
    return std::launder(reinterpret_cast<PieceHeader*>(pool_->address(piece)));
}

/// Takes a piece of at least `bytes` and puts it at the head of the list; returns its begin.
std::byte* Slab::add_piece(std::size_t bytes) {
    const auto rounded = checked_round_up(bytes, RegionPool::page_bytes);
    if (!rounded) throw std::bad_alloc();
    const RegionPiece piece = pool_->take(*rounded, seat_);
    std::byte* const begin = pool_->address(piece);
    new (begin) PieceHeader{{}, newest_, piece, *rounded};
    if (newest_.region != RegionPiece::none) header(newest_)->newer = piece;
    newest_ = piece;
    bytes_ += *rounded;
    return begin;
}

void Slab::unlink(RegionPiece piece) noexcept {
    const PieceHeader links = *header(piece);
    if (links.newer.region != RegionPiece::none) {
        header(links.newer)->older = links.older;
    } else {
        newest_ = links.older;
    }
    if (links.older.region != RegionPiece::none) header(links.older)->newer = links.newer;
    bytes_ -= links.bytes;
    poison(pool_->address(piece), links.bytes);
    pool_->give(piece);
}

void Slab::release() noexcept {
    while (newest_.region != RegionPiece::none) unlink(newest_);
    cursor_ = end_ = nullptr;
    next_bytes_ = RegionPool::page_bytes;
}

void* Slab::do_allocate(std::size_t bytes, std::size_t alignment) {
    bytes = std::max<std::size_t>(bytes, 1); // Each allocation has an address of its own.
    const auto padding_at = [alignment](const std::byte* at) {
        return (alignment - std::bit_cast<std::uintptr_t>(at) % alignment) % alignment;
    };
    if (cursor_ != nullptr) {
        const std::size_t padding = padding_at(cursor_);
        const auto left = static_cast<std::size_t>(end_ - cursor_);
        if (padding <= left && bytes <= left - padding) {
            std::byte* const allocated = cursor_ + padding;
            cursor_ = allocated + bytes;
            return allocated;
        }
    }
    const std::size_t room = room_for(bytes, alignment, sizeof(PieceHeader));
    if (room > largest_shared_piece) {
        std::byte* const after_header = add_piece(room) + sizeof(PieceHeader);
        return after_header + padding_at(after_header);
    }
    const std::size_t piece_bytes = std::max(next_bytes_, std::bit_ceil(room));
    std::byte* const begin = add_piece(piece_bytes);
    next_bytes_ = std::min(piece_bytes * 2, largest_shared_piece);
    std::byte* const allocated = begin + sizeof(PieceHeader) + padding_at(begin + sizeof(PieceHeader));
    cursor_ = allocated + bytes;
    end_ = begin + piece_bytes;
    return allocated;
}

void Slab::do_deallocate(void* pointer, std::size_t bytes, std::size_t alignment) {
    bytes = std::max<std::size_t>(bytes, 1);
    auto* const begin = static_cast<std::byte*>(pointer);
    if (begin + bytes == cursor_) {
        cursor_ = begin;
        return;
    }
    // A piece of its own goes back at once: a vector that grows to many MiB must not leave its former selves behind.
    // Pieces begin at a page, so the header is found from the address; beyond a page's alignment it is not, and the
    // piece stays until release.
    if (room_for(bytes, alignment, sizeof(PieceHeader)) <= largest_shared_piece ||
        alignment > RegionPool::page_bytes / 2) {
        return;
    }
    unlink(std::launder(reinterpret_cast<PieceHeader*>(begin - std::max(sizeof(PieceHeader), alignment)))->self);
}

} // namespace spillway
