//! Drives host transcripts through the proxy and compares what came of them with snapshots.
