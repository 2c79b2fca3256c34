// Package cluster runs three-process clusters of the systems that are compared,
// on loopback, with their default timeouts and with every write synced to disk.
//
// It ends only processes that it started. Every wait is bounded.
package cluster
