//! The command line, against a server of canned answers and against the real one.
