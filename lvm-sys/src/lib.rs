//! Raw declarations of liblvm2cmd and of the used part of libdevmapper, and nothing else.
