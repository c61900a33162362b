//! Flows: which lookups follow a call, learned from recorded sessions.
