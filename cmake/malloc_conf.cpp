// Compiled into each executable that links spillway::jemalloc: jemalloc reads its settings from this symbol before
// main. The environment variable MALLOC_CONF still has the last word.
//
// dirty_decay_ms:60000: candidates are made and dropped all the time, and an allocator that returns their pages faults
// them in again. With decay 0, churning candidates took 2.2 times the wall time and 18 times the page faults of the
// default of 10 s, and the default 5 times the faults of never. A minute keeps the pages of a running pipeline and
// still returns those of an idle host.
//
// muzzy_decay_ms:0: after that minute the pages really go, so that the resident set tells the governor the truth.
//
// background_thread:true: pages are returned beside the workers, not by whoever frees next.
//
// metadata_thp:auto: jemalloc's own tables lie in huge pages once they are large, for fewer TLB misses.
extern "C" {
__attribute__((visibility("default"))) extern const char* malloc_conf;
const char* malloc_conf = "background_thread:true,metadata_thp:auto,dirty_decay_ms:60000,muzzy_decay_ms:0";
}
